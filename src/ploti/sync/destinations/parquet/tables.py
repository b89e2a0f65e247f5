"""The files of records: a snapshot is taken as it comes, changes are folded into a new file."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection
from pathlib import Path

import duckdb

from ploti.errors import SyncError
from ploti.model.columns import BBOX, OP, RECORD_ID
from ploti.model.digest import Buckets
from ploti.model.schema import Schema
from ploti.model.sql import identifier, literal
from ploti.sync.destination import TableError
from ploti.sync.parquet import Rows, parquet, sql_type

_ID = identifier(RECORD_ID)
_GROUP = 122_880


class Tables:
    """Works on files by their paths; every method raises TableError for a fault of one."""

    def __init__(self, engine: duckdb.DuckDBPyConnection) -> None:
        self._engine = engine

    def take(self, schema: Schema, snapshot: Path, to: Path) -> None:
        """Make a snapshot, byte for byte, the new file; its ids are looked at first."""
        rows = Rows(self._engine, snapshot)
        rows.check_columns(schema)
        repeated = rows.number(f"count(*) - count(DISTINCT {_ID})")
        if repeated:
            raise TableError(f"the snapshot has {repeated} rows whose record id is not their own")
        shutil.copyfile(snapshot, to)
        _settle(to)

    def fold(self, schema: Schema, base: Path, changes: Path, to: Path) -> None:
        """Write the base with the changes applied, in the order of record ids, as a new file.

        A column that the base has not yet is null in its rows (S-16: it comes with this version).
        """
        if not base.exists():
            raise TableError(f"there is no file {base.name}")
        old, new = Rows(self._engine, base), Rows(self._engine, changes)
        new.check_operations()
        new.check_columns(schema)
        has_box = BBOX in old.columns and BBOX in new.columns
        query = (
            f"SELECT {_cells(schema, old, has_box=has_box)} FROM {parquet(base)}"
            f" WHERE {_ID} NOT IN (SELECT {_ID} FROM {parquet(changes)})"
            f" UNION ALL SELECT {_cells(schema, new, has_box=has_box)} FROM {parquet(changes)}"
            f" WHERE {identifier(OP)} = 'upsert' ORDER BY 1"
        )
        metadata = _geo(old.metadata("geo"), new.metadata("geo"), has_box=has_box)
        kept = f", KV_METADATA {{geo: {literal(metadata)}}}" if metadata else ""
        self._write(
            f"COPY ({query}) TO {literal(str(to))} (FORMAT parquet, COMPRESSION zstd,"
            f" ROW_GROUP_SIZE {_GROUP}, GEOPARQUET_VERSION 'NONE'{kept})"
        )
        _settle(to)

    def count(self, file: Path) -> int:
        """The number of rows."""
        return self._rows(file).number("count(*)")

    def record_ids(self, file: Path, buckets: Collection[int]) -> list[str]:
        """The ids of the rows in these buckets."""
        return self._rows(file).ids_in(buckets)

    def buckets(self, file: Path, schema: Schema) -> Buckets:
        """The digest of the file; a value that is no value of its column's type counts as null."""
        return self._rows(file).buckets(schema)

    def _rows(self, file: Path) -> Rows:
        if not file.exists():
            raise TableError(f"there is no file {file.name}")
        return Rows(self._engine, file)

    def _write(self, copy: str) -> None:
        try:
            self._engine.execute(copy)
        except duckdb.Error as error:
            said = str(error).partition("\n")[0]
            if isinstance(error, duckdb.IOException | duckdb.OutOfMemoryException):
                what = "The disk is full" if "No space left" in said else "The folder failed"
                raise SyncError(f"{what}: {said}") from error
            raise TableError(f"the files cannot be put together: {said}") from error


def _cells(schema: Schema, rows: Rows, *, has_box: bool) -> str:
    """Record id, columns and covering box of a file's rows, geometries as WKB."""
    have = rows.columns
    cells = [_ID]
    for column in schema.columns:
        kind = "BLOB" if column.type == "geometry" else sql_type(column.type)
        value = rows.value(column) if column.name in have else f"NULL::{kind}"
        cells.append(f"{value} AS {identifier(column.name)}")
    return ", ".join([*cells, identifier(BBOX)] if has_box else cells)


def _geo(base: str | None, changes: str | None, *, has_box: bool) -> str | None:
    """The base's description of its geometry, widened by the changes'."""
    if base is None or changes is None:
        return base
    found, more = json.loads(base), json.loads(changes)
    for name, column in found["columns"].items():
        other = more["columns"].get(name, {})
        types = {*column["geometry_types"], *other.get("geometry_types", [])}
        column["geometry_types"] = sorted(types)
        if "bbox" in column and "bbox" in other:
            column["bbox"] = _around(column["bbox"], other["bbox"])
        elif "bbox" in other:
            column["bbox"] = other["bbox"]
        if not has_box:
            column.pop("covering", None)
    return json.dumps(found)


def _around(one: list[float], other: list[float]) -> list[float]:
    """The box round both; boxes of two and of three dimensions meet in two."""
    if len(one) != len(other):
        one, other = (_flat(each) for each in (one, other))
    middle = len(one) // 2
    least = [min(pair) for pair in zip(one[:middle], other[:middle], strict=True)]
    return least + [max(pair) for pair in zip(one[middle:], other[middle:], strict=True)]


def _flat(box: list[float]) -> list[float]:
    return box if len(box) == 4 else [box[0], box[1], box[3], box[4]]


def _settle(file: Path) -> None:
    """Wait until a file's bytes are on the disk."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
