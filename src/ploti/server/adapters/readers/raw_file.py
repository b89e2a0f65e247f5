"""The Parquet file in which a reader leaves its rows as text, batch by batch."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ploti.errors import SourceError
from ploti.model.admin import Finding
from ploti.model.sql import literal
from ploti.server.adapters.readers.arrow_text import AnyArray
from ploti.server.adapters.readers.iso_wkb import GeometryTypes, canonical, redrawn
from ploti.server.adapters.readers.remarks import Remark, Remarks
from ploti.server.sources.declaration import Declaration
from ploti.server.sources.raw import RawColumn, RawGeometry, RawKind, RawTable

MOST_COLUMNS = 2000
"""A source with more has data where names belong."""

_GEOMETRY = "geometry"
_BATCH_ROWS = 20_000
_BATCH_BYTES = 16 << 20


def check_width(columns: int) -> None:
    """Raise SourceError where a source has too many columns."""
    if columns > MOST_COLUMNS:
        raise SourceError(f"the source has {columns:,} columns, and may have {MOST_COLUMNS:,}")


def refuse_points(declaration: Declaration) -> None:
    """Raise SourceError where columns are declared as the geometry of a source that has its own."""
    if declaration.geometry:
        raise SourceError(
            "the source brings its own geometry: leave longitude and latitude out of the"
            " declaration's geometry"
        )


class Stated(NamedTuple):
    """A column as its source states it: its name, what its values are, its type if it has one."""

    name: str
    kind: RawKind
    type: str | None = None


class RawFile:
    """Rows in the source's order: fields of text `c0`, `c1`, …, and canonical WKB if `spatial`.

    NULs and halves of surrogate pairs are set right here, and counted.
    """

    def __init__(self, folder: str, *, width: int, spatial: bool) -> None:
        """Begin a file in `folder`; raises SourceError where it would have too many columns."""
        check_width(width)
        self.remarks = Remarks()
        self.rows = 0
        self._path = str(Path(folder) / "rows.parquet")
        self._names = [f"c{number}" for number in range(width)]
        self._types = GeometryTypes() if spatial else None
        if not self._names and not spatial:
            raise SourceError("the source has no columns")
        fields: list[pa.Field[Any]] = [pa.field(name, pa.string()) for name in self._names]
        if spatial:
            fields.append(pa.field(_GEOMETRY, pa.binary()))
        self._schema = pa.schema(fields)
        with _room():
            self._writer = pq.ParquetWriter(self._path, self._schema, compression="snappy")

    def __enter__(self) -> Self:
        """The file itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Finish the file; after an error what it holds does not matter."""
        with _room():
            self._writer.close()

    def write(
        self, texts: Sequence[AnyArray], *, geometry: Sequence[bytes | None] | None = None
    ) -> None:
        """Append a batch of strings, a column each, and of geometries in any flavour of WKB.

        Raises SourceError where a geometry cannot be read, or the file grows too large.
        """
        columns = [self._without_nul(column) for column in texts]
        if self._types and geometry is not None:
            written = canonical(geometry, first=self.rows + 1)
            self._types.add(written)
            for row, each in enumerate(geometry, self.rows + 1):
                if each and (remark := redrawn(each)):
                    self.remarks.add(remark, place=f"row {row:,}")
            columns.append(pa.array(written, pa.binary()))
        batch = pa.Table.from_arrays(columns, schema=self._schema)
        with _room():
            self._writer.write_table(batch, row_group_size=max(batch.num_rows, 1))
        self.rows += batch.num_rows

    def strings(self, values: Sequence[str | None]) -> AnyArray:
        """A column for `write`, halves of surrogate pairs set right."""
        try:
            return pa.array(values, pa.string())
        except UnicodeEncodeError:
            return pa.array([*map(self._whole, count(self.rows + 1), values)], pa.string())

    def table(
        self, columns: Sequence[Stated], *, crs: str | None = None, findings: Sequence[Finding] = ()
    ) -> RawTable:
        """What was written, with what the source says of it; `crs` where it is known."""
        geometry = None
        if self._types:
            geometry = RawGeometry(field=_GEOMETRY, crs=crs, types=self._types.names())
        return RawTable(
            relation=f"read_parquet({literal(self._path)})",
            columns=[
                RawColumn(source_name=name, kind=kind, field=field, type=type_)
                for (name, kind, type_), field in zip(columns, self._names, strict=True)
            ],
            geometry=geometry,
            findings=[*findings, *self.remarks.findings()],
            rows=self.rows,
        )

    def _whole(self, row: int, text: str | None) -> str | None:
        if text is None:
            return None
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if whole != text:
            self.remarks.add(Remark.SURROGATE_REPLACED, place=f"row {row:,}")
        return whole

    def _without_nul(self, column: AnyArray) -> AnyArray:
        found: list[Any] = pc.indices_nonzero(pc.match_substring(column, "\0")).to_pylist()
        if not found:
            return column
        for at in found:
            self.remarks.add(Remark.NUL_REMOVED, place=f"row {self.rows + 1 + at:,}")
        return pc.replace_substring(column, "\0", "")


class RawRows:
    """Rows of Python texts, gathered into batches for a file."""

    def __init__(self, file: RawFile, *, width: int, spatial: bool) -> None:
        self._file = file
        self._width = width
        self._spatial = spatial
        self._rows: list[Sequence[str | None]] = []
        self._geometries: list[bytes | None] = []
        self._bytes = 0

    def add(self, values: Sequence[str | None], *, geometry: bytes | None = None) -> None:
        """Append one row, a text a column."""
        self._rows.append(values)
        self._bytes += sum(map(len, filter(None, values)))
        if self._spatial:
            self._geometries.append(geometry)
            self._bytes += len(geometry or b"")
        if len(self._rows) >= _BATCH_ROWS or self._bytes >= _BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand over what is gathered; the last batch is not written before."""
        columns = list(zip(*self._rows, strict=True)) if self._rows else [()] * self._width
        self._file.write(
            [self._file.strings(column) for column in columns],
            geometry=self._geometries if self._spatial else None,
        )
        self._rows, self._geometries, self._bytes = [], [], 0


@contextmanager
def _room() -> Iterator[None]:
    """Room on the disk and below the limit of a file's size is the source's to keep to."""
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.EFBIG, errno.ENOSPC, errno.EDQUOT}:
            raise
        raise SourceError("the source unpacks to more than there is room for") from None
