"""The tables of records in a DuckDB file, and the SQL that brings Parquet files into them.

There is no primary key: to delete by id and insert in one transaction is ten times cheaper.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from ploti.errors import SyncError
from ploti.model.columns import OP, RECORD_ID
from ploti.model.digest import Buckets, digest_sql
from ploti.model.schema import AddedColumn, Column, Schema
from ploti.model.sql import identifier
from ploti.sync.destination import TableError
from ploti.sync.parquet import parquet

ALIAS = "destination"
"""What the file is called inside the connection."""

_TYPES = {
    "string": "VARCHAR",
    "int64": "BIGINT",
    "float64": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "datetime": "TIMESTAMP",
    "json": "JSON",
    "geometry": "GEOMETRY",
}
_OF_THE_WHOLE = (
    duckdb.IOException,
    duckdb.FatalException,
    duckdb.InternalException,
    duckdb.OutOfMemoryException,
)


class Tables:
    """The tables of the default schema; every method raises TableError or SyncError."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def kind(self, table: str) -> str | None:
        """`BASE TABLE`, `VIEW`, or None where nothing has this name."""
        found = self._connection.execute(
            "SELECT table_type FROM information_schema.tables WHERE table_catalog = ?"
            " AND table_schema = 'main' AND lower(table_name) = lower(?)",
            [ALIAS, table],
        ).fetchone()
        return None if found is None else str(found[0])

    def load(self, table: str, schema: Schema, file: Path, *, exactly: bool = False) -> None:
        """Replace all rows; a table with the right columns stays, with what its owner added."""
        with said_of_the_table():
            rows = self._rows(schema, file)
            wanted, have = self._describe(rows), self._columns(table)
            if wanted == have or (wanted.items() <= have.items() and not exactly):
                self._connection.execute(f"DELETE FROM {_place(table)}")
                self._insert(table, schema, rows)
            else:
                self._connection.execute(f"CREATE OR REPLACE TABLE {_place(table)} AS {rows}")
            self._check_ids(table)

    def apply(self, table: str, schema: Schema, file: Path) -> None:
        """Delete every record that the file names, then insert those that it says to keep."""
        with said_of_the_table():
            self._check_columns(table, schema)
            self._check_operations(file)
            self._connection.execute(
                f"DELETE FROM {_place(table)} WHERE {identifier(RECORD_ID)} IN"
                f" (SELECT {identifier(RECORD_ID)} FROM {parquet(file)})"
            )
            rows = self._rows(schema, file)
            self._insert(table, schema, f"{rows} WHERE {identifier(OP)} = 'upsert'")

    def add_columns(self, table: str, columns: Sequence[AddedColumn]) -> None:
        """Add columns, null in every row; one that is there already is emptied."""
        with said_of_the_table():
            have = {name.lower() for name in self._columns(table)}
            for column in columns:
                name, place = identifier(column.name), _place(table)
                if column.name.lower() in have:
                    self._connection.execute(f"UPDATE {place} SET {name} = NULL")
                else:
                    self._connection.execute(
                        f"ALTER TABLE {place} ADD COLUMN {name} {_type(column.type)}"
                    )

    def drop(self, table: str) -> None:
        """Drop the table if it is there."""
        with said_of_the_table():
            self._connection.execute(f"DROP TABLE IF EXISTS {_place(table)}")

    def count(self, table: str) -> int:
        """The number of its rows."""
        with said_of_the_table():
            return self._number(f"SELECT count(*) FROM {_place(table)}")

    def record_ids(self, table: str, buckets: Collection[int]) -> list[str]:
        """The ids of its rows in these buckets."""
        name = f"{identifier(RECORD_ID)}::VARCHAR"
        with said_of_the_table():
            found = self._connection.execute(
                f"SELECT {name} FROM {_place(table)}"
                f" WHERE list_contains(?, left(sha256({name}), 2))",
                [[f"{bucket:02x}" for bucket in buckets]],
            )
            return [str(each) for (each,) in found.fetchall()]

    def buckets(self, table: str, schema: Schema) -> Buckets:
        """The digest of the table; a value that is no value of its column's type counts as null."""
        with said_of_the_table():
            have = self._columns(table)
            if RECORD_ID not in have:
                raise TableError(f"table {table} has no column {RECORD_ID}")
            values = {column.name: _read_back(column, have) for column in schema.columns}
            sql = digest_sql(schema, _place(table), values=values)
            return Buckets.from_sql(self._connection.execute(sql).fetchall())

    def _insert(self, table: str, schema: Schema, rows: str) -> None:
        names = ", ".join(map(identifier, _names(schema)))
        self._connection.execute(f"INSERT INTO {_place(table)} ({names}) {rows}")

    def _rows(self, schema: Schema, file: Path) -> str:
        """The SQL that reads a file's rows with the schema's columns in the table's types."""
        have = self._describe(f"SELECT * FROM {parquet(file)}")
        missing = [name for name in _names(schema) if name not in have]
        if missing:
            raise TableError(f"the file has no column {', '.join(missing)}")
        values = (_from_file(column, have[column.name]) for column in schema.columns)
        return f"SELECT {', '.join([identifier(RECORD_ID), *values])} FROM {parquet(file)}"

    def _describe(self, query: str) -> dict[str, str]:
        found = self._connection.execute(f"DESCRIBE {query}").fetchall()
        return {str(name): str(kind) for name, kind, *_ in found}

    def _columns(self, table: str) -> dict[str, str]:
        if self.kind(table) is None:
            return {}
        return self._describe(f"SELECT * FROM {_place(table)}")

    def _check_columns(self, table: str, schema: Schema) -> None:
        have = self._columns(table)
        wanted = {RECORD_ID: "VARCHAR"} | {c.name: _type(c.type) for c in schema.columns}
        for name, kind in wanted.items():
            if _bare(have.get(name, "missing")) != kind:
                raise TableError(f"column {name} of table {table} is {have.get(name, 'missing')}")

    def _check_operations(self, file: Path) -> None:
        other = self._number(
            f"SELECT count(*) FROM {parquet(file)}"
            f" WHERE {identifier(OP)} IS NULL OR {identifier(OP)} NOT IN ('upsert', 'delete')"
        )
        if other:
            raise TableError("the changes file has operations that this release does not know")

    def _check_ids(self, table: str) -> None:
        repeated = self._number(
            f"SELECT count(*) - count(DISTINCT {identifier(RECORD_ID)}) FROM {_place(table)}"
        )
        if repeated:
            raise TableError(f"the snapshot has {repeated} rows whose record id is not their own")

    def _number(self, query: str) -> int:
        found = self._connection.execute(query).fetchone()
        return int(found[0]) if found else 0


