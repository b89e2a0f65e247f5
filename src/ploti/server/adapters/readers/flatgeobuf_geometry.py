"""FlatGeobuf's geometries as little-endian ISO WKB, coordinate for coordinate."""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack

import numpy as np
import numpy.typing as npt

from ploti.server.adapters.readers.flatbuffer import Table
from ploti.server.adapters.readers.iso_wkb import type_name

_ENDS, _XY, _Z, _M, _TYPE, _PARTS = 0, 1, 2, 3, 6, 7
_TIMES = 4, 5
_POINT, _LINE, _POLYGON, _MULTI_POINT, _MULTI_LINE, _MULTI_POLYGON, _COLLECTION = range(1, 8)
_ARCS, _COMPOUND, _CURVE_POLYGON, _MULTI_CURVE, _MULTI_SURFACE = range(8, 13)
_POLYHEDRAL, _TIN, _TRIANGLE = range(15, 18)
_OF_PARTS = {
    **dict.fromkeys((_MULTI_POLYGON, _POLYHEDRAL), _POLYGON),
    **dict.fromkeys((_COLLECTION, _COMPOUND, _CURVE_POLYGON, _MULTI_CURVE, _MULTI_SURFACE), 0),
}
"""Types of which the parts are geometries, with the type of all parts, or 0: each tells its own."""
_OF_POSITIONS = {
    *(_POINT, _LINE, _POLYGON, _MULTI_POINT, _MULTI_LINE),
    *(_ARCS, _TIN, _TRIANGLE),
}
_DEEPEST = 32

Doubles = npt.NDArray[np.float64]


def to_wkb(geometry: Table, kind: int, *, depth: int = 0) -> bytes:
    """A geometry of the type `kind`, or of its own where that is 0; Z and M are kept.

    Curves and surfaces stay what they are. Raises ValueError for types that are not known, and
    IndexError or ValueError for broken ones.
    """
    kind = kind or geometry.number(_TYPE, "B")
    if depth > _DEEPEST:
        raise ValueError(f"collections are nested more than {_DEEPEST} deep")
    if kind in _OF_PARTS:
        return _parts(geometry, kind, depth=depth)
    if kind not in _OF_POSITIONS:
        raise ValueError(f"its geometry is a {type_name(kind)}: it is not read")
    points, raised = _points(geometry)
    ends = geometry.indices(_ENDS)
    code = kind + raised
    if kind == _POINT and len(points) > 1:
        raise ValueError(f"its Point has {len(points)} positions")
    head = pack("<BI", 1, code)
    match kind:
        case 1:
            return head + (points if len(points) else _nothing(points)).tobytes()
        case 2 | 8:
            return head + _counted(points)
        case 3 | 17:
            return head + _all(map(_counted, _split(points, ends)))
        case 4:
            inner = pack("<BI", 1, _POINT + raised)
            return head + _all(inner + point.tobytes() for point in points)
        case 5:
            inner = pack("<BI", 1, _LINE + raised)
            return head + _all(inner + _counted(line) for line in _split(points, ends))
        case _:
            inner = pack("<BII", 1, _TRIANGLE + raised, 1)
            return head + _all(inner + _counted(ring) for ring in _split(points, ends))


def _parts(geometry: Table, kind: int, *, depth: int) -> bytes:
    inner = _OF_PARTS[kind]
    parts = [to_wkb(part, inner, depth=depth + 1) for part in geometry.tables(_PARTS)]
    raised = max((int.from_bytes(part[1:5], "little") // 1000 * 1000 for part in parts), default=0)
    return pack("<BI", 1, kind + raised) + _all(parts)


def _points(geometry: Table) -> tuple[Doubles, int]:
    """The positions, a row each, and what Z and M add to a type's code."""
    flat = geometry.doubles(_XY)
    if flat is None:
        flat = np.empty(0)
    columns = [flat.reshape(-1, 2)]
    z, m, *_ = (geometry.doubles(each) for each in (_Z, _M, *_TIMES))
    columns += [each.reshape(-1, 1) for each in (z, m) if each is not None]
    points = np.ascontiguousarray(np.concatenate(columns, axis=1))
    return points, 1000 * (z is not None) + 2000 * (m is not None)


def _split(points: Doubles, ends: list[int]) -> list[Doubles]:
    """The rings or lines; without ends there is one, or none of no points."""
    if not ends:
        return [points] if len(points) else []
    if ends != sorted(ends) or ends[-1] != len(points):
        raise ValueError("its parts do not end where its positions do")
    return np.split(points, ends[:-1])


def _all(parts: Iterable[bytes]) -> bytes:
    listed = [*parts]
    return pack("<I", len(listed)) + b"".join(listed)


def _counted(points: Doubles) -> bytes:
    return pack("<I", len(points)) + points.tobytes()


def _nothing(points: Doubles) -> Doubles:
    return np.full((1, points.shape[1]), np.nan)
