"""Reads Parquet and GeoParquet, batch by batch, with every value's text exact."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ploti.errors import SourceError
from ploti.model.admin import Finding
from ploti.server.adapters.readers import arrow_text
from ploti.server.adapters.readers.geoarrow import ENCODINGS, to_wkb
from ploti.server.adapters.readers.geoparquet_metadata import ParquetGeometry, parquet_geometry
from ploti.server.adapters.readers.raw_file import RawFile, Stated, refuse_points
from ploti.server.sources.declaration import Declaration
from ploti.server.sources.raw import RawKind, RawTable

_MAGIC = b"PAR1"
_BATCH_ROWS = 20_000
_BATCH_BYTES = 16 << 20


class ParquetReader:
    """Parquet; one that says which column is its geometry is read as GeoParquet is."""

    format = "parquet"

    def matches(self, name: str, head: bytes) -> bool:
        """Whether the head is that of a Parquet file."""
        del name
        return head.startswith(_MAGIC)

    def read(self, path: str, *, declaration: Declaration, folder: str) -> RawTable:
        """Read the rows into `folder`."""
        with _reason(), pq.ParquetFile(path, memory_map=False, pre_buffer=False) as file:
            geometry = parquet_geometry(file)
            if geometry:
                refuse_points(declaration)
            return _Reading(file, geometry=geometry).read(folder)


class GeoParquetReader(ParquetReader):
    """Parquet whose geometry is stated."""

    format = "geoparquet"

    def matches(self, name: str, head: bytes) -> bool:
        """Never by itself: `ParquetReader` reads both."""
        del name, head
        return False

    def read(self, path: str, *, declaration: Declaration, folder: str) -> RawTable:
        """Read the rows into `folder`; raises SourceError for a file without geometry."""
        table = super().read(path, declaration=declaration, folder=folder)
        if table.geometry is None:
            raise SourceError("the file does not say which column is its geometry: no GeoParquet")
        return table


class _Reading:
    """One pass over a file."""

    def __init__(self, file: pq.ParquetFile, *, geometry: ParquetGeometry | None) -> None:
        self._file = file
        self._geometry = geometry
        apart = geometry.covering | {geometry.column} if geometry else frozenset()
        self._fields = [
            (place, field)
            for place, field in enumerate(file.schema_arrow)
            if field.name not in apart
        ]

    def read(self, folder: str) -> RawTable:
        spatial = self._geometry is not None
        with RawFile(folder, width=len(self._fields), spatial=spatial) as raw:
            for batch in self._batches():
                raw.write(
                    [arrow_text.texts(batch[place], name=f.name) for place, f in self._fields],
                    geometry=self._wkb(batch),
                )
        table = raw.table(
            [
                Stated(f.name, arrow_text.kind(f.type), arrow_text.stated_type(f.type))
                for _, f in self._fields
            ],
            crs=self._geometry.crs if self._geometry else None,
        )
        self._check_count(raw.rows)
        return _with_findings(table, self._geometry)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """Batches of some megabytes, as far as the file's own figures can be trusted."""
        metadata = self._file.metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        widest = max((g.total_byte_size // max(g.num_rows, 1) for g in groups), default=1)
        rows = min(_BATCH_ROWS, max(1, _BATCH_BYTES // max(widest, 1)))
        yield from self._file.iter_batches(batch_size=rows)

    def _wkb(self, batch: pa.RecordBatch) -> list[bytes | None] | None:
        if self._geometry is None:
            return None
        column: Any = batch[batch.schema.names.index(self._geometry.column)]
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        if self._geometry.encoding in ENCODINGS:
            return to_wkb(column, encoding=self._geometry.encoding)
        if arrow_text.kind(column.type) is not RawKind.STRING:
            raise SourceError(f"the geometry '{self._geometry.column}' is no WKB: {column.type}")
        return column.cast(pa.large_binary()).to_pylist()  # type: ignore[no-any-return]

    def _check_count(self, rows: int) -> None:
        if rows != self._file.metadata.num_rows:
            raise SourceError(
                f"the file holds {rows:,} rows and says {self._file.metadata.num_rows:,}"
            )


def _with_findings(table: RawTable, geometry: ParquetGeometry | None) -> RawTable:
    if geometry is None or table.geometry is None:
        return table
    found: list[Finding] = []
    if geometry.types and geometry.types != table.geometry.types:
        message = (
            f"the file states the geometry types {', '.join(geometry.types)},"
            f" and has {', '.join(table.geometry.types) or 'none'}"
        )
        found.append(Finding(reason=None, kind="geometry_types", message=message))
    if geometry.others:
        message = "further geometry columns were read as WKB in hex"
        others = sorted(geometry.others)
        found.append(
            Finding(reason=None, kind="geometry_as_text", message=message, examples=others)
        )
    return RawTable(
        relation=table.relation,
        columns=table.columns,
        geometry=table.geometry,
        findings=[*table.findings, *found],
        rows=table.rows,
    )


@contextmanager
def _reason() -> Iterator[None]:
    try:
        yield
    except MemoryError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"the Parquet file cannot be read: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
