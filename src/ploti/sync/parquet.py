"""Rows out of snapshots and changes files, for destinations that DuckDB does not write itself."""

from __future__ import annotations

import fcntl
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import duckdb

from ploti.model.columns import OP, RECORD_ID
from ploti.model.digest import Buckets, digest_sql
from ploti.model.schema import Column, Schema
from ploti.model.sql import identifier, literal
from ploti.sync.destination import TableError

_BATCH = 10_000
_PIECE = 1 << 20

Row = tuple[object, ...]
Written = Callable[[str, str], str]
"""Gives the SQL of a destination's value for a column's type and the SQL of its value."""


def parquet(file: Path) -> str:
    """The file as what may stand after FROM; the path is no pattern, whatever it has in it."""
    return f"read_parquet({literal(escaped(file))}, hive_partitioning = false)"


def escaped(file: Path) -> str:
    """The file's path as a pattern that matches it alone."""
    return re.sub(r"([*?\[])", r"[\1]", str(file))


class Rows:
    """The rows of one file, read in batches; every method raises TableError for a fault of it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, file: Path) -> None:
        self._connection = connection
        self._file = parquet(file)
        self._path = escaped(file)

    def read(self, schema: Schema, written: Written) -> Iterator[Row]:
        """The record id and the schema's columns of each row."""
        return self._select(self._values(schema, written))

    def upserts(self, schema: Schema, written: Written) -> Iterator[Row]:
        """The same, of the rows that a changes file says to keep."""
        return self._select(self._values(schema, written), f"WHERE {identifier(OP)} = 'upsert'")

    @cached_property
    def columns(self) -> Mapping[str, str]:
        """The columns of the file, with DuckDB's type of each."""
        found = self._run(f"DESCRIBE FROM {self._file}").fetchall()
        return {str(name): str(kind) for name, kind, *_ in found}

    def check_columns(self, schema: Schema) -> None:
        """Make sure that the file has the record id and every column of the schema."""
        self._values(schema, lambda _type, value: value)

    def number(self, what: str) -> int:
        """One number of the whole file, such as `count(*)`."""
        found = self._run(f"FROM {self._file} SELECT {what}").fetchone()
        return int(found[0]) if found else 0

    def metadata(self, key: str) -> str | None:
        """A text of the file's own metadata, None where it has none of this name."""
        found = self._run(
            f"SELECT decode(value) FROM parquet_kv_metadata({literal(self._path)})"  # noqa: S608
            f" WHERE decode(key) = {literal(key)}"
        ).fetchone()
        return None if found is None else str(found[0])

    def ids_in(self, buckets: Collection[int]) -> list[str]:
        """The record ids that lie in these buckets of the digest."""
        name = f"{identifier(RECORD_ID)}::VARCHAR"
        wanted = ", ".join(f"'{bucket:02x}'" for bucket in buckets)
        where = f"WHERE list_contains([{wanted}]::VARCHAR[], left(sha256({name}), 2))"
        return [str(each) for (each,) in self._select(name, where)]

    def buckets(self, schema: Schema) -> Buckets:
        """The digest of the file's rows; a missing column and a value of no fit count as null."""
        have = self.columns
        if RECORD_ID not in have:
            raise TableError(f"the file has no column {RECORD_ID}")
        values = {column.name: _as_read(column, have.get(column.name)) for column in schema.columns}
        return Buckets.from_sql(self._run(digest_sql(schema, self._file, values=values)).fetchall())

    def value(self, column: Column) -> str:
        """The SQL of a column's value in its type, a geometry as WKB."""
        return _from_file(column, self.columns[column.name])

    def csv(self, schema: Schema, written: Written) -> Iterator[bytes]:
        """The same as `read`, as CSV in pieces: a null is nothing, an empty text is quoted."""
        return self._csv(self._values(schema, written))

    def csv_changes(self, schema: Schema, written: Written) -> Iterator[bytes]:
        """All rows of a changes file as CSV, each after whether it is one to keep."""
        self.check_operations()
        kept = f"{identifier(OP)} = 'upsert'"
        return self._csv(f"{kept}, {self._values(schema, written)}")

    def record_ids(self) -> Iterator[Row]:
        """The id of every record that the file names, each in a tuple of its own."""
        return self._select(identifier(RECORD_ID))

    def check_operations(self) -> None:
        """Make sure that a changes file has no operation that is not known."""
        known = f"{identifier(OP)} IN ('upsert', 'delete')"
        if next(self._select("1", f"WHERE ({known}) IS NOT TRUE LIMIT 1"), None) is not None:
            raise TableError("the changes file has operations that this release does not know")

    def _values(self, schema: Schema, written: Written) -> str:
        have = self.columns
        missing = [each.name for each in schema.columns if each.name not in have]
        if missing or RECORD_ID not in have:
            raise TableError(f"the file has no column {', '.join(missing or [RECORD_ID])}")
        values = (written(each.type, _from_file(each, have[each.name])) for each in schema.columns)
        return ", ".join([identifier(RECORD_ID), *values])

    def _csv(self, what: str) -> Iterator[bytes]:
        """What DuckDB writes into a pipe, while it writes it."""
        source, sink = os.pipe()
        _widen(source)
        query = (
            f"COPY (FROM {self._file} SELECT {what}) TO '/dev/fd/{sink}'"
            " (FORMAT csv, HEADER false, USE_TMP_FILE false)"
        )
        with ThreadPoolExecutor(1) as writer:
            try:
                writing = writer.submit(self._write, query, sink)
                while piece := os.read(source, _PIECE):
                    yield piece
            finally:
                # A reader that gives up breaks the pipe, and so ends the writer.
                os.close(source)
            writing.result()

    def _write(self, query: str, sink: int) -> None:
        try:
            self._run(query)
        finally:
            os.close(sink)

    def _select(self, what: str, where: str = "") -> Iterator[Row]:
        result = self._run(f"FROM {self._file} SELECT {what} {where}")
        while rows := _fetch(result):
            yield from rows

    def _run(self, query: str) -> duckdb.DuckDBPyConnection:
        try:
            return self._connection.cursor().execute(query)
        except duckdb.Error as error:
            raise _fault(error) from error


