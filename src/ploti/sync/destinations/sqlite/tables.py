"""The tables of records in a SQLite file, and how Parquet files are brought into them."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from ploti.model.columns import RECORD_ID
from ploti.model.digest import NO_ROWS, Buckets, bucket_of, digest_sql
from ploti.model.schema import AddedColumn, Schema
from ploti.model.sql import identifier
from ploti.sync.destination import TableError
from ploti.sync.destinations.sqlite import values
from ploti.sync.destinations.sqlite.faults import said_of_the_table
from ploti.sync.destinations.sqlite.layout import Layout
from ploti.sync.parquet import Row, Rows
from ploti.sync.tally import Tally

_BATCH = 50_000
_GROUP = 100
_ACTS = """
    SELECT (SELECT foreign_keys FROM pragma_foreign_keys) OR EXISTS (
        SELECT 1 FROM sqlite_schema
        WHERE (lower(tbl_name) = lower(?) OR tbl_name GLOB '_ploti_*' OR tbl_name GLOB 'gpkg_*')
            AND (sql LIKE '%conflict%' OR type = 'trigger' AND name NOT GLOB 'rtree_*'))
"""
"""Whether anything acts on what is written: foreign keys, triggers, clauses that replace rows.

The triggers of a spatial index touch nothing but that.
"""


class Tables:
    """The tables of the file; every method raises TableError where the fault is a table's.

    They are those of one connection, and know for as long how many rows they have. DuckDB reads the
    files and computes digests; SQLite's own driver writes and reads the rows.
    """

    def __init__(
        self, connection: sqlite3.Connection, engine: duckdb.DuckDBPyConnection, layout: Layout
    ) -> None:
        self._connection = connection
        self._engine = engine
        self._layout = layout
        self._tally = Tally()

    def kind(self, table: str) -> str | None:
        """`table`, `view` and so on, or None where nothing has this name."""
        found = self._connection.execute(
            "SELECT type FROM sqlite_schema WHERE lower(name) = lower(?)", [table]
        ).fetchone()
        return None if found is None else str(found[0])

    def load(self, table: str, schema: Schema, file: Path, *, exactly: bool = False) -> None:
        """Replace all rows; a table with the right columns stays, with what its owner added."""
        self._tally.forget()
        with said_of_the_table():
            wanted, have = self._wanted(schema).items(), self._columns(table).items()
            further = [name for name, _ in have - wanted if name not in self._layout.own_columns]
            if wanted <= have and not (exactly and further):
                self._layout.loading(self._connection, table, schema)
                self._connection.execute(f"DELETE FROM {identifier(table)}")
            else:
                self._make(table, schema)
            self._insert(table, schema, Rows(self._engine, file).read(schema, values.written))
            self._layout.loaded(self._connection, table, schema)

    def apply(self, table: str, schema: Schema, file: Path) -> None:
        """Delete every record that the file names, then insert those that it says to keep."""
        rows = Rows(self._engine, file)
        with said_of_the_table():
            self._check_columns(table, schema)
            rows.check_operations()
            with self._layout.changing(self._connection, table, schema, rows.record_ids()):
                deleted = self._connection.executemany(
                    f"DELETE FROM {identifier(table)} WHERE {identifier(RECORD_ID)} = ?",
                    rows.record_ids(),
                ).rowcount
                inserted = self._insert(table, schema, rows.upserts(schema, values.written))
            acts = self._connection.execute(_ACTS, [table]).fetchone() != (0,)
            self._tally.add(table, None if acts else inserted - deleted)

    def add_columns(self, table: str, columns: Sequence[AddedColumn]) -> None:
        """Add columns, null in every row; one that is there already is emptied."""
        self._tally.forget()
        with said_of_the_table():
            have = {name.lower() for name in self._columns(table)}
            for column in columns:
                name, place = identifier(column.name), identifier(table)
                if column.name.lower() in have:
                    self._connection.execute(f"UPDATE {place} SET {name} = NULL")
                else:
                    kind = self._layout.declared(column.type)
                    self._connection.execute(f"ALTER TABLE {place} ADD {name} {kind}")

    def drop(self, table: str) -> None:
        """Drop the table if it is there."""
        self._tally.forget()
        with said_of_the_table():
            self._drop(table)

    def count(self, table: str) -> int:
        """The number of its rows; they are counted unless nobody else has written since."""
        with said_of_the_table():
            return self._tally.rows(table, self._stretch(), lambda: self._count(table))

    def _stretch(self) -> int:
        """A number that is another after each commit of another connection's."""
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def _count(self, table: str) -> int:
        found = self._connection.execute(f"SELECT count(*) FROM {identifier(table)}").fetchone()
        return int(found[0])

    def forget(self) -> None:
        """The transaction was rolled back."""
        self._tally.forget()

    def record_ids(self, table: str, buckets: Collection[int]) -> list[str]:
        """The ids of its rows in these buckets."""
        with said_of_the_table():
            found = self._connection.execute(
                f"SELECT {identifier(RECORD_ID)} FROM {identifier(table)}"
            )
            return [
                each for (each,) in found if isinstance(each, str) and bucket_of(each) in buckets
            ]

    def buckets(self, table: str, schema: Schema) -> Buckets:
        """The digest of the table; a row with a value that is none of its type is left out.

        So the row's bucket differs, whatever the value should be.
        """
        total = NO_ROWS
        with said_of_the_table():
            have = self._columns(table)
            if RECORD_ID not in have:
                raise TableError(f"table {table} has no column {RECORD_ID}")
            found = self._connection.execute(_select(table, schema, have))
            while rows := found.fetchmany(_BATCH):
                total = total.plus(self._digest(schema, self._layout.unpack(schema, rows)))
        return total

    def _digest(self, schema: Schema, rows: list[Row]) -> Buckets:
        types = [pa.string(), *(values.arrow(each.type) for each in schema.columns)]
        arrays = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(types)]
        self._engine.register("stored", pa.table(arrays, names=_names(schema)))
        own = {each.name: values.read(each.type, identifier(each.name)) for each in schema.columns}
        relation = f"(FROM stored WHERE {values.as_written(schema)})"
        found = self._engine.execute(digest_sql(schema, relation, values=own)).fetchall()
        return Buckets.from_sql(found)

    def _make(self, table: str, schema: Schema) -> None:
        self._drop(table)
        columns = [f"{identifier(c.name)} {self._layout.declared(c.type)}" for c in schema.columns]
        columns = [*self._layout.identity, *columns]
        self._connection.execute(f"CREATE TABLE {identifier(table)} ({', '.join(columns)})")

    def _drop(self, table: str) -> None:
        self._layout.dropping(self._connection, table)
        self._connection.execute(f"DROP TABLE IF EXISTS {identifier(table)}")

    def _insert(self, table: str, schema: Schema, rows: Iterable[Row]) -> int:
        names = _names(schema)
        return self._connection.executemany(
            f"INSERT INTO {identifier(table)} ({', '.join(map(identifier, names))})"
            f" VALUES ({', '.join('?' * len(names))})",
            self._layout.pack(schema, rows),
        ).rowcount

    def _columns(self, table: str) -> dict[str, str]:
        """The declared type of each column."""
        found = self._connection.execute(f"PRAGMA table_info({identifier(table)})").fetchall()
        return {str(name): str(kind) for _, name, kind, *_ in found}

    def _check_columns(self, table: str, schema: Schema) -> None:
        have = self._columns(table)
        for name, kind in self._wanted(schema).items():
            if have.get(name, "missing") != kind:
                raise TableError(f"column {name} of table {table} is {have.get(name, 'missing')}")

    def _wanted(self, schema: Schema) -> dict[str, str]:
        own = {column.name: self._layout.declared(column.type) for column in schema.columns}
        return {RECORD_ID: "TEXT"} | own


def _names(schema: Schema) -> list[str]:
    return [RECORD_ID, *(column.name for column in schema.columns)]


def _select(table: str, schema: Schema, have: dict[str, str]) -> str:
    """The rows whose values are stored as their types are; a missing column is null."""
    record_id = identifier(RECORD_ID)
    cells, fitting = [record_id], [f"typeof({record_id}) = 'text'"]
    for column in schema.columns:
        if column.name not in have:
            cells.append("NULL")
            continue
        name = identifier(column.name)
        cells.append(name)
        fitting.append(f"typeof({name}) IN ('null', '{values.storage(column.type)}')")
    return f"SELECT {', '.join(cells)} FROM {identifier(table)} WHERE {_all_of(fitting)}"


def _all_of(conditions: list[str]) -> str:
    """All of them in groups: SQLite takes no expression that is deeper than 1,000."""
    groups = [conditions[at : at + _GROUP] for at in range(0, len(conditions), _GROUP)]
    return " AND ".join(f"({' AND '.join(group)})" for group in groups)
