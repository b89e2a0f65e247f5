"""Rows of paged sources out of their texts: values by name, and a geometry."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from ploti.errors import SourceError
from ploti.server.adapters.readers import places
from ploti.server.adapters.readers.crs_names import from_code, from_wkt
from ploti.server.adapters.readers.esri_geometry import to_wkb
from ploti.server.adapters.readers.json_columns import Number, Row
from ploti.server.adapters.readers.remarks import Remark
from ploti.server.sources import pages as paged
from ploti.server.sources.declaration import Declaration
from ploti.server.sources.pages import Pages, Shapes

_LONGEST_DESCRIPTION = 16 << 20
_FIRST_OF_ESRI = 32768
"""Numbers of reference systems from here on are Esri's own."""


class _Feature(msgspec.Struct):
    attributes: msgspec.Raw
    geometry: msgspec.Raw = msgspec.Raw(b"null")


_values = msgspec.json.Decoder(dict[str, object], float_hook=Number)
_feature = msgspec.json.Decoder(_Feature)
_plain = msgspec.json.Decoder()

Remarking = Callable[[Remark], None]
Taking = Callable[[int, bytes], None]
"""Takes the number of a row, from 1, and its text."""


class Shaping(Protocol):
    """Makes rows out of their texts."""

    def row(self, text: bytes, remark: Remarking) -> tuple[Row, bytes | None]:
        """A row's values and its geometry; raises ValueError or DecodeError where it is none."""
        ...


class Features:
    """Rows of ArcGIS: attributes beside a geometry."""

    def __init__(self, shapes: Shapes | None) -> None:
        self._shapes = shapes

    def row(self, text: bytes, remark: Remarking) -> tuple[Row, bytes | None]:
        """The attributes, and the geometry as WKB."""
        feature = _feature.decode(text)
        row = Row(_values.decode(feature.attributes), feature.attributes)
        if self._shapes is None:
            return row, None
        geometry = _plain.decode(feature.geometry)
        return row, to_wkb(geometry, shapes=self._shapes, remark=remark)


class Records:
    """Rows of Socrata and CKAN: values alone, of which one may be a place."""

    def __init__(self, place: str | None) -> None:
        self._place = place

    def row(self, text: bytes, remark: Remarking) -> tuple[Row, bytes | None]:
        """The values, and the place as WKB."""
        row = Row(_values.decode(text), msgspec.Raw(text))
        if self._place is None or row.values.get(self._place) is None:
            return row, None
        return row, places.place_wkb(_plain.decode(text)[self._place], remark=remark)


def take_rows(path: str, take: Taking) -> None:
    """Hand over each row after the description; raises SourceError naming one that is broken."""
    with Path(path).open("rb") as file:
        file.readline(_LONGEST_DESCRIPTION)
        for number, line in enumerate(file, 1):
            try:
                take(number, line)
            except (ValueError, msgspec.DecodeError, RecursionError) as error:
                raise SourceError(f"row {number:,} cannot be read: {error}") from None


def describe(path: str) -> Pages:
    """What the state's first line says."""
    with Path(path).open("rb") as file:
        return paged.description(file.readline(_LONGEST_DESCRIPTION))


def find_place(path: str, pages: Pages, declaration: Declaration) -> str | None:
    """The column of Socrata whose places are the rows' geometry; None where there is none.

    The first that is said to have places; where the source does not say types, the first that has
    nothing else. One whose type is declared is left as it is.
    """
    if pages.kind != "socrata" or declaration.geometry:
        return None
    if any(field.type for field in pages.fields):
        found = [field.name for field in pages.fields if places.is_place_type(field)]
    else:
        found = _places_by_value(path)
    return next((name for name in found if name not in declaration.columns), None)


def _places_by_value(path: str) -> list[str]:
    """The columns of which every value is a place, in the order in which they come."""
    are: dict[str, bool] = {}

    def look(number: int, text: bytes) -> None:
        del number
        try:
            values = _plain.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return  # the reading itself mends it, or says what is wrong
        for name, value in values.items() if isinstance(values, dict) else ():
            if value is not None:
                are[name] = are.get(name, True) and places.is_place(value)

    take_rows(path, look)
    return [name for name, all_are in are.items() if all_are]


def reference_system(reference: dict[str, object] | None) -> str | None:
    """The system of an ArcGIS layer: by its latest number, its first one, or its text.

    Raises SourceError where that is not known.
    """
    match reference or {}:
        case {"latestWkid": int(number)} | {"wkid": int(number)}:
            return from_code("EPSG" if number < _FIRST_OF_ESRI else "ESRI", number)
        case {"wkt": str(text)} | {"wkt2": str(text)}:
            return from_wkt(text)
        case _:
            return None


def refuse_own_points(pages: Pages, declaration: Declaration) -> None:
    """Raise SourceError where columns are declared as the geometry of a layer that has its own."""
    if pages.shapes and declaration.geometry:
        raise SourceError(
            "the layer brings its own geometry: leave longitude and latitude out of the"
            " declaration's geometry"
        )