def _widen(pipe: int) -> None:
    """Let a pipe hold a whole piece, where the system can; what is shorter is dearer to hand on."""
    if sys.platform == "linux":
        with suppress(OSError):  # of all that this user may have, too much is taken
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIECE)


def _from_file(column: Column, kind: str) -> str:
    """A value of the file in its column's type; a geometry as WKB."""
    name = identifier(column.name)
    if column.type == "geometry":
        return name if kind == "BLOB" else f"st_aswkb({name})"
    return f"{name}::{sql_type(column.type)}"


def _as_read(column: Column, kind: str | None) -> str:
    """A value as the digest takes it, whatever the file has for it."""
    wanted = "BLOB" if column.type == "geometry" else sql_type(column.type)
    if kind is None:
        return f"NULL::{wanted}"
    if column.type == "geometry":
        return _from_file(column, kind)
    name = identifier(column.name)
    return name if kind == wanted else f"TRY_CAST({name} AS {wanted})"


def sql_type(type_: str) -> str:
    """DuckDB's type for a column's, geometries and instants apart."""
    plain = {"string": "VARCHAR", "json": "VARCHAR", "int64": "BIGINT", "float64": "DOUBLE"}
    plain |= {"timestamp": "TIMESTAMP WITH TIME ZONE", "datetime": "TIMESTAMP"}
    return plain.get(type_) or type_.upper()


def _fetch(result: duckdb.DuckDBPyConnection) -> list[Row]:
    try:
        return result.fetchmany(_BATCH)
    except duckdb.Error as error:
        raise _fault(error) from error


def _fault(error: duckdb.Error) -> TableError:
    return TableError(f"the file cannot be read: {str(error).partition(chr(10))[0]}")
