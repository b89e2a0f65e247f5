"""Reads the rows of a paged source, as the fetcher keeps them: a description, then a row a line."""

from __future__ import annotations

from functools import partial

import msgspec

from ploti.server.adapters.readers import page_rows, places
from ploti.server.adapters.readers.iso_wkb import GeometryTypes
from ploti.server.adapters.readers.json_columns import GEOMETRY, Columns, Parts, Row
from ploti.server.adapters.readers.json_mending import mend
from ploti.server.adapters.readers.page_fields import Stated, is_unknown, stated
from ploti.server.adapters.readers.page_rows import Features, Records, Shaping
from ploti.server.adapters.readers.remarks import Remark, Remarks
from ploti.server.sources import pages as paged
from ploti.server.sources.declaration import Declaration
from ploti.server.sources.pages import Pages
from ploti.server.sources.raw import RawColumn, RawGeometry, RawKind, RawTable

_BATCH_ROWS = 20_000
_BATCH_BYTES = 16 << 20
_DEGREES = "EPSG:4326"


class PagesReader:
    """Rows of ArcGIS, Socrata and CKAN; columns are those that the source says it has."""

    format = paged.FORMAT

    def matches(self, name: str, head: bytes) -> bool:
        """Whether the head is a description's."""
        del name
        return paged.is_pages(head)

    def read(self, path: str, *, declaration: Declaration, folder: str) -> RawTable:
        """Read the rows, twice where a column turns out to hold strings and nested values."""
        pages = page_rows.describe(path)
        page_rows.refuse_own_points(pages, declaration)
        place = page_rows.find_place(path, pages, declaration)
        declared = declaration.columns
        as_json = frozenset(name for name, kind in declared.items() if kind == "json")
        read = partial(_Reading, folder, pages, place, as_text=frozenset(declared) - as_json)
        reading = read(as_json=as_json)
        page_rows.take_rows(path, reading.add)
        if unclear := reading.columns.unclear():
            reading = read(as_json=as_json | unclear)
            page_rows.take_rows(path, reading.add)
        return reading.table()


class _Reading:
    """One pass over a state."""

    def __init__(
        self,
        folder: str,
        pages: Pages,
        place: str | None,
        *,
        as_json: frozenset[str],
        as_text: frozenset[str],
    ) -> None:
        self._pages = pages
        self._place = place
        names = [field.name for field in pages.fields]
        self.columns = Columns(as_json=as_json, as_text=as_text, names=names)
        self._stated = {field.name: stated(field, pages) for field in pages.fields}
        is_layer = pages.kind == "arcgis"
        self._shaping: Shaping = Features(pages.shapes) if is_layer else Records(place)
        self._parts = Parts(folder, name="rows")
        self._remarks = Remarks()
        self._types = GeometryTypes()
        self._count = 0
        self._rows: list[Row] = []
        self._geometries: list[bytes | None] = []
        self._bytes = 0

    def add(self, number: int, text: bytes) -> None:
        """Take the next row; raises ValueError or DecodeError where it is none."""
        self._count = number
        if b"\\u0000" in text:
            text = mend(text, remark=self._remark)
        try:
            row, geometry = self._shaping.row(text, self._remark)
        except msgspec.DecodeError:
            row, geometry = self._shaping.row(mend(text, remark=self._remark), self._remark)
        self._types.add([geometry])
        self._rows.append(Row(self._converted(row.values), row.text))
        self._geometries.append(geometry)
        self._bytes += len(text)
        if len(self._rows) == _BATCH_ROWS or self._bytes >= _BATCH_BYTES:
            self._flush()

    def table(self) -> RawTable:
        """The table that was read."""
        self._flush()
        self._parts.close()
        for field in self._pages.fields:
            if is_unknown(field, self._pages):
                place = f"{field.name} ({field.type})"
                self._remarks.add(Remark.FIELD_TYPE_UNKNOWN, place=place)
        return RawTable(
            relation=self._parts.relation(),
            columns=self._columns(),
            geometry=self._geometry(),
            findings=self._remarks.findings(),
            rows=self._count,
        )

    def _columns(self) -> list[RawColumn]:
        """The columns; one that is the geometry, and by the source's word nothing else, is none."""
        told = {field.name: field for field in self._pages.fields}
        shape = self._place and self._place in told and places.is_shape(told[self._place])
        return [
            self._column(name, f"c{number}", told[name].description if name in told else None)
            for number, name in enumerate(self.columns.names)
            if not (shape and name == self._place)
        ]

    def _column(self, name: str, field: str, description: str | None) -> RawColumn:
        kind, known = self.columns.kind(name), self._stated.get(name)
        if known is None or (kind is RawKind.JSON and known.kind is not RawKind.JSON):
            known = Stated(kind)
        return RawColumn(
            source_name=name,
            kind=known.kind,
            field=field,
            type=known.type,
            description=description,
            made_up=name in self._pages.system,
        )

    def _geometry(self) -> RawGeometry | None:
        shapes = self._pages.shapes
        if shapes is None and self._place is None:
            return None
        crs = page_rows.reference_system(shapes.reference) if shapes else _DEGREES
        return RawGeometry(field=GEOMETRY, crs=crs, types=self._types.names())

    def _converted(self, values: dict[str, object]) -> dict[str, object]:
        for name, value in values.items():
            known = self._stated.get(name)
            if known and known.convert and value is not None:
                values[name] = known.convert(value)
        return values

    def _flush(self) -> None:
        self._parts.write(self.columns.arrays(self._rows), geometry=self._geometries)
        self._rows, self._geometries, self._bytes = [], [], 0

    def _remark(self, remark: Remark) -> None:
        self._remarks.add(remark, place=f"row {self._count:,}")
