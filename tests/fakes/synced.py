"""A destination under test, and what plain DuckDB, SQLite or psycopg reads out of it.

A file's suffix is the kind of the destination; a database is given by its address.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import psycopg
from tests.fakes.feed import SUBSCRIPTION, FakeVersion

from ploti.model.columns import RECORD_ID
from ploti.model.ids import DatasetId
from ploti.model.sql import literal
from ploti.sync.destination import Destination
from ploti.sync.destinations import open_destination
from ploti.sync.destinations.sqlite import GeoPackage
from ploti.sync.feed import Feed
from ploti.sync.progress import Observer, ignore
from ploti.sync.result import Result
from ploti.sync.runner import open_run
from ploti.sync.work import Options

Place = Path | str


def destination(
    place: Place, lock_timeout: float = 5.0, *, replace_views: bool = False
) -> Destination:
    """A file or a database as a destination of the test's subscription."""
    return open_destination(
        address(place),
        subscription_id=SUBSCRIPTION,
        lock_timeout=lock_timeout,
        replace_views=replace_views,
    )


def address(place: Place) -> str:
    """What `--to` is given for it."""
    return place if isinstance(place, str) else f"{place.suffix.removeprefix('.')}:{place}"


def sync(
    feed: Feed,
    place: Place,
    *,
    replace_views: bool = False,
    options: Options | None = None,
    chosen: frozenset[DatasetId] = frozenset(),
    observe: Observer = ignore,
) -> Result:
    """Bring it up to date, once."""
    with open_run(
        feed=feed,
        destination=destination(place, replace_views=replace_views),
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


def recorded(folder: Path) -> dict[str, Any]:
    """What a folder of Parquet files records, as the page on destinations says."""
    path = folder / "_ploti" / "state.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


@contextmanager
def _files(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Each file as a view; one that a killed run had committed lies in `_ploti` still."""
    moves = recorded(folder).get("moves", {})
    files = {file.stem: file for file in folder.glob("*.parquet")}
    files |= {table: folder / "_ploti" / name for table, name in moves.items()}
    with duckdb.connect() as connection:
        for table, file in files.items():
            found = file if file.exists() else folder / f"{table}.parquet"
            connection.execute(f'CREATE VIEW "{table}" AS FROM read_parquet({literal(str(found))})')
        yield connection


def _rewrite(folder: Path, sql: str) -> None:
    """Change the one file of a folder whose name stands in the SQL."""
    (file,) = (each for each in folder.glob("*.parquet") if each.stem in sql)
    with duckdb.connect() as connection:
        connection.execute(f'CREATE TABLE "{file.stem}" AS FROM read_parquet({literal(str(file))})')
        connection.execute(sql)
        if connection.execute("FROM duckdb_tables()").fetchall():
            connection.execute(f'COPY "{file.stem}" TO {literal(str(file))} (FORMAT parquet)')
        else:
            file.unlink()


def query(place: Place, sql: str) -> list[tuple[Any, ...]]:
    """Rows by plain DuckDB, plain SQLite or plain psycopg."""
    if isinstance(place, str):
        with psycopg.connect(place) as plain:
            return plain.execute(sql.encode()).fetchall()
    if place.suffix == ".parquet":
        with _files(place) as connection:
            return connection.execute(sql).fetchall()
    if place.suffix != ".duckdb":
        with closing(sqlite3.connect(place)) as plain:
            return plain.execute(sql).fetchall()
    with _using(place, " (READ_ONLY)") as connection:
        return connection.execute(sql).fetchall()


def execute(place: Place, sql: str) -> None:
    """Do something to it by hand."""
    if isinstance(place, str):
        with psycopg.connect(place) as plain:
            plain.execute(sql.encode())
        return
    if place.suffix == ".parquet":
        _rewrite(place, sql)
        return
    if place.suffix != ".duckdb":
        with closing(sqlite3.connect(place)) as plain, plain:
            if place.suffix == ".gpkg":
                GeoPackage().prepare(plain)  # as QGIS has the functions of its spatial index
            plain.execute(sql)
        return
    with _using(place, "") as connection:
        connection.execute(sql)


def held(place: Place) -> dict[str, tuple[object, ...]]:
    """Version and state of each dataset, as the documented table says."""
    if isinstance(place, Path) and place.suffix == ".parquet":
        lines = recorded(place).get("datasets", [])
        return {each["dataset_id"]: (each["version"], each["state"]) for each in lines}
    has_schemas = isinstance(place, str) or place.suffix == ".duckdb"
    table = "_ploti.datasets" if has_schemas else "_ploti_datasets"
    rows = query(place, f"SELECT dataset_id, version, state FROM {table}")
    return {str(dataset_id): tuple(rest) for dataset_id, *rest in rows}


def is_begun(place: Place) -> bool:
    """Whether anything of ploti's is there."""
    if isinstance(place, str):
        return query(place, "SELECT to_regclass('_ploti.datasets')") != [(None,)]
    if place.suffix == ".parquet":
        return bool(recorded(place))
    if not place.exists():
        return False
    if place.suffix == ".duckdb":
        found = "FROM duckdb_tables() WHERE schema_name = '_ploti' AND table_name = 'datasets'"
        return bool(query(place, found))
    return bool(query(place, "SELECT 1 FROM sqlite_schema WHERE name = '_ploti_datasets'"))


def cursor(place: Place) -> str | None:
    """The cursor, as the documented table says; None where there is none yet."""
    if isinstance(place, Path) and place.suffix == ".parquet":
        places = recorded(place)["subscriptions"].values()
        return next((each["cursor"] for each in places), None)
    has_schemas = isinstance(place, str) or place.suffix == ".duckdb"
    table = "_ploti.subscriptions" if has_schemas else "_ploti_subscriptions"
    rows = query(place, f"SELECT cursor FROM {table}")
    return None if not rows or rows[0][0] is None else str(rows[0][0])


def read_table(place: Place, version: FakeVersion, table: str) -> dict[str, dict[str, object]]:
    """The table's rows by record id, with the version's columns."""
    names = [column.name for column in version.schema.columns]
    values = [
        f'st_aswkb("{column.name}")' if column.type == "geometry" else f'"{column.name}"'
        for column in version.schema.columns
    ]
    rows = query(place, f'SELECT {", ".join([RECORD_ID, *values])} FROM "{table}"')
    found = {str(key): dict(zip(names, cells, strict=True)) for key, *cells in rows}
    assert len(found) == len(rows), "a record id stands twice in the table"
    return found


def expected(version: FakeVersion) -> dict[str, Mapping[str, object]]:
    """What the table of this version must hold."""
    names = [column.name for column in version.schema.columns]
    return {key: {name: row.get(name) for name in names} for key, row in version.rows.items()}
