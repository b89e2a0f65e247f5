"""Geometries that are no plain points, by shapely: canonical form, other coordinates, boxes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import shapely

from ploti.errors import SourceError
from ploti.server.adapters.engine import measured, polygons
from ploti.server.adapters.engine.arrow import Column, Doubles, Mask
from ploti.server.adapters.engine.measured import Change
from ploti.server.adapters.engine.polygons import Geometries


def canonical(column: Column, rounded: Change) -> list[bytes | None]:
    """The canonical WKB of each value (digest.md), with coordinates rounded."""
    geometries = _read(column)
    with_m = shapely.has_m(geometries)
    found = polygons.canonical(_map_plain(_without(with_m, geometries), rounded))
    return _filled(found, with_m, geometries, lambda value: measured.canonical(value, rounded))


def map_coordinates(column: Column, change: Change) -> list[bytes | None]:
    """WKB of each value with other coordinates; measures stay."""
    geometries = _read(column)
    with_m = shapely.has_m(geometries)
    found = polygons.to_wkb(_map_plain(_without(with_m, geometries), change))
    return _filled(found, with_m, geometries, lambda value: measured.mapped(value, change))


def _without(which: Mask, geometries: Geometries) -> Geometries:
    """The geometries with null at some places."""
    rest = geometries.copy()
    rest[which] = None
    return rest


def _filled(
    found: list[bytes | None], which: Mask, geometries: Geometries, made: Callable[[bytes], bytes]
) -> list[bytes | None]:
    """What was found, with what is made of the geometries at some places."""
    places = np.flatnonzero(which).tolist()
    for place, written in zip(places, polygons.to_wkb(geometries[which]), strict=True):
        found[place] = None if written is None else made(written)
    return found


def _map_plain(geometries: Geometries, change: Change) -> Geometries:
    deep = shapely.has_z(geometries)
    result = geometries.copy()
    for which, include_z in ((deep, True), (~deep, False)):
        if which.any():
            result[which] = shapely.transform(geometries[which], change, include_z=include_z)
    return result


def _read(column: Column) -> Geometries:
    """Shapely's geometries; raises SourceError for what is no WKB."""
    try:
        values = np.array(column.to_pylist(), dtype=object)
        found: Geometries = shapely.from_wkb(values)
    except shapely.errors.ShapelyError as error:
        raise SourceError(f"a geometry of the source cannot be read: {error}") from error
    return found


def boxes(column: Column) -> Doubles:
    """Least x, y and greatest x, y of each value; NaN for null and for empty ones."""
    found: Doubles = shapely.bounds(_read(column))
    return found
