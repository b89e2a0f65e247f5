"""The coordinates in WKB, as the functions of a GeoPackage's spatial index need them."""

from __future__ import annotations

import struct
from collections.abc import Iterator

Bounds = tuple[float, float, float, float]
"""Least and greatest x, then least and greatest y."""

_POINTS = {
    b"\x01\x01\x00\x00\x00": struct.Struct("<5x2d"),
    b"\x00\x00\x00\x00\x01": struct.Struct(">5x2d"),
}
"""How a point of two coordinates begins, and where they are: most geometries are such."""

_POINT = 1
_LINES = {2, 8}
_AREAS = {3, 17}


def is_empty(wkb: bytes) -> bool:
    """Whether it has no point at all; one whose coordinates are NaN is none."""
    if wkb[:5] in _POINTS:
        return bounds(wkb) is None
    return next(_runs(wkb), None) is None


def bounds(wkb: bytes) -> Bounds | None:
    """The rectangle round all points, None where there are none."""
    point = _POINTS.get(wkb[:5])
    if point is not None and len(wkb) >= point.size:
        x, y = point.unpack_from(wkb)
        return None if x != x else (x, x, y, y)  # noqa: PLR0124 - NaN is not itself
    runs = list(_runs(wkb))
    if not runs:
        return None
    return (
        min(min(xs) for xs, _ in runs),
        max(max(xs) for xs, _ in runs),
        min(min(ys) for _, ys in runs),
        max(max(ys) for _, ys in runs),
    )


def _runs(wkb: bytes) -> Iterator[tuple[tuple[float, ...], tuple[float, ...]]]:
    """The xs and the ys of each point, line and ring that has any; raises ValueError."""
    try:
        at, left = 0, 1
        while left:
            order = "<" if wkb[at] else ">"
            (code,) = struct.unpack_from(f"{order}I", wkb, at + 1)
            at, left, kind = at + 5, left - 1, code % 1000
            width = 2 + (code // 1000 in {1, 3}) + (code // 1000 in {2, 3})
            count = 1
            if kind != _POINT and kind not in _LINES:
                (count,) = struct.unpack_from(f"{order}I", wkb, at)
                at += 4
            if kind not in {_POINT} | _LINES | _AREAS:
                left += count
                continue
            for _ in range(count):
                points = 1
                if kind != _POINT:
                    (points,) = struct.unpack_from(f"{order}I", wkb, at)
                    at += 4
                numbers = struct.unpack_from(f"{order}{points * width}d", wkb, at)
                at += 8 * len(numbers)
                xs, ys = numbers[::width], numbers[1::width]
                if xs and xs[0] == xs[0]:  # NaN is not itself
                    yield xs, ys
    except (struct.error, IndexError) as error:
        raise ValueError("it is no WKB") from error
