"""Curves in well-known binary become short straight lines, in every format that hands it over."""

from math import pi
from struct import pack
from typing import Any

import pytest
import shapely

from ploti.errors import SourceError
from ploti.server.adapters.readers.iso_wkb import canonical

CIRCLE = [(10, 0), (-10, 0), (10, 0)]
UPPER = [(10, 0), (0, 10), (-10, 0)]


def head(code: int, *, order: str = "<") -> bytes:
    return pack(f"{order}BI", order == "<", code)


def line(code: int, *positions: tuple[float, ...], order: str = "<") -> bytes:
    body = b"".join(pack(f"{order}{len(position)}d", *position) for position in positions)
    return head(code, order=order) + pack(f"{order}I", len(positions)) + body


def holding(code: int, *parts: bytes) -> bytes:
    return head(code) + pack("<I", len(parts)) + b"".join(parts)


def read(wkb: bytes) -> Any:
    (written,) = canonical([wkb], first=1)
    assert written is not None
    return shapely.from_wkb(written)


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_string_of_arcs_passes_its_points(order: str) -> None:
    found = read(line(8, *UPPER, (-10, -5), (-10, -10), order=order))
    assert found.geom_type == "LineString"
    assert found.coords[0] == (10, 0)
    assert found.coords[-1] == (-10, -10)
    assert found.distance(shapely.Point(0, 10)) < 0.01
    assert found.length == pytest.approx(10 * pi + 10, rel=1e-3)


def test_a_curved_polygon_is_a_circle_with_a_hole() -> None:
    hole = line(2, (1, 1), (2, 1), (2, 2), (1, 1))
    found = read(holding(10, line(8, *CIRCLE), hole))
    assert found.geom_type == "Polygon"
    assert found.area == pytest.approx(100 * pi - 0.5, rel=2e-3)


def test_a_compound_curve_is_one_line() -> None:
    found = read(holding(9, line(8, *UPPER), line(2, (-10, 0), (-10, -20))))
    assert found.geom_type == "LineString"
    assert len(set(found.coords)) == len(found.coords)
    assert found.length == pytest.approx(10 * pi + 20, rel=1e-3)
    ring = holding(9, line(8, *UPPER), line(2, (-10, 0), (10, 0)))
    assert read(holding(10, ring)).area == pytest.approx(50 * pi, rel=2e-3)


def test_several_curves_and_surfaces_are_several_lines_and_polygons() -> None:
    lines = read(holding(11, line(8, *UPPER), line(2, (0, 0), (1, 1))))
    assert lines.geom_type == "MultiLineString"
    surfaces = holding(12, holding(10, line(8, *CIRCLE)))
    assert read(surfaces).geom_type == "MultiPolygon"
    assert read(holding(7, surfaces)).geoms[0].geom_type == "MultiPolygon"


def test_heights_and_measures_rise_along_an_arc() -> None:
    found = read(line(3008, (10, 0, 0, 5), (0, 10, 1, 6), (-10, 0, 2, 7)))
    heights, measures = shapely.get_coordinates(found, include_z=True, include_m=True)[:, 2:].T
    assert heights.tolist() == sorted(heights)
    assert (heights[-1], measures[0], measures[-1]) == (2, 5, 7)
    assert measures.tolist() == pytest.approx((heights + 5).tolist())


@pytest.mark.parametrize(("surface", "part"), [(1015, 1003), (1016, 1017)])
def test_a_surface_is_the_polygons_that_make_it_up(surface: int, part: int) -> None:
    patches = [
        [(0, 0, 0), (1, 0, 0), (0, 1, 1), (0, 0, 0)],
        [(1, 0, 0), (1, 1, 2), (0, 1, 1), (1, 0, 0)],
    ]
    found = read(holding(surface, *(holding(part, line(0, *ring)[5:]) for ring in patches)))
    assert (found.geom_type, found.has_z) == ("MultiPolygon", True)
    assert [list(each.exterior.coords) for each in found.geoms] == patches
    assert read(holding(part, line(0, *patches[1])[5:])).exterior.coords[1] == (1, 1, 2)


def test_an_empty_curve_is_empty() -> None:
    assert read(line(8)).wkt == "LINESTRING EMPTY"
    assert read(holding(9)).wkt == "LINESTRING EMPTY"
    assert read(holding(10)).wkt == "POLYGON EMPTY"


@pytest.mark.parametrize(
    ("wkb", "reason"),
    [
        (line(8, (0, 0), (1, 1)), "told by 2 positions"),
        (line(8, (0, 0), (1, 1), (2, 0), (3, 0)), "told by 4 positions"),
        (holding(10, pack("<BI2d", 1, 1, 0, 0)), "does not belong there"),
        (holding(12, line(2, (0, 0), (1, 1))), "does not belong there"),
        (holding(16, holding(10, line(8, *CIRCLE)), line(2, (0, 0), (1, 1))), "does not belong"),
        (holding(14), "it is a Surface"),
    ],
)
def test_what_is_no_curve_is_refused_with_its_row(wkb: bytes, reason: str) -> None:
    with pytest.raises(SourceError, match=f"row 1: .*{reason}"):
        canonical([wkb], first=1)
