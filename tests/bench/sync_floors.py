"""What each database's own bulk path costs for the files of `bench_sync`: scripts of fixed text.

As in sync, what reads the files is made once, and so is a connection to PostgreSQL.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from ploti.model.columns import OP, RECORD_ID

BATCH = 10_000
Measure = Callable[[Callable[[], object]], float]
Changes = Mapping[str, Sequence[Path]]
"""The files of each part, which are applied one after another; what one takes is told."""

_COLUMNS = "number, status, address, description, issued, updated, units, valuation, fee, active"
_TEXTS = "issued::VARCHAR, updated::VARCHAR, units, valuation, fee::VARCHAR, active::INTEGER"


def duckdb(folder: Path, changes: Changes, measure: Measure) -> dict[str, float]:
    """DuckDB reads the files itself."""
    import duckdb

    def execute(*statements: str) -> None:
        with duckdb.connect(str(folder / "floor.duckdb")) as connection:
            for statement in statements:
                connection.execute(statement)

    def load() -> None:
        execute(f"CREATE TABLE t AS FROM read_parquet('{folder / 'load.parquet'}')")

    def apply(file: Path) -> None:
        rows = f"read_parquet('{file}')"
        execute(
            "BEGIN",
            f"DELETE FROM t WHERE {RECORD_ID} IN (SELECT {RECORD_ID} FROM {rows})",
            f"INSERT INTO t SELECT * EXCLUDE ({OP}) FROM {rows} WHERE {OP} = 'upsert'",
            "COMMIT",
        )

    return _all(load, apply, changes, measure)


def sqlite(folder: Path, changes: Changes, measure: Measure) -> dict[str, float]:
    """Rows by DuckDB, in by executemany."""
    columns = f"{RECORD_ID} TEXT NOT NULL PRIMARY KEY, {_COLUMNS}"

    def put(connection: sqlite3.Connection, rows: Iterator[tuple[Any, ...]]) -> None:
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * 11)})", rows)

    def select(of: str) -> str:
        head = f"{RECORD_ID}, number, status, address, description, {_TEXTS}"
        return f"SELECT {head} FROM read_parquet('{of}')"

    return _sqlite(folder / "floor.sqlite", folder, changes, measure, columns, select, put)


def gpkg(folder: Path, changes: Changes, measure: Measure) -> dict[str, float]:
    """As SQLite, with a header before each point, a row number, and the box in an R-tree."""
    columns = f"fid INTEGER PRIMARY KEY AUTOINCREMENT, {RECORD_ID} TEXT NOT NULL UNIQUE"
    columns += f", {_COLUMNS}, geometry BLOB"
    header, point = struct.pack("<2sBBi", b"GP", 0, 1, 4326), struct.Struct(">dd")

    def put(connection: sqlite3.Connection, rows: Iterator[tuple[Any, ...]]) -> None:
        last = connection.execute("SELECT coalesce(max(fid), 0) FROM t").fetchone()[0]
        names = f"{RECORD_ID}, {_COLUMNS}, geometry"
        connection.executemany(
            f"INSERT INTO t ({names}) VALUES ({', '.join('?' * 12)})",
            ((*row[:-1], header + row[-1]) for row in rows),
        )
        found = connection.execute(f"SELECT fid, geometry FROM t WHERE fid > {last}")
        boxes = ((fid, *point.unpack_from(blob, 13)) for fid, blob in found)
        connection.executemany(
            "INSERT INTO rtree_t VALUES (?, ?, ?, ?, ?)", ((i, x, x, y, y) for i, x, y in boxes)
        )

    def select(of: str) -> str:
        head = f"{RECORD_ID}, number, status, address, description, {_TEXTS}, geometry"
        return f"SELECT {head} FROM read_parquet('{of}')"

    return _sqlite(folder / "floor.gpkg", folder, changes, measure, columns, select, put)


def _sqlite(  # noqa: PLR0917 - one script in two variants
    file: Path,
    folder: Path,
    changes: Changes,
    measure: Measure,
    columns: str,
    select: Callable[[str], str],
    put: Callable[[sqlite3.Connection, Iterator[tuple[Any, ...]]], None],
) -> dict[str, float]:
    import duckdb

    engine = duckdb.connect()

    def rows(query: str) -> Iterator[tuple[Any, ...]]:
        result = engine.cursor().execute(query)
        while batch := result.fetchmany(BATCH):
            yield from batch

    def load() -> None:
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("BEGIN")
            connection.execute(f"CREATE TABLE t ({columns})")
            connection.execute("CREATE VIRTUAL TABLE rtree_t USING rtree(id, a, b, c, d)")
            put(connection, rows(select(str(folder / "load.parquet"))))

    def apply(changed: Path) -> None:
        ids = f"SELECT {RECORD_ID} FROM read_parquet('{changed}')"
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("BEGIN")
            if "fid" in columns:
                own = f"(SELECT fid FROM t WHERE {RECORD_ID} = ?)"
                connection.executemany(f"DELETE FROM rtree_t WHERE id = {own}", rows(ids))
            connection.executemany(f"DELETE FROM t WHERE {RECORD_ID} = ?", rows(ids))
            put(connection, rows(f"{select(str(changed))} WHERE {OP} = 'upsert'"))

    return _all(load, apply, changes, measure)


def postgresql(folder: Path, changes: Changes, measure: Measure, address: str) -> dict[str, float]:
    """DuckDB makes CSV of the files, COPY takes it: a table, then its index; changes by a stage."""
    import duckdb
    import psycopg

    types = (
        f"{RECORD_ID} text NOT NULL, number text, status text, address text, description text,"
        " issued date, updated timestamptz, units bigint, valuation double precision,"
        " fee numeric(12,2), active boolean"
    )

    engine, connection = duckdb.connect(), psycopg.connect(address)

    def copy(query: str, to: str) -> None:
        file = folder / "floor.csv"
        engine.execute(f"COPY ({query}) TO '{file}' (HEADER false)")
        into = f"COPY {to} FROM STDIN (FORMAT csv)".encode()
        with (
            connection.cursor() as cursor,
            file.open("rb") as source,
            cursor.copy(into) as rows,
        ):
            while piece := source.read(1 << 20):
                rows.write(piece)

    def load() -> None:
        with connection.transaction():
            connection.execute(f"CREATE TABLE floor ({types})".encode())
            copy(f"FROM read_parquet('{folder / 'load.parquet'}')", "floor")
            connection.execute(f"ALTER TABLE floor ADD PRIMARY KEY ({RECORD_ID})".encode())

    def apply(file: Path) -> None:
        rows = f"FROM read_parquet('{file}')"
        ids = f"SELECT {RECORD_ID} {rows}"
        with connection.transaction():
            connection.execute(f"CREATE TEMP TABLE ids ({RECORD_ID} text) ON COMMIT DROP".encode())
            copy(ids, "ids")
            connection.execute(
                f"DELETE FROM floor USING ids WHERE floor.{RECORD_ID} = ids.{RECORD_ID}".encode()
            )
            copy(f"SELECT * EXCLUDE ({OP}) {rows} WHERE {OP} = 'upsert'", "floor")

    return _all(load, apply, changes, measure)


def _all(
    load: Callable[[], object],
    apply: Callable[[Path], object],
    changes: Changes,
    measure: Measure,
) -> dict[str, float]:
    def apply_all(files: Sequence[Path]) -> None:
        for file in files:
            apply(file)

    return {"load": measure(load)} | {
        part: measure(lambda files=files: apply_all(files)) / len(files)
        for part, files in changes.items()
    }
