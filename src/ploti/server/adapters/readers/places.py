"""Columns of places in rows of Socrata: GeoJSON, or latitude and longitude beside an address."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from ploti.server.adapters.readers.geojson_geometry import to_wkb
from ploti.server.adapters.readers.remarks import Remark
from ploti.server.sources.pages import PageField

_SHAPES = {
    *("point", "multipoint", "line", "multiline", "polygon", "multipolygon"),
    *("Point", "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon"),
}
_GEOMETRIES = _SHAPES | {"GeometryCollection"}
_LOCATION = {"latitude", "longitude"}
_BESIDE = _LOCATION | {"human_address", "needs_recoding", "machine_address"}

Remarking = Callable[[Remark], None]


def is_shape(field: PageField) -> bool:
    """Whether a column is geometry and nothing else, by the source's own word."""
    return field.type in _SHAPES


def is_place_type(field: PageField) -> bool:
    """Whether a column has places, by the source's own word."""
    return is_shape(field) or field.type == "location"


def is_place(value: object) -> bool:
    """Whether a value is a place, in either form."""
    if not isinstance(value, Mapping):
        return False
    if value.get("type") in _GEOMETRIES:
        return "coordinates" in value or "geometries" in value
    return bool(value.keys() & _LOCATION) and value.keys() <= _BESIDE


def place_wkb(value: object, *, remark: Remarking) -> bytes | None:
    """The geometry of a place; None for one without coordinates, or with one of the two alone.

    Raises ValueError with the reason where it is no place.
    """
    if value is None:
        return None
    match value:
        case {"type": kind} if kind in _GEOMETRIES:
            return to_wkb(msgspec.json.encode(value), remark=remark)
        case Mapping():
            return _point(value, remark)
        case _:
            raise ValueError("its place is neither GeoJSON nor a latitude and a longitude")


def _point(place: Mapping[str, object], remark: Remarking) -> bytes | None:
    longitude, latitude = _degrees(place.get("longitude")), _degrees(place.get("latitude"))
    if longitude is None or latitude is None:
        remark(Remark.HALF_A_PLACE)
        return None
    point = {"type": "Point", "coordinates": [longitude, latitude]}
    return to_wkb(msgspec.json.encode(point), remark=remark)


def _degrees(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if abs(number) <= 360 else None
