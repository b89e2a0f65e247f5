"""The canonical form of geometries that are no points: rings and parts in one order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import shapely
from shapely.geometry import GeometryCollection, LinearRing, MultiLineString, MultiPolygon, Polygon
from shapely.geometry.base import BaseGeometry

Geometries = npt.NDArray[np.object_]

_SURFACES = (shapely.GeometryType.POLYGON, shapely.GeometryType.MULTIPOLYGON)
_SORTED = (shapely.GeometryType.MULTILINESTRING, shapely.GeometryType.GEOMETRYCOLLECTION)


def canonical(geometries: Geometries) -> list[bytes | None]:
    """Little-endian ISO WKB of each geometry in canonical form (digest.md).

    Shells run anticlockwise, holes clockwise, each ring from its least vertex; holes, and the
    members of multi-geometries and collections, are sorted; lines keep their direction.
    """
    types = shapely.get_type_id(geometries)
    result = geometries.copy()
    surfaces = np.isin(types, _SURFACES)
    if surfaces.any():
        result[surfaces] = _surfaces(geometries[surfaces])
    points = types == shapely.GeometryType.MULTIPOINT
    if points.any():
        result[points] = shapely.normalize(geometries[points])
    for place in np.flatnonzero(np.isin(types, _SORTED)):
        result[place] = _sorted_parts(geometries[place])
    return to_wkb(result)


def to_wkb(geometries: Geometries) -> list[bytes | None]:
    """Little-endian ISO WKB."""
    found = shapely.to_wkb(
        geometries, byte_order=1, include_srid=False, flavor="iso", output_dimension=4
    )
    written: list[bytes | None] = found.tolist()
    return written


def _sorted_parts(geometry: BaseGeometry) -> BaseGeometry:
    parts = np.array(shapely.get_parts(geometry), dtype=object)
    if geometry.geom_type == "MultiLineString":
        return MultiLineString([parts[place] for place in _order(parts)])
    made = shapely.from_wkb(np.array(canonical(parts), dtype=object))
    return GeometryCollection([made[place] for place in _order(made)])


def _order(geometries: Geometries) -> list[int]:
    """The places of geometries in the order of their bytes."""
    written = to_wkb(geometries)
    return sorted(range(len(written)), key=lambda place: written[place] or b"")


def _surfaces(geometries: Geometries) -> Geometries:
    turned: Geometries = shapely.orient_polygons(shapely.normalize(geometries))
    for place in _ambiguous(turned):
        turned[place] = _least_rotations(turned[place])
    return turned


def _ambiguous(geometries: Geometries) -> npt.NDArray[np.intp]:
    """Geometries with a ring that comes by its first vertex again before its end."""
    parts, part_owner = shapely.get_parts(geometries, return_index=True)
    rings, ring_owner = shapely.get_rings(parts, return_index=True)
    coordinates, owner = shapely.get_coordinates(rings, include_z=True, return_index=True)
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    same = (coordinates == coordinates[first][owner]) | np.isnan(coordinates)
    visits = np.bincount(owner[same.all(axis=1)], minlength=len(rings))
    found: npt.NDArray[np.intp] = np.unique(part_owner[ring_owner[visits > 2]])
    return found


def _least_rotations(geometry: BaseGeometry) -> BaseGeometry:
    """GEOS may begin such a ring at either visit: the rotation that is least as a whole is it."""
    parts = np.empty(shapely.get_num_geometries(geometry), dtype=object)
    for place, part in enumerate(shapely.get_parts(geometry)):
        shell, *holes = (_rotate(ring) for ring in shapely.get_rings(part))
        parts[place] = Polygon(shell, sorted(holes))
    if geometry.geom_type == "Polygon":
        return Polygon(parts[0])
    return MultiPolygon([parts[place] for place in _order(parts)])


def _rotate(ring: LinearRing) -> list[tuple[float, ...]]:
    vertices = list(ring.coords)[:-1]
    least = min(vertices)
    starts = [place for place, vertex in enumerate(vertices) if vertex == least]
    best = min(vertices[start:] + vertices[:start] for start in starts)
    return [*best, best[0]]