def _place(table: str) -> str:
    return f"{ALIAS}.main.{identifier(table)}"


def _names(schema: Schema) -> list[str]:
    return [RECORD_ID, *(column.name for column in schema.columns)]


def _type(type_: str) -> str:
    return _TYPES.get(type_) or type_.upper()


def _bare(kind: str) -> str:
    """A type as DuckDB names it, without the CRS of a geometry."""
    return "GEOMETRY" if kind.startswith("GEOMETRY(") else kind


def _from_file(column: Column, kind: str) -> str:
    """A value on its way into the table; a geometry keeps the CRS that its file gives it."""
    name = identifier(column.name)
    if column.type != "geometry":
        return f"{name}::{_type(column.type)} AS {name}"
    return f"st_geomfromwkb({name}) AS {name}" if kind == "BLOB" else name


def _read_back(column: Column, have: dict[str, str]) -> str:
    """A value of the table as the digest takes it, whatever was done to the table by hand."""
    name, kind = identifier(column.name), _bare(have.get(column.name, "missing"))
    if kind == "missing":
        return f"NULL::{'BLOB' if column.type == 'geometry' else _type(column.type)}"
    if column.type == "geometry":
        return f"st_aswkb({name})" if kind == "GEOMETRY" else f"TRY_CAST({name} AS BLOB)"
    return name if kind == _type(column.type) else f"TRY_CAST({name} AS {_type(column.type)})"


@contextmanager
def said_of_the_table() -> Iterator[None]:
    """Tell the faults of one table from those of the whole destination."""
    try:
        yield
    except duckdb.Error as error:
        if _is_of_the_whole(error):
            raise failure(error) from error
        raise TableError(first_line(error)) from error


def _is_of_the_whole(error: duckdb.Error) -> bool:
    """A commit fails by one error for two reasons: a full disk, or a constraint of a table's."""
    if isinstance(error, duckdb.TransactionException):
        return "constraint" not in str(error).lower()
    return isinstance(error, _OF_THE_WHOLE)


def failure(error: duckdb.Error) -> SyncError:
    """What ends a run, in a sentence."""
    what = "The disk is full" if "No space left" in str(error) else "The destination failed"
    return SyncError(f"{what}: {first_line(error)}")


def first_line(error: Exception) -> str:
    """An error's message without the SQL that DuckDB shows below it."""
    return str(error).partition("\n")[0]
