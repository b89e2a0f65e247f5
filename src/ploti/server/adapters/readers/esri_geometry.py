"""Geometries of ArcGIS servers as little-endian ISO WKB."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from math import isfinite

from ploti.server.adapters.readers.esri_curves import listed, straightened
from ploti.server.adapters.readers.remarks import Remark
from ploti.server.sources.pages import Shapes

Vertex = tuple[float, ...]
Path = list[Vertex]

_POINT, _LINE, _POLYGON = 1, 2, 3
_MULTI = 3
"""What is added to a type's code for several of the kind."""

Remarking = Callable[[Remark], None]
"""Takes a remark on the geometry that is being read."""


def to_wkb(geometry: object, *, shapes: Shapes, remark: Remarking) -> bytes | None:
    """A row's geometry; None where it has none.

    A point without numbers, and a shape without parts, are how these servers say that there is
    none. Z and M are kept where every vertex has them. Raises ValueError with the reason where
    the value is no geometry of the layer's kind.
    """
    read = _READERS.get(shapes.type)
    match geometry:
        case None:
            return None
        case Mapping() if read:
            return read(geometry, shapes, remark)
        case Mapping():
            raise ValueError(f"its geometry is of the type {shapes.type}, which is not read")
        case _:
            raise ValueError("its geometry is no object")


def _point(geometry: Mapping[str, object], shapes: Shapes, remark: Remarking) -> bytes | None:
    del shapes
    x, y = _number(geometry.get("x")), _number(geometry.get("y"))
    if x is None or y is None:
        if any(isinstance(geometry.get(axis), int | float) for axis in ("x", "y")):
            remark(Remark.HALF_A_PLACE)
        return None
    z, m = _number(geometry.get("z")), _number(geometry.get("m"))
    kept = [each for each in (z, m) if each is not None]
    return _head(_POINT, z is not None, m is not None) + _numbers([(x, y, *kept)])


def _multi_point(geometry: Mapping[str, object], shapes: Shapes, remark: Remarking) -> bytes | None:
    points = _vertices(geometry.get("points") or [])
    if not points:
        return None
    (even,), z, m = _even([points], geometry, shapes, remark)
    head = _head(_POINT, z, m)
    parts = [head + _numbers([vertex]) for vertex in even]
    return _head(_POINT + _MULTI, z, m) + _all(parts)


def _lines(geometry: Mapping[str, object], shapes: Shapes, remark: Remarking) -> bytes | None:
    paths = _paths(geometry, ("paths", "curvePaths"), remark)
    if not paths:
        return None
    if any(len(path) < 2 for path in paths):
        raise ValueError("its line has a single position")
    paths, z, m = _even(paths, geometry, shapes, remark)
    parts = [_head(_LINE, z, m) + _counted(path) for path in paths]
    return parts[0] if len(parts) == 1 else _head(_LINE + _MULTI, z, m) + _all(parts)


def _areas(geometry: Mapping[str, object], shapes: Shapes, remark: Remarking) -> bytes | None:
    rings = _paths(geometry, ("rings", "curveRings"), remark)
    if not rings:
        return None
    rings = [_closed(ring, remark) for ring in rings]
    rings, z, m = _even(rings, geometry, shapes, remark)
    from ploti.server.adapters.readers.esri_rings import polygons  # noqa: PLC0415 - loads shapely

    parts = [
        _head(_POLYGON, z, m) + _all([_counted(ring) for ring in polygon])
        for polygon in polygons(rings)
    ]
    return parts[0] if len(parts) == 1 else _head(_POLYGON + _MULTI, z, m) + _all(parts)


def _box(geometry: Mapping[str, object], shapes: Shapes, remark: Remarking) -> bytes | None:
    del shapes, remark
    sides = [_number(geometry.get(side)) for side in ("xmin", "ymin", "xmax", "ymax")]
    left, low, right, high = sides
    if left is None or low is None or right is None or high is None:
        return None
    ring: Path = [(left, low), (left, high), (right, high), (right, low), (left, low)]
    return _head(_POLYGON, False, False) + _all([_counted(ring)])


_READERS = {
    "esriGeometryPoint": _point,
    "esriGeometryMultipoint": _multi_point,
    "esriGeometryPolyline": _lines,
    "esriGeometryPolygon": _areas,
    "esriGeometryEnvelope": _box,
}


def _paths(
    geometry: Mapping[str, object], members: tuple[str, str], remark: Remarking
) -> list[Path]:
    """The parts of a shape, arcs drawn out; those of no vertices are none."""
    plain, curved = members
    given = geometry.get(curved) or geometry.get(plain) or []
    parts = listed(given, otherwise=f"its {plain} are no list")
    if geometry.get(curved):
        remark(Remark.ARC_DRAWN)
        parts = [straightened(part) for part in parts]
    return [path for path in map(_vertices, parts) if path]


def _vertices(part: object) -> Path:
    path: Path = []
    for vertex in listed(part, otherwise="a part of its geometry is no list of positions"):
        if not isinstance(vertex, list | tuple) or len(vertex) < 2:
            raise ValueError("its geometry has a position of less than two numbers")
        numbers = [_number(each) for each in vertex]
        if numbers[0] is None or numbers[1] is None:
            raise ValueError("its geometry has a position without numbers")
        known = numbers[: numbers.index(None)] if None in numbers else numbers
        path.append(tuple(each for each in known if each is not None))
    return path


def _even(
    paths: Sequence[Path], geometry: Mapping[str, object], shapes: Shapes, remark: Remarking
) -> tuple[list[Path], bool, bool]:
    """The paths with as many numbers at every vertex, and whether these have Z and M."""
    z = bool(geometry.get("hasZ", shapes.z))
    m = bool(geometry.get("hasM", shapes.m))
    sizes = {len(vertex) for path in paths for vertex in path}
    wanted = 2 + z + m
    if min(sizes) < wanted:
        z, m = z and min(sizes) >= 3, False
    size = 2 + z + m
    if sizes == {size}:
        return list(paths), z, m
    remark(Remark.HEIGHTS_DROPPED)
    return [[vertex[:size] for vertex in path] for path in paths], z, m


def _closed(ring: Path, remark: Remarking) -> Path:
    if ring[0][:2] != ring[-1][:2]:
        remark(Remark.RING_CLOSED)
        ring = [*ring, ring[0]]
    if len(ring) < 4:
        raise ValueError(f"its polygon has a ring of {len(ring)} positions: 4 is the least")
    return ring


def _number(value: object) -> float | None:
    """A finite number; None for what these servers write in place of one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def _head(code: int, z: bool, m: bool) -> bytes:  # noqa: FBT001  one of four ways, both said
    return struct.pack("<BI", 1, code + 1000 * z + 2000 * m)


def _numbers(path: Sequence[Vertex]) -> bytes:
    numbers = list(chain.from_iterable(path))
    return struct.pack(f"<{len(numbers)}d", *numbers)


def _counted(path: Path) -> bytes:
    return struct.pack("<I", len(path)) + _numbers(path)


def _all(parts: Sequence[bytes]) -> bytes:
    return struct.pack("<I", len(parts)) + b"".join(parts)
