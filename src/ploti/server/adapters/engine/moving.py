"""Geometry from one coordinate reference system into another, x, y in both, without any grids."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyproj
from pyproj.exceptions import CRSError, ProjError
from pyproj.network import set_network_enabled  # type: ignore[attr-defined]

from ploti.errors import SourceError
from ploti.server.adapters.engine import geometries, wkb
from ploti.server.adapters.engine.arrow import Column, Doubles, all_finite

# The same coordinates everywhere, whatever a machine could download.
set_network_enabled(active=False)


def moved(column: Column, *, source: str, target: str) -> Column:
    """WKB of each value in another system; heights and measures stay as they are.

    Raises SourceError for a system that is not known, a pair of systems without a way between
    them, and coordinates outside the area for which the systems are made.
    """
    move = _mover(source, target)
    found = wkb.raw(column)
    points = wkb.point_coordinates(found)
    if points is not None:
        return wkb.make_points(move(points), found.valid)
    return pa.array(geometries.map_coordinates(column, move), pa.binary())


@lru_cache(maxsize=8)
def _mover(source: str, target: str) -> Callable[[Doubles], Doubles]:
    try:
        crossing = pyproj.Transformer.from_crs(source, target, always_xy=True)
    except (CRSError, ProjError) as error:
        raise SourceError(
            f"there is no way from the source's reference system to {target}: {error}"
        ) from None

    def move(values: Doubles) -> Doubles:
        there = all_finite(values[:, :2])
        result = values.copy()
        x, y = crossing.transform(values[there, 0], values[there, 1])
        result[there, :2] = np.column_stack([x, y])
        outside = there & ~all_finite(result[:, :2])
        if outside.any():
            raise SourceError(_say_outside(values[outside, :2], source, target))
        return result

    return move


def _say_outside(values: Doubles, source: str, target: str) -> str:
    x, y = values[0].tolist()
    name = pyproj.CRS.from_user_input(source).name
    return (
        f"coordinates such as {x!r}, {y!r} lie outside the area of the source's reference system"
        f" ({name}), or of {target}: they cannot be brought into it"
    )
