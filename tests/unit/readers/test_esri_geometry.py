"""Geometries of ArcGIS layers: their kinds, Z and M, rings that run wrongly, arcs and curves."""

from math import hypot, pi
from typing import Any

import pytest
import shapely

from ploti.server.adapters.readers.esri_geometry import to_wkb
from ploti.server.adapters.readers.esri_rings import polygons
from ploti.server.adapters.readers.remarks import Remark
from ploti.server.sources.pages import Shapes

SQUARE = [[0, 0], [0, 9], [9, 9], [9, 0], [0, 0]]
HOLE = [[1, 1], [5, 1], [5, 5], [1, 5], [1, 1]]
ISLAND = [[2, 2], [2, 3], [3, 3], [3, 2], [2, 2]]


class Read:
    """What a geometry reads as, and what was remarked."""

    def __init__(self, kind: str, geometry: object, *, z: bool = False, m: bool = False) -> None:
        self.remarks: list[Remark] = []
        shapes = Shapes(type=f"esriGeometry{kind}", z=z, m=m)
        self.wkb = to_wkb(geometry, shapes=shapes, remark=self.remarks.append)

    @property
    def geometry(self) -> Any:
        return None if self.wkb is None else shapely.from_wkb(self.wkb)

    @property
    def text(self) -> str:
        return shapely.to_wkt(self.geometry)


@pytest.mark.parametrize(
    ("kind", "geometry", "text"),
    [
        ("Point", {"x": 1, "y": "2.5"}, "POINT (1 2.5)"),
        ("Multipoint", {"points": [[1, 2], [3, 4]]}, "MULTIPOINT ((1 2), (3 4))"),
        ("Polyline", {"paths": [[[1, 2], [3, 4]]]}, "LINESTRING (1 2, 3 4)"),
        (
            "Polyline",
            {"paths": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]},
            "MULTILINESTRING ((1 2, 3 4), (5 6, 7 8))",
        ),
        (
            "Envelope",
            {"xmin": 0, "ymin": 0, "xmax": 1, "ymax": 2},
            "POLYGON ((0 0, 0 2, 1 2, 1 0, 0 0))",
        ),
    ],
)
def test_each_kind_of_geometry_is_read(kind: str, geometry: object, text: str) -> None:
    assert Read(kind, geometry).text == text


@pytest.mark.parametrize(
    ("kind", "geometry"),
    [
        ("Point", None),
        ("Point", {}),
        ("Point", {"x": "NaN", "y": "NaN"}),
        ("Point", {"x": None, "y": None}),
        ("Multipoint", {"points": []}),
        ("Polyline", {"paths": []}),
        ("Polygon", {"rings": []}),
        ("Polygon", {"rings": [[]]}),
        ("Envelope", {"xmin": "NaN"}),
    ],
)
def test_a_shape_without_positions_is_none(kind: str, geometry: object) -> None:
    assert Read(kind, geometry).wkb is None


