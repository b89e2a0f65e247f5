"""Which rings of an ArcGIS polygon are outer ones, and which are holes in which."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import shapely

Ring = list[tuple[float, ...]]


def polygons(rings: Sequence[Ring]) -> list[list[Ring]]:
    """The polygons that rings make up, each with its outer ring first.

    Rings that run clockwise are outer ones; another is a hole in the smallest outer ring around
    it. Where one is in none, the rings do not run as they should: then how many others are around
    a ring tells what it is, and one that is in an even number is an outer one.
    """
    if len(rings) == 1:
        return [list(rings)]
    around = _around(rings)
    outer = [_is_clockwise(ring) for ring in rings]
    if any(not is_outer and not _home(n, around, outer) for n, is_outer in enumerate(outer)):
        outer = [len(around[n]) % 2 == 0 for n in range(len(rings))]
    found: dict[int, list[Ring]] = {n: [rings[n]] for n, is_outer in enumerate(outer) if is_outer}
    for n, is_outer in enumerate(outer):
        if not is_outer:
            found[_home(n, around, outer)[0]].append(rings[n])
    return list(found.values())


def _home(n: int, around: Sequence[Sequence[int]], outer: Sequence[bool]) -> list[int]:
    """The outer rings around a ring, the smallest first."""
    return [other for other in around[n] if outer[other]]


def _around(rings: Sequence[Ring]) -> list[list[int]]:
    """For each ring the others that it lies in, the smallest first."""
    flat = [np.array([vertex[:2] for vertex in ring]) for ring in rings]
    areas = [shapely.Polygon(each) for each in flat]
    shapely.prepare(areas)
    sizes = [area.area for area in areas]
    order = sorted(range(len(rings)), key=lambda n: sizes[n])
    return [
        [
            other
            for other in order
            if other != n and sizes[other] >= sizes[n] and _holds(areas[other], flat[n])
        ]
        for n in range(len(rings))
    ]


def _holds(area: shapely.Polygon, ring: np.ndarray[Any, Any]) -> bool:
    """Whether no vertex of a ring is outside; points are told apart even for areas not valid."""
    left, low, right, high = shapely.bounds(area)
    if not (
        left <= ring[:, 0].min()
        and low <= ring[:, 1].min()
        and right >= ring[:, 0].max()
        and high >= ring[:, 1].max()
    ):
        return False
    return bool(shapely.intersects_xy(area, ring[:, 0], ring[:, 1]).all())


def _is_clockwise(ring: Ring) -> bool:
    """By the sign of the area, from the ring's own first vertex, so that digits are not lost."""
    x0, y0 = ring[0][:2]
    doubled = 0.0
    for (x1, y1, *_), (x2, y2, *_) in pairwise(ring):
        doubled += (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
    return doubled < 0
