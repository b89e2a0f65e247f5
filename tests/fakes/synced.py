"""A destination under test, and what plain DuckDB or plain SQLite reads out of it.

The file's suffix is the kind of the destination.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

import duckdb
from tests.fakes.feed import SUBSCRIPTION, FakeVersion

from ploti.model.columns import RECORD_ID
from ploti.model.ids import DatasetId
from ploti.model.sql import literal
from ploti.sync.destination import Destination
from ploti.sync.destinations import open_destination
from ploti.sync.feed import Feed
from ploti.sync.progress import Observer, ignore
from ploti.sync.result import Result
from ploti.sync.runner import open_run
from ploti.sync.work import Options


def destination(file: Path, lock_timeout: float = 5.0) -> Destination:
    """A file as a destination of the test's subscription."""
    address = f"{file.suffix.removeprefix('.')}:{file}"
    return open_destination(address, subscription_id=SUBSCRIPTION, lock_timeout=lock_timeout)


def sync(
    feed: Feed,
    file: Path,
    *,
    options: Options | None = None,
    chosen: frozenset[DatasetId] = frozenset(),
    observe: Observer = ignore,
) -> Result:
    """Bring the file up to date, once."""
    with open_run(
        feed=feed,
        destination=destination(file),
        options=options or Options(),
        chosen=chosen,
        observe=observe,
    ) as run:
        return run.catch_up()


@cache
def _plain() -> duckdb.DuckDBPyConnection:
    """One for all: to attach a file to it is cheaper than a new one each time."""
    return duckdb.connect()


@contextmanager
def _using(file: Path, mode: str) -> Iterator[duckdb.DuckDBPyConnection]:
    connection = _plain()
    connection.execute(f"ATTACH {literal(str(file))} AS file{mode}; USE file")
    try:
        yield connection
    finally:
        connection.execute("USE memory; DETACH file")


def query(file: Path, sql: str) -> list[tuple[object, ...]]:
    """Rows by plain DuckDB, or by plain SQLite."""
    if file.suffix != ".duckdb":
        with closing(sqlite3.connect(file)) as plain:
            return plain.execute(sql).fetchall()
    with _using(file, " (READ_ONLY)") as connection:
        return connection.execute(sql).fetchall()


def execute(file: Path, sql: str) -> None:
    """Do something to the file by hand."""
    if file.suffix != ".duckdb":
        with closing(sqlite3.connect(file)) as plain, plain:
            plain.execute(sql)
        return
    with _using(file, "") as connection:
        connection.execute(sql)


def held(file: Path) -> dict[str, tuple[object, ...]]:
    """Version and state of each dataset, as the documented table says."""
    table = "_ploti.datasets" if file.suffix == ".duckdb" else "_ploti_datasets"
    rows = query(file, f"SELECT dataset_id, version, state FROM {table}")
    return {str(dataset_id): tuple(rest) for dataset_id, *rest in rows}


def cursor(file: Path) -> object:
    """The cursor, as the documented table says."""
    return query(file, "SELECT cursor FROM _ploti.subscriptions")[0][0]


def read_table(file: Path, version: FakeVersion, table: str) -> dict[str, dict[str, object]]:
    """The table's rows by record id, with the version's columns."""
    names = [column.name for column in version.schema.columns]
    values = [
        f'st_aswkb("{column.name}")' if column.type == "geometry" else f'"{column.name}"'
        for column in version.schema.columns
    ]
    rows = query(file, f'SELECT {", ".join([RECORD_ID, *values])} FROM "{table}"')
    found = {str(key): dict(zip(names, cells, strict=True)) for key, *cells in rows}
    assert len(found) == len(rows), "a record id stands twice in the table"
    return found


def expected(version: FakeVersion) -> dict[str, Mapping[str, object]]:
    """What the table of this version must hold."""
    names = [column.name for column in version.schema.columns]
    return {key: {name: row.get(name) for name in names} for key, row in version.rows.items()}
