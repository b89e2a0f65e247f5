"""Writes the snapshot of a first version: its rows in order, numbered as they come."""

from __future__ import annotations

from itertools import repeat
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from ploti.model.columns import BBOX, RECORD_ID
from ploti.model.digest import Buckets, digest_sql
from ploti.model.schema import Schema
from ploti.model.sql import literal
from ploti.server.adapters.engine.arrow import whole
from ploti.server.adapters.engine.ordering import new_rows
from ploti.server.adapters.engine.parquet import ParquetFile
from ploti.server.adapters.engine.rows import BATCH, float_boxes, record_ids
from ploti.server.adapters.engine.sealing import seal
from ploti.server.build.candidate import FileRole
from ploti.server.build.diff import NewRows
from ploti.server.build.groups import FULL
from ploti.server.build.layout import Layout, choose_encodings
from ploti.server.build.progress import Telling
from ploti.server.ports.building import Written


def write_first(
    connection: duckdb.DuckDBPyConnection,
    new: NewRows,
    *,
    folder: Path,
    schema: Schema,
    version: int,
    telling: Telling,
) -> Written:
    """Write new records as the snapshot of `version`, and prove it by its digest."""
    rows = new_rows(connection, new, path=folder / "new.arrow")
    first = rows.take(FULL)
    encodings = choose_encodings(schema, kept={}, distinct=distinct_shares(first.slice(0, BATCH)))
    layout = Layout(schema=schema, encodings=encodings)
    path = folder / "snapshot.parquet"
    with ParquetFile(path, layout=layout, envelope=(RECORD_ID,), sizes=repeat(FULL)) as file:
        start = 0
        while first.num_rows:
            file.add(new_records(first, schema=schema, version=version, start=start))
            start += first.num_rows
            telling.reach_rows(start)
            first = rows.take(FULL)
    return Written(
        snapshot=seal(path, role=FileRole.SNAPSHOT, format_=file_format(schema), rows=start),
        changes=None,
        buckets=digest_file(connection, path, schema=schema),
        geometry_types=sorted(file.extent.kinds),
    )


def file_format(schema: Schema) -> str:
    """The format of a dataset's Parquet files, as the API calls it."""
    return "geoparquet" if schema.geometry else "parquet"


def new_records(rows: pa.Table, *, schema: Schema, version: int, start: int) -> pa.Table:
    """Rows with the ids of a version's new records from number `start` on, and their boxes."""
    ids = record_ids(version, start=start, count=rows.num_rows)
    return with_boxes(rows.append_column(RECORD_ID, ids), schema=schema)


def with_boxes(rows: pa.Table, *, schema: Schema) -> pa.Table:
    """Rows with the boxes of their geometry, where there is one."""
    if schema.geometry is None:
        return rows
    geometry = whole(rows.column(schema.geometry.column))
    return rows.append_column(BBOX, float_boxes(geometry))


def distinct_shares(rows: pa.Table) -> dict[str, float]:
    """The share of different values in each column; of no values, one."""
    total = max(rows.num_rows, 1)
    return {
        name: pc.count_distinct(rows.column(name), mode="all").as_py() / total
        for name in rows.column_names
    }


def digest_file(connection: duckdb.DuckDBPyConnection, path: Path, *, schema: Schema) -> Buckets:
    """The digest of a finished snapshot, read back from the file."""
    sql = digest_sql(schema, f"read_parquet({literal(str(path))})")
    return Buckets.from_sql(connection.execute(sql).fetchall())
