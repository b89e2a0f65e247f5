"""Canonical geometry: one form for equal shapes, kept when made again (digest.md)."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely.geometry import MultiPolygon, Polygon
from shapely.geometry.base import BaseGeometry

from ploti.server.adapters.engine import hilbert, wkb
from ploti.server.adapters.engine.rows import float_boxes


def canonical(geometry: BaseGeometry | None, precision: float = 1e-9) -> bytes | None:
    written = None if geometry is None else shapely.to_wkb(geometry, byte_order=0, flavor="iso")
    found: bytes | None = wkb.canonical_wkb(pa.array([written], pa.binary()), precision)[0].as_py()
    return found


@st.composite
def rings(draw: st.DrawFn, x: float = 0.0) -> list[tuple[float, float]]:
    """A ring around (x, 0) that does not cross itself, of radius 1 to 2."""
    angles = sorted(draw(st.sets(st.integers(0, 359), min_size=3, max_size=8)))
    radii = [draw(st.floats(1, 2)) for _ in angles]
    return [
        (x + radius * math.cos(math.radians(angle)), radius * math.sin(math.radians(angle)))
        for angle, radius in zip(angles, radii, strict=True)
    ]


def turned(ring: list[tuple[float, float]], by: int, back: bool) -> list[tuple[float, float]]:
    by %= len(ring)
    moved = ring[by:] + ring[:by]
    return moved[::-1] if back else moved


@settings(max_examples=60, deadline=None)
@given(rings(), rings(x=10.0), st.integers(0, 7), st.booleans(), st.booleans())
def test_polygons_have_one_form_wherever_they_begin_and_however_they_run(
    left: list[tuple[float, float]],
    right: list[tuple[float, float]],
    by: int,
    back: bool,
    swapped: bool,
) -> None:
    parts = [Polygon(left), Polygon(right)]
    others = [Polygon(turned(left, by, back)), Polygon(turned(right, by + 1, not back))]
    one = canonical(MultiPolygon(parts))
    assert canonical(MultiPolygon(others[::-1] if swapped else others)) == one
    assert one is not None
    assert canonical(shapely.from_wkb(one)) == one
    assert shapely.is_ccw(shapely.get_exterior_ring(shapely.get_geometry(shapely.from_wkb(one), 0)))


@pytest.mark.parametrize(
    ("given_", "form"),
    [
        ("LINESTRING (2 2, 1 1)", "LINESTRING (2 2, 1 1)"),
        ("MULTILINESTRING ((2 2, 1 1), (0 0, 1 1))", "MULTILINESTRING ((0 0, 1 1), (2 2, 1 1))"),
        ("POINT (-0.0 1.00000000049)", "POINT (0 1)"),
        ("POINT Z (1 2 3.00000000004)", "POINT Z (1 2 3)"),
        ("POINT (1e308 5e-324)", "POINT (1e308 0)"),
        ("POLYGON EMPTY", "POLYGON EMPTY"),
        ("POINT EMPTY", "POINT EMPTY"),
        (
            "POLYGON ((0 0, 0 9, 9 9, 9 0, 0 0), (1 1, 2 1, 2 2, 1 2, 1 1))",
            "POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 1 2, 2 2, 2 1, 1 1))",
        ),
        (
            "GEOMETRYCOLLECTION (LINESTRING (2 2, 1 1), POINT (0 0))",
            "GEOMETRYCOLLECTION (POINT (0 0), LINESTRING (2 2, 1 1))",
        ),
    ],
)
def test_each_kind_has_its_form_and_lines_keep_their_direction(given_: str, form: str) -> None:
    found = canonical(shapely.from_wkt(given_))
    assert found == shapely.to_wkb(
        shapely.from_wkt(form), byte_order=1, flavor="iso", output_dimension=4
    )


def test_members_that_are_no_surfaces_have_one_order() -> None:
    shapes = ["MULTIPOINT (3 3, 1 1, 2 2)", "MULTIPOINT (1 1, 2 2, 3 3)"]
    assert len({canonical(shapely.from_wkt(shape)) for shape in shapes}) == 1


def test_a_ring_that_comes_by_its_least_vertex_twice_has_one_form() -> None:
    """GEOS begins such a ring at either visit."""
    ring = [(0, 0), (2, 1), (2, 2), (0, 0), (1, 3), (0, 3)]
    forms = {
        canonical(Polygon(turned(ring, by, back))) for by in range(6) for back in (True, False)
    }
    assert len(forms) == 1


@pytest.mark.parametrize("unseen", [b"x", b"?" * 21, b"?" * 40])
def test_bytes_under_a_null_are_not_read_as_points(unseen: bytes) -> None:
    point = shapely.to_wkb(shapely.Point(1, 2), byte_order=1)
    seen = pa.array([point, unseen, point], pa.binary())
    present = pa.array([True, False, True]).buffers()[1]
    column = pa.Array.from_buffers(pa.binary(), 3, [present, *seen.buffers()[1:]])
    assert column.to_pylist() == [point, None, point]
    assert wkb.canonical_wkb(column, 0).to_pylist() == [point, None, point]
    assert wkb.centres(column).values.tolist() == [[1, 2], [1, 2]]


def test_nothing_is_rounded_where_precision_is_off() -> None:
    exact = "POINT (0.1234567890123456 1e-12)"
    assert canonical(shapely.from_wkt(exact), 0.0) == shapely.to_wkb(shapely.from_wkt(exact))
    assert canonical(None) is None


@settings(deadline=None)
@given(st.lists(st.none() | st.tuples(st.floats(-1e6, 1e6), st.floats(-90, 90)), max_size=6))
def test_boxes_in_single_precision_hold_their_geometry(
    places: list[tuple[float, float] | None],
) -> None:
    points = [None if place is None else shapely.to_wkb(shapely.Point(place)) for place in places]
    boxes = float_boxes(pa.array(points, pa.binary())).to_pylist()
    for place, box in zip(places, boxes, strict=True):
        if place is None:
            assert box is None
        else:
            assert box["xmin"] <= place[0] <= box["xmax"]
            assert box["ymin"] <= place[1] <= box["ymax"]


COORDINATES = st.integers(0, 2**31 - 1)


def along_bit_by_bit(x: int, y: int) -> int:
    """The textbook's curve."""
    distance, last = 0, 2**31 - 1
    for bit in range(30, -1, -1):
        right, up = x >> bit & 1, y >> bit & 1
        distance += (1 << 2 * bit) * ((3 * right) ^ up)
        if not up:
            if right:
                x, y = last - x, last - y
            x, y = y, x
    return distance


@given(st.lists(st.tuples(COORDINATES, COORDINATES), min_size=1, max_size=20))
def test_places_are_those_of_the_hilbert_curve_of_31_bits(places: list[tuple[int, int]]) -> None:
    x, y = (np.array(axis, np.int64) for axis in zip(*places, strict=True))
    assert hilbert.along(x, y).tolist() == [along_bit_by_bit(*place) for place in places]


def test_a_box_without_width_and_one_without_end_have_places_too() -> None:
    centres = np.array([[5.0, -1e308], [5.0, 1e308]])
    places = hilbert.place(centres, (5.0, -1e308, 5.0, 1e308))
    assert places[0] != places[1]
