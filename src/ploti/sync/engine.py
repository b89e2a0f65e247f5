"""A DuckDB of our own in memory, which reads and writes the files of versions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from ploti.model.sql import literal

LITTLE = "256MB"
"""As much as a load needs, whatever its number of rows, where these are not very wide."""


def open_engine(*, spill: Path | None = None, **settings: str) -> duckdb.DuckDBPyConnection:
    """One that fetches no extensions, with further settings of DuckDB's.

    What does not fit into its `memory_limit` goes to the folder `spill`.
    """
    own = dict.fromkeys(("autoinstall_known_extensions", "autoload_known_extensions"), "false")
    engine = duckdb.connect(":memory:", config={**own, **settings})
    engine.execute(f"SET temp_directory = {literal(str(spill or ''))}")
    return engine


@contextmanager
def little_memory(engine: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Let it take little memory for a while, and two threads, each of which has rows in hand.

    What needs more raises duckdb.OutOfMemoryException.
    """
    beside = engine.cursor()  # a transaction that failed takes no statement more
    beside.execute(f"SET threads = 2; SET memory_limit = {literal(LITTLE)}")
    try:
        yield
    finally:
        beside.execute("RESET memory_limit; RESET threads")
        beside.close()
