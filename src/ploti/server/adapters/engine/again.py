"""Writes the records of a version again, under ids that they are given."""

from __future__ import annotations

from itertools import repeat
from pathlib import Path

import duckdb

from ploti.model.columns import RECORD_ID
from ploti.server.adapters.engine.parquet import ParquetFile, kept_encodings
from ploti.server.adapters.engine.rows import BATCH, Rows
from ploti.server.adapters.engine.sealing import seal
from ploti.server.adapters.engine.snapshot import digest_file, file_format, with_boxes
from ploti.server.build.candidate import Base, FileRole
from ploti.server.build.groups import FULL
from ploti.server.build.layout import Layout
from ploti.server.build.progress import Telling
from ploti.server.ports.building import Written


def write_again(
    connection: duckdb.DuckDBPyConnection, sql: str, *, path: Path, base: Base, telling: Telling
) -> Written:
    """Write rows that have a version's columns and their ids as a snapshot, laid out as its own."""
    rows = Rows.of(connection.sql(sql).to_arrow_reader(BATCH))
    layout = Layout(schema=base.schema, encodings=kept_encodings(base.snapshot))
    with ParquetFile(path, layout=layout, envelope=(RECORD_ID,), sizes=repeat(FULL)) as file:
        given = 0
        for part in rows.parts(BATCH):
            file.add(with_boxes(part, schema=base.schema))
            given += part.num_rows
            telling.reach_rows(given)
    return Written(
        snapshot=seal(
            path, role=FileRole.SNAPSHOT, format_=file_format(base.schema), rows=file.rows
        ),
        changes=None,
        buckets=digest_file(connection, path, schema=base.schema),
        geometry_types=sorted(file.extent.kinds),
    )
