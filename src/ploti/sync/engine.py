"""A DuckDB of our own in memory, which reads and writes the files of versions."""

from __future__ import annotations

from pathlib import Path

import duckdb

from ploti.model.sql import literal


def open_engine(*, spill: Path | None = None, **settings: str) -> duckdb.DuckDBPyConnection:
    """One that fetches no extensions, with further settings of DuckDB's.

    What does not fit into its `memory_limit` goes to the folder `spill`.
    """
    own = dict.fromkeys(("autoinstall_known_extensions", "autoload_known_extensions"), "false")
    engine = duckdb.connect(":memory:", config={**own, **settings})
    engine.execute(f"SET temp_directory = {literal(str(spill or ''))}")
    return engine
