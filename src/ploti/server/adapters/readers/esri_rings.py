"""Which rings of an ArcGIS polygon are outer ones, and which are holes in which."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import shapely

Ring = list[tuple[float, ...]]


def polygons(rings: Sequence[Ring]) -> list[list[Ring]]:
    """The polygons that rings make up, each with its outer ring first.

    Rings that run clockwise are outer ones; another is a hole in the smallest outer ring around
    it. Where one is in none, the rings do not run as they should: then how many others are around
    a ring tells what it is, and one that is in an even number is an outer one.
    """
    outer = [_is_clockwise(ring) for ring in rings]
    if len(rings) == 1 or all(outer):
        return [[ring] for ring in rings]
    nest = _Nest(rings)
    if not all(is_outer or nest.home(n, outer) is not None for n, is_outer in enumerate(outer)):
        outer = [len(nest.around(n)) % 2 == 0 for n in range(len(rings))]
    found: dict[int | None, list[Ring]] = {
        n: [rings[n]] for n, is_outer in enumerate(outer) if is_outer
    }
    for n, is_outer in enumerate(outer):
        if not is_outer:
            found[nest.home(n, outer)].append(rings[n])
    return list(found.values())


class _Nest:
    """Which rings lie in which, looked up by their boxes first: there may be thousands."""

    def __init__(self, rings: Sequence[Ring]) -> None:
        self._flat = [np.array([vertex[:2] for vertex in ring]) for ring in rings]
        self._areas = [shapely.Polygon(each) for each in self._flat]
        self._sizes = [area.area for area in self._areas]
        self._tree = shapely.STRtree(self._areas)
        shapely.prepare(self._areas)
        self._known: dict[int, list[int]] = {}

    def around(self, n: int) -> list[int]:
        """The other rings that a ring lies in, the smallest first."""
        if n not in self._known:
            near = [other for other in self._tree.query(self._areas[n]).tolist() if other != n]
            holding = [other for other in near if self._holds(other, n)]
            self._known[n] = sorted(holding, key=self._sizes.__getitem__)
        return self._known[n]

    def home(self, n: int, outer: Sequence[bool]) -> int | None:
        """The smallest outer ring around a ring; None where there is none."""
        return next((other for other in self.around(n) if outer[other]), None)

    def _holds(self, other: int, n: int) -> bool:
        """Whether no vertex of a ring is outside; points are told apart even for areas not valid.

        Of two equal rings the later lies in the earlier.
        """
        if (self._sizes[other], -other) <= (self._sizes[n], -n):
            return False
        left, low, right, high = self._areas[other].bounds
        x, y = self._flat[n][:, 0], self._flat[n][:, 1]
        if left > x.min() or low > y.min() or right < x.max() or high < y.max():
            return False
        return bool(shapely.intersects_xy(self._areas[other], x, y).all())


def _is_clockwise(ring: Ring) -> bool:
    """By the sign of the area, from the ring's own first vertex, so that digits are not lost."""
    x0, y0 = ring[0][:2]
    doubled = 0.0
    for (x1, y1, *_), (x2, y2, *_) in pairwise(ring):
        doubled += (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
    return doubled < 0
