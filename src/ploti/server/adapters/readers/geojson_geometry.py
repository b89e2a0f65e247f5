"""GeoJSON geometries as little-endian ISO WKB, coordinate for coordinate."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from math import nan

import msgspec

from ploti.server.adapters.readers.remarks import Remark

Position = list[float]
Line = list[Position]

_CODES = {
    "Point": 1,
    "LineString": 2,
    "Polygon": 3,
    "MultiPoint": 4,
    "MultiLineString": 5,
    "MultiPolygon": 6,
    "GeometryCollection": 7,
}
_NAMES = {code: name for name, code in _CODES.items()}
_Z = 1000
_DEGREES = re.compile(
    r"(?:URN:OGC:DEF:CRS:|HTTPS?://WWW\.OPENGIS\.NET/DEF/CRS/)?"
    r"(?:OGC[:/](?:1\.3|0)?[:/]?CRS84|EPSG[:/](?:[0-9.]*[:/])?4326|CRS84)"
)


Remarking = Callable[[Remark], None]
"""Takes a remark on the geometry that is being read."""


_NOTHING = msgspec.Raw(b"null")


class _Geometry(msgspec.Struct):
    type: str
    coordinates: msgspec.Raw = _NOTHING
    geometries: list[msgspec.Raw] | None = None
    crs: object = None


_geometry = msgspec.json.Decoder(_Geometry | None)
_position = msgspec.json.Decoder(Position)
_line = msgspec.json.Decoder(Line)
_lines = msgspec.json.Decoder(list[Line])
_polygons = msgspec.json.Decoder(list[list[Line]])


def to_wkb(raw: bytes, *, remark: Remarking) -> bytes | None:
    """The geometry of a GeoJSON text; None for null, and for one whose coordinates are null.

    Z is kept; numbers beyond the third of a position, which GeoJSON gives no meaning, are dropped
    with a remark, and an open ring is closed with one. Raises ValueError with the reason where
    the text is no geometry.
    """
    geometry = _geometry.decode(raw)
    if geometry is None:
        return None
    if not is_degrees(geometry.crs):
        raise ValueError("its geometry has a crs of its own: only the whole collection may")
    if geometry.type == "GeometryCollection":
        return _collection(geometry, remark=remark)
    write = _WRITERS.get(geometry.type)
    if write is None:
        raise ValueError(f"'{geometry.type}' is no type of geometry")
    if geometry.coordinates == _NOTHING:
        raise ValueError(f"its {geometry.type} has no coordinates")
    try:
        return write(geometry.coordinates, remark)
    except msgspec.ValidationError as error:
        if b"null" in bytes(geometry.coordinates):
            remark(Remark.NO_COORDINATES)
            return None
        raise ValueError(f"its {geometry.type} has wrong coordinates ({error})") from None


def type_name(wkb: bytes) -> str:
    """The type of a geometry as GeoParquet names it: `Point`, `MultiPolygon Z`."""
    code = int.from_bytes(wkb[1:5], "little")
    return _NAMES[code % _Z] + (" Z" if code > _Z else "")


def is_degrees(crs: object) -> bool:
    """Whether a legacy `crs` member says longitude and latitude, or nothing (null)."""
    match crs:
        case None:
            return True
        case {"properties": {"name": str(name)}}:
            return _DEGREES.fullmatch(name.strip().upper()) is not None
        case {"properties": {"code": code}}:
            return str(code) == "4326"
        case _:
            return False


def _collection(geometry: _Geometry, *, remark: Remarking) -> bytes | None:
    if geometry.geometries is None:
        raise ValueError("its GeometryCollection has no geometries")
    if _NOTHING in geometry.geometries:
        raise ValueError("its GeometryCollection holds a null")
    parts = [to_wkb(each, remark=remark) for each in geometry.geometries]
    if None in parts:
        return None
    found = [part for part in parts if part is not None]
    size = 3 if any(type_name(part).endswith("Z") for part in found) else 2
    return _head("GeometryCollection", size) + _all(found)


def _point(raw: bytes, remark: Remarking) -> bytes:
    position = _position.decode(raw)
    if not position:
        return _head("Point", 2) + struct.pack("<2d", nan, nan)
    size = _size([position], remark)
    return _head("Point", size) + struct.pack(f"<{size}d", *position[:size])


def _multi_point(raw: bytes, remark: Remarking) -> bytes:
    positions = _line.decode(raw)
    size = _size(positions, remark)
    head = _head("Point", size)
    points = [head + struct.pack(f"<{size}d", *position[:size]) for position in positions]
    return _head("MultiPoint", size) + _all(points)


def _line_string(raw: bytes, remark: Remarking) -> bytes:
    line = _line.decode(raw)
    size = _size(line, remark)
    return _head("LineString", size) + _line_numbers(line, size)


def _multi_line_string(raw: bytes, remark: Remarking) -> bytes:
    lines = _lines.decode(raw)
    size = _size(chain.from_iterable(lines), remark)
    head = _head("LineString", size)
    return _head("MultiLineString", size) + _all([head + _line_numbers(e, size) for e in lines])


def _polygon(raw: bytes, remark: Remarking) -> bytes:
    rings = _lines.decode(raw)
    size = _size(chain.from_iterable(rings), remark)
    return _head("Polygon", size) + _rings(rings, size, remark)


def _multi_polygon(raw: bytes, remark: Remarking) -> bytes:
    polygons = _polygons.decode(raw)
    size = _size(chain.from_iterable(chain.from_iterable(polygons)), remark)
    head = _head("Polygon", size)
    parts = [head + _rings(rings, size, remark) for rings in polygons]
    return _head("MultiPolygon", size) + _all(parts)


_WRITERS = {
    "Point": _point,
    "LineString": _line_string,
    "Polygon": _polygon,
    "MultiPoint": _multi_point,
    "MultiLineString": _multi_line_string,
    "MultiPolygon": _multi_polygon,
}


def _size(positions: Iterable[Position], remark: Remarking) -> int:
    """The numbers that each position of a geometry keeps: 2 or 3."""
    sizes = set(map(len, positions))
    if not sizes or sizes == {2}:
        return 2
    if min(sizes) < 3:
        listed = " and ".join(str(size) for size in sorted(sizes))
        raise ValueError(f"its geometry has positions of {listed} numbers: each needs 2, or each 3")
    if max(sizes) > 3:
        remark(Remark.NUMBERS_DROPPED)
    return 3


def _line_numbers(line: Line, size: int) -> bytes:
    if len(line) == 1:
        raise ValueError("its line has a single position")
    return _numbers(line, size)


def _rings(rings: list[Line], size: int, remark: Remarking) -> bytes:
    if not any(rings):
        return _all([])
    return _all([_ring_numbers(ring, size, remark) for ring in rings])


def _ring_numbers(ring: Line, size: int, remark: Remarking) -> bytes:
    if ring and ring[0][:size] != ring[-1][:size]:
        remark(Remark.RING_CLOSED)
        ring = [*ring, ring[0]]
    if 0 < len(ring) < 4:
        raise ValueError(f"its polygon has a ring of {len(ring)} positions: 4 is the least")
    return _numbers(ring, size)


def _numbers(line: Line, size: int) -> bytes:
    numbers = list(chain.from_iterable(line))
    if len(numbers) != len(line) * size:
        numbers = [number for position in line for number in position[:size]]
    return struct.pack(f"<I{len(numbers)}d", len(line), *numbers)


def _head(kind: str, size: int) -> bytes:
    return struct.pack("<BI", 1, _CODES[kind] + (_Z if size == 3 else 0))


def _all(parts: Sequence[bytes]) -> bytes:
    return struct.pack("<I", len(parts)) + b"".join(parts)
