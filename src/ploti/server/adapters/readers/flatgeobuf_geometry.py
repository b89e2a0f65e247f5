"""FlatGeobuf's geometries as little-endian ISO WKB, coordinate for coordinate."""

from __future__ import annotations

from struct import pack

import numpy as np
import numpy.typing as npt

from ploti.server.adapters.readers.flatbuffer import Table
from ploti.server.adapters.readers.iso_wkb import type_name

_ENDS, _XY, _Z, _M, _TYPE, _PARTS = 0, 1, 2, 3, 6, 7
_TIMES = 4, 5
_POINT, _LINE, _POLYGON, _MULTI_POINT, _MULTI_LINE, _MULTI_POLYGON, _COLLECTION = range(1, 8)
_DEEPEST = 32

Doubles = npt.NDArray[np.float64]


def to_wkb(geometry: Table, kind: int, *, depth: int = 0) -> bytes:
    """A geometry of the type `kind`, or of its own where that is 0; Z and M are kept.

    Raises ValueError for curves and other types that are not read, and IndexError or ValueError
    for broken ones.
    """
    kind = kind or geometry.number(_TYPE, "B")
    if not _POINT <= kind <= _COLLECTION:
        raise ValueError(f"its geometry is a {type_name(kind)}: only plain shapes are read")
    if depth > _DEEPEST:
        raise ValueError(f"collections are nested more than {_DEEPEST} deep")
    if kind in {_MULTI_POLYGON, _COLLECTION}:
        return _parts(geometry, kind, depth=depth)
    points, raised = _points(geometry)
    ends = geometry.indices(_ENDS)
    code = kind + raised
    if kind == _POINT and len(points) > 1:
        raise ValueError(f"its Point has {len(points)} positions")
    head = pack("<BI", 1, code)
    match kind:
        case 1:
            return head + (points if len(points) else _nothing(points)).tobytes()
        case 2:
            return head + _counted(points)
        case 3:
            rings = _split(points, ends)
            return head + pack("<I", len(rings)) + b"".join(map(_counted, rings))
        case 4:
            inner = pack("<BI", 1, _POINT + raised)
            return head + pack("<I", len(points)) + b"".join(inner + p.tobytes() for p in points)
        case _:
            lines = _split(points, ends)
            inner = pack("<BI", 1, _LINE + raised)
            parts = b"".join(inner + _counted(line) for line in lines)
            return head + pack("<I", len(lines)) + parts


def _parts(geometry: Table, kind: int, *, depth: int) -> bytes:
    inner = _POLYGON if kind == _MULTI_POLYGON else 0
    parts = [to_wkb(part, inner, depth=depth + 1) for part in geometry.tables(_PARTS)]
    raised = max((int.from_bytes(part[1:5], "little") // 1000 * 1000 for part in parts), default=0)
    return pack("<BII", 1, kind + raised, len(parts)) + b"".join(parts)


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


def _counted(points: Doubles) -> bytes:
    return pack("<I", len(points)) + points.tobytes()


def _nothing(points: Doubles) -> Doubles:
    return np.full((1, points.shape[1]), np.nan)
