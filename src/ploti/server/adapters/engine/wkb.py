"""Geometry as WKB in Arrow columns: canonical form, boxes, kinds.

Points go by numpy alone; what takes shapely is in `geometries` and loaded where it is needed, since
many a dataset has points alone and its build would wait for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ploti.server.adapters.engine.arrow import (
    Column,
    Doubles,
    Mask,
    all_finite,
    buffer,
    is_there,
    numbers,
)

_PLANE_POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")])
_SIZE = _PLANE_POINT.itemsize
_KINDS = {
    1: "Point",
    2: "LineString",
    3: "Polygon",
    4: "MultiPoint",
    5: "MultiLineString",
    6: "MultiPolygon",
    7: "GeometryCollection",
}
_EXACT = float(1 << 52)


class Raw(NamedTuple):
    """The buffers of a binary column: which values are there, where each begins, the bytes."""

    valid: Mask
    offsets: npt.NDArray[np.int32]
    data: npt.NDArray[np.uint8]


def raw(column: Column) -> Raw:
    """The buffers of a column of type `binary`, of whatever slice it is."""
    if column.offset:
        column = pa.concat_arrays([column])
    _, offsets, data = column.buffers()
    starts = numbers(offsets, np.int32)[: len(column) + 1]
    return Raw(
        valid=is_there(column),
        offsets=starts if len(starts) else np.zeros(1, np.int32),
        data=numbers(data, np.uint8),
    )


def point_coordinates(found: Raw) -> Doubles | None:
    """The coordinates of each value that is there, where all are two-dimensional points."""
    if not (np.diff(found.offsets)[found.valid] == _SIZE).all():
        return None
    data = found.data[found.offsets[0] : found.offsets[-1]]
    if len(data) != found.valid.sum() * _SIZE:
        return None
    points = data.view(_PLANE_POINT)
    if not ((points["order"] == 1) & (points["kind"] == 1)).all():
        return None
    return np.column_stack([points["x"], points["y"]])


def make_points(coordinates: Doubles, valid: Mask) -> Column:
    """WKB of points, null where `valid` is false; `coordinates` are those of the valid alone."""
    points = np.empty(len(coordinates), _PLANE_POINT)
    points["order"], points["kind"] = 1, 1
    points["x"], points["y"] = coordinates.T
    offsets = np.concatenate([[0], np.cumsum(valid)]).astype(np.int32) * _SIZE
    bitmap = pa.array(valid, pa.bool_()).buffers()[1]
    buffers = [bitmap, buffer(offsets), buffer(points)]
    return pa.Array.from_buffers(pa.binary(), len(valid), buffers)


def round_coordinates(values: Doubles, precision: float) -> Doubles:
    """Plain rounding, −0 made 0; what is too large to have such digits is left alone."""
    if precision:
        scale = round(1 / precision) if precision <= 1 else 1 / precision
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = values * scale
            values = np.where(np.abs(scaled) < _EXACT, np.rint(scaled) / scale, values)
    return np.where(np.isnan(values), np.nan, values + 0.0)


def canonical_wkb(column: Column, precision: float) -> Column:
    """The canonical WKB of each value (digest.md); raises SourceError for what is no geometry."""
    found = raw(column)
    coordinates = point_coordinates(found)
    if coordinates is not None:
        return make_points(round_coordinates(coordinates, precision), found.valid)
    from ploti.server.adapters.engine import geometries  # noqa: PLC0415 - as is said above

    rounded = partial(round_coordinates, precision=precision)
    return pa.array(geometries.canonical(column, rounded), pa.binary())


def boxes(column: Column) -> Doubles:
    """Least x, y and greatest x, y of each value; NaN for null and for empty ones."""
    found = raw(column)
    coordinates = point_coordinates(found)
    if coordinates is None:
        from ploti.server.adapters.engine import geometries  # noqa: PLC0415 - as is said above

        return geometries.boxes(column)
    boxes_ = np.full((len(column), 4), np.nan)
    boxes_[found.valid] = np.hstack([coordinates, coordinates])
    return boxes_


class Centres(NamedTuple):
    """The middle (x, y) of each value's box, of the values that have one, and which those are."""

    values: Doubles
    known: Mask


def centres(column: Column) -> Centres:
    """The middles of a column's values; those that are null, empty or without end have none."""
    found = raw(column)
    middles = point_coordinates(found)
    known = found.valid
    if middles is None:
        bounds = boxes(column)
        middles, known = bounds[:, :2] / 2 + bounds[:, 2:] / 2, np.ones(len(column), np.bool_)
    if np.isfinite(middles).all():
        return Centres(values=middles, known=known)
    finite = all_finite(middles)
    known = known.copy()
    known[known] = finite
    return Centres(values=middles[finite], known=known)


def box_of(found: Iterable[Centres]) -> tuple[float, float, float, float] | None:
    """The box of many middles; None where there are none."""
    ends = [
        np.hstack([middles.values.min(axis=0), middles.values.max(axis=0)])
        for middles in found
        if len(middles.values)
    ]
    if not ends:
        return None
    corners = np.vstack(ends)
    left, low = corners[:, :2].min(axis=0).tolist()
    right, high = corners[:, 2:].max(axis=0).tolist()
    return left, low, right, high


def kinds(column: Column) -> set[str]:
    """The types that occur, as GeoParquet names them (`Polygon Z`)."""
    found = raw(column)
    starts = found.offsets[:-1][found.valid]
    codes = found.data[starts[:, None] + np.arange(1, 5)] if len(starts) else np.empty((0, 4))
    numbers = np.unique(np.ascontiguousarray(codes, np.uint8).view("<u4"))
    return {_kind(int(number)) for number in numbers}


def _kind(code: int) -> str:
    suffix = ("", " Z", " M", " ZM")[code // 1000]
    return _KINDS[code % 1000] + suffix
