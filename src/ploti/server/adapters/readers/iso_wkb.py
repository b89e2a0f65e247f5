"""Well-known binary of any flavour as the one that is stored: little-endian, ISO type codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct, error, unpack_from

import numpy as np

from ploti.errors import SourceError
from ploti.server.adapters.readers.iso_curves import STRAIGHT, arcs, counted, joined
from ploti.server.adapters.readers.remarks import Remark

_NAMES = {
    1: "Point",
    2: "LineString",
    3: "Polygon",
    4: "MultiPoint",
    5: "MultiLineString",
    6: "MultiPolygon",
    7: "GeometryCollection",
}
_CURVED = {
    8: "CircularString",
    9: "CompoundCurve",
    10: "CurvePolygon",
    11: "MultiCurve",
    12: "MultiSurface",
}
_SURFACES = {
    15: "PolyhedralSurface",
    16: "TIN",
    17: "Triangle",
}
_UNREAD = {
    13: "Curve",
    14: "Surface",
}
_PLAIN = {**STRAIGHT, 15: 6, 16: 6, 17: 3}
"""What curves and surfaces become: lines and polygons, and several of either."""

_REDRAWN = {
    **dict.fromkeys(STRAIGHT, Remark.ARC_DRAWN),
    **dict.fromkeys(_SURFACES, Remark.SURFACE_PARTED),
}
_EWKB_Z, _EWKB_M, _EWKB_SRID = 0x80000000, 0x40000000, 0x20000000
_COLLECTION = 7
_DEEPEST = 32
_HEAD = Struct("<BI")
_COUNT = Struct("<I")


class GeometryTypes:
    """The types that occur, named as GeoParquet names them."""

    def __init__(self) -> None:
        self._codes: set[int] = set()

    def add(self, geometries: Iterable[bytes | None]) -> None:
        """Note the types of geometries in canonical form."""
        self._codes |= {int.from_bytes(each[1:5], "little") for each in geometries if each}

    def names(self) -> list[str]:
        """The names, sorted: `Point`, `Polygon Z`."""
        return sorted(type_name(code) for code in self._codes)


def type_name(code: int) -> str:
    """The name of an ISO type code: 1003 is `Polygon Z`."""
    named = {**_NAMES, **_CURVED, **_SURFACES, **_UNREAD}
    name = named.get(code % 1000, "geometry of an unknown type")
    return name + ("", " Z", " M", " ZM")[code // 1000 % 4]


def canonical(geometries: Sequence[bytes | None], *, first: int) -> list[bytes | None]:
    """The geometries of consecutive rows, of which the first has the number `first`.

    Coordinates, Z, M, empties and nulls stay as they are; curves are drawn as short straight lines,
    and surfaces become the polygons that they are put together of.
    Raises SourceError naming the row where the bytes are no geometry.
    """
    import shapely  # noqa: PLC0415 - tables without geometries do not wait for it

    # GEOS follows collections inside collections to any depth, and falls
    checked = [
        _rewritten(wkb, row=row) if wkb and _is_collection(wkb) else wkb
        for row, wkb in enumerate(geometries, first)
    ]
    given = np.array([*checked, None], dtype=object)[:-1]
    try:
        parsed = shapely.from_wkb(given, on_invalid="ignore")
    except NotImplementedError:
        parsed = np.full(len(given), None, dtype=object)
    written: list[bytes | None] = shapely.to_wkb(
        parsed, flavor="iso", byte_order=1, include_srid=False
    ).tolist()
    for place, (before, after) in enumerate(zip(checked, written, strict=True)):
        if before is not None and after is None:
            written[place] = _rewritten(before, row=first + place)
    return written


def redrawn(wkb: bytes) -> Remark | None:
    """What is to be told of a geometry of any flavour whose type is not one that is stored."""
    return _REDRAWN.get(_kind(wkb))


def _is_collection(wkb: bytes) -> bool:
    return _kind(wkb) == _COLLECTION


def _kind(wkb: bytes) -> int:
    return (int.from_bytes(wkb[1:5], "little" if wkb[0] else "big") & 0xFFFF) % 1000


def _rewritten(wkb: bytes, *, row: int) -> bytes:
    """What GEOS takes for no geometry (a line of one point, an open ring), kept all the same."""
    try:
        return _whole(wkb)
    except (error, IndexError):
        raise SourceError(f"row {row}: its geometry is cut short or no WKB") from None
    except ValueError as reason:
        raise SourceError(f"row {row}: its geometry cannot be read: {reason}") from None


def _whole(wkb: bytes) -> bytes:
    rewritten, end = _rewrite(wkb, 0, depth=0)
    if end != len(wkb):
        raise ValueError(f"{len(wkb) - end} bytes follow after its end")
    return rewritten


def _rewrite(wkb: bytes, at: int, *, depth: int) -> tuple[bytes, int]:
    if depth > _DEEPEST:
        raise ValueError(f"collections are nested more than {_DEEPEST} deep")
    if wkb[at] > 1:
        raise ValueError("it is no WKB")
    order = "<" if wkb[at] else ">"
    (code,) = unpack_from(order + "I", wkb, at + 1)
    at += 9 if code & _EWKB_SRID else 5
    iso = _iso_code(code)
    match iso % 1000:
        case 1:
            body, at = _numbers(wkb, at, order=order, count=_size(iso))
        case 2:
            body, at = _points(wkb, at, order=order, size=_size(iso))
        case 3 | 17:
            body, at = _rings(wkb, at, order=order, size=_size(iso))
        case 8:
            body, at = _arcs(wkb, at, order=order, size=_size(iso))
        case kind:
            parts, at = _parts(wkb, at, order=order, depth=depth)
            body = joined(kind, parts, size=_size(iso))
    plain = _PLAIN.get(iso % 1000, iso % 1000)
    return _HEAD.pack(1, iso - iso % 1000 + plain) + body, at


def _iso_code(code: int) -> int:
    plain = code & ~(_EWKB_Z | _EWKB_M | _EWKB_SRID)
    iso = plain + 1000 * bool(code & _EWKB_Z) + 2000 * bool(code & _EWKB_M)
    if iso % 1000 in _UNREAD:
        raise ValueError(f"it is a {type_name(iso)}, of which there is no telling how it is stored")
    if iso % 1000 not in _NAMES.keys() | _PLAIN.keys() or iso > 3999:
        raise ValueError(f"its type {code} is unknown")
    return iso


def _size(iso: int) -> int:
    return (2, 3, 3, 4)[iso // 1000]


def _numbers(wkb: bytes, at: int, *, order: str, count: int) -> tuple[bytes, int]:
    end = at + 8 * count
    if end > len(wkb):
        raise IndexError
    return np.frombuffer(wkb, order + "f8", count, at).astype("<f8").tobytes(), end


def _points(wkb: bytes, at: int, *, order: str, size: int) -> tuple[bytes, int]:
    (count,) = unpack_from(order + "I", wkb, at)
    body, at = _numbers(wkb, at + 4, order=order, count=count * size)
    return _COUNT.pack(count) + body, at


def _rings(wkb: bytes, at: int, *, order: str, size: int) -> tuple[bytes, int]:
    (count,) = unpack_from(order + "I", wkb, at)
    at += 4
    rings = [_COUNT.pack(count)]
    for _ in range(count):
        ring, at = _points(wkb, at, order=order, size=size)
        rings.append(ring)
    return b"".join(rings), at


def _arcs(wkb: bytes, at: int, *, order: str, size: int) -> tuple[bytes, int]:
    body, at = _points(wkb, at, order=order, size=size)
    return counted(arcs(np.frombuffer(body, "<f8", -1, _COUNT.size).reshape(-1, size))), at


def _parts(wkb: bytes, at: int, *, order: str, depth: int) -> tuple[list[bytes], int]:
    (count,) = unpack_from(order + "I", wkb, at)
    at += 4
    parts: list[bytes] = []
    for _ in range(count):
        part, at = _rewrite(wkb, at, depth=depth + 1)
        parts.append(part)
    return parts, at