@pytest.mark.parametrize(
    ("kind", "geometry", "said"),
    [
        ("Point", "POINT (1 2)", "is no object"),
        ("MultiPatch", {"rings": []}, "esriGeometryMultiPatch, which is not read"),
        ("Polyline", {"paths": [[[1, 2]]]}, "a single position"),
        ("Polyline", {"paths": [[[1], [2, 3]]]}, "less than two numbers"),
        ("Polyline", {"paths": [[[1, None], [2, 3]]]}, "a position without numbers"),
        ("Polygon", {"rings": [[[0, 0], [1, 1]]]}, "a ring of 3 positions"),
        ("Polygon", {"rings": {"a": 1}}, "rings are no list"),
        ("Polygon", {"curveRings": [[{"c": [[0, 0], [1, 1]]}]]}, "neither a position nor a curve"),
        ("Polygon", {"curveRings": [[[0, 0], {"q": []}]]}, "curve of an unknown kind"),
    ],
)
def test_what_is_no_geometry_is_told(kind: str, geometry: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Read(kind, geometry)


def test_z_and_m_are_kept_where_every_position_has_them() -> None:
    assert Read("Point", {"x": 1, "y": 2, "z": 3, "m": 4}).text == "POINT ZM (1 2 3 4)"
    assert Read("Point", {"x": 1, "y": 2, "z": None}).text == "POINT (1 2)"
    paths = {"paths": [[[1, 2, 3, 4], [5, 6, 7, 8]]]}
    assert Read("Polyline", paths, z=True, m=True).text == "LINESTRING ZM (1 2 3 4, 5 6 7 8)"
    assert Read("Polyline", {"paths": [[[1, 2, 9], [5, 6, 9]]]}, m=True).text == (
        "LINESTRING M (1 2 9, 5 6 9)"
    )
    broken = Read("Polyline", {"paths": [[[1, 2, 3, None], [5, 6, 7, 8]]]}, z=True, m=True)
    assert broken.text == "LINESTRING Z (1 2 3, 5 6 7)"
    assert broken.remarks == [Remark.HEIGHTS_DROPPED]


def test_an_open_ring_is_closed_with_a_remark() -> None:
    found = Read("Polygon", {"rings": [SQUARE[:-1]]})
    assert found.geometry.area == 81
    assert found.remarks == [Remark.RING_CLOSED]


def rings(*listed: list[list[int]]) -> list[list[tuple[float, ...]]]:
    return [[(float(x), float(y)) for x, y in ring] for ring in listed]


def test_an_island_in_a_hole_is_a_polygon_of_its_own() -> None:
    found = polygons(rings(ISLAND, HOLE, SQUARE))
    assert sorted(len(polygon) for polygon in found) == [1, 2]
    area = sum(shapely.Polygon(p[0], p[1:]).area for p in found)
    assert area == 81 - 16 + 1


def test_rings_that_run_the_wrong_way_are_told_by_what_is_around_them() -> None:
    (found,) = polygons(rings(SQUARE[::-1], HOLE[::-1]))
    assert found == rings(SQUARE[::-1], HOLE[::-1])


def test_a_hole_that_touches_its_outer_ring_is_in_it() -> None:
    touching = [[0, 0], [3, 1], [1, 3], [0, 0]]
    (found,) = polygons(rings(SQUARE, touching))
    assert len(found) == 2


def test_thousands_of_rings_are_sorted_into_their_outer_ones() -> None:
    wide = [[0, 0], [0, 400], [400, 400], [400, 0], [0, 0]]
    holes = [
        [[x, y], [x + 1, y], [x + 1, y + 1], [x, y + 1], [x, y]]
        for x in range(1, 150, 3)
        for y in range(1, 150, 3)
    ]
    (found,) = polygons(rings(wide, *holes))
    assert len(found) == 2501


def test_of_two_equal_rings_that_run_the_wrong_way_one_is_in_the_other() -> None:
    (found,) = polygons(rings(SQUARE[::-1], SQUARE[::-1]))
    assert len(found) == 2


def farthest(read: Read, radius: float) -> float:
    return max(abs(hypot(x, y) - radius) for x, y in shapely.get_coordinates(read.geometry))


def test_an_arc_through_a_point_keeps_its_radius() -> None:
    path = {"curvePaths": [[[10, 0], {"c": [[-10, 0], [0, 10]]}]]}
    found = Read("Polyline", path)
    assert farthest(found, 10) < 1e-9
    assert abs(found.geometry.length - pi * 10) < 0.01
    assert found.remarks == [Remark.ARC_DRAWN]
    below = Read("Polyline", {"curvePaths": [[[10, 0], {"c": [[-10, 0], [0, -10]]}]]})
    assert shapely.bounds(below.geometry)[1] == pytest.approx(-10)
    circle = Read("Polygon", {"curveRings": [[[10, 0], {"c": [[10, 0], [-10, 0]]}]]})
    assert circle.geometry.area == pytest.approx(pi * 100, rel=0.01)
    straight = Read("Polyline", {"curvePaths": [[[0, 0], {"c": [[2, 2], [1, 1]]}]]})
    assert straight.text == "LINESTRING (0 0, 2 2)"


@pytest.mark.parametrize(
    ("minor", "clockwise", "length"), [(1, 0, 0.25), (0, 1, 0.75), (1, 1, 0.25)]
)
def test_an_arc_about_a_center_goes_the_way_that_is_said(
    minor: int, clockwise: int, length: float
) -> None:
    arc = {"a": [[0, 10], [0, 0], minor, clockwise]}
    found = Read("Polyline", {"curvePaths": [[[10, 0], arc]]})
    assert farthest(found, 10) < 1e-9
    assert found.geometry.length == pytest.approx(2 * pi * 10 * length, rel=0.01)


def test_an_ellipse_has_its_axes_and_its_turn() -> None:
    whole = {"a": [[10, 0], [0, 0], 0, 1, 0, 10, 0.5]}
    found = Read("Polygon", {"curveRings": [[[10, 0], whole]]})
    assert shapely.bounds(found.geometry).tolist() == pytest.approx([-10, -5, 10, 5])
    turned = {"a": [[0, 10], [0, 0], 0, 1, pi / 2, 10, 0.5]}
    upright = Read("Polygon", {"curveRings": [[[0, 10], turned]]})
    assert shapely.bounds(upright.geometry).tolist() == pytest.approx([-5, -10, 5, 10])


def test_a_bezier_curve_ends_where_it_says() -> None:
    curve = {"b": [[4, 0], [0, 4], [4, 4]]}
    found = Read("Polyline", {"curvePaths": [[[0, 0], curve]]})
    coordinates = shapely.get_coordinates(found.geometry)
    assert coordinates[0].tolist() == [0, 0]
    assert coordinates[-1].tolist() == [4, 0]
    assert coordinates[12].tolist() == pytest.approx([2, 3])
