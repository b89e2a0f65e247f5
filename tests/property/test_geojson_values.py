"""GeoJSON: every property's value comes out of the reader as its text stands in the source."""

import json
import tempfile
from pathlib import Path

import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.geojson import collection, feature, read

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40).filter(bool)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
NESTED = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = st.sampled_from(["a", "A", "b c", "größe", 'quo"te', "", "geometry", "c0"])
ROWS = st.lists(st.dictionaries(NAMES, NESTED, max_size=4), max_size=8)


def cleaned(value: object) -> object:
    """The value without NUL, which no database takes."""
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, list):
        return [cleaned(each) for each in value]
    if isinstance(value, dict):
        return {cleaned(name): cleaned(each) for name, each in value.items()}
    return value


def text_of(value: object, kind: str) -> str | None:
    if value is None:
        return None
    if isinstance(value, str) and kind != "json":
        return cleaned(value)  # type: ignore[return-value]
    return json.dumps(value, ensure_ascii=False)


@settings(deadline=None, max_examples=60)
@given(ROWS)
def test_every_value_survives_with_its_exact_text(rows: list[dict[str, object]]) -> None:
    features = [feature(properties=row) for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        found = read(collection(*features), Path(folder))
    assert found.table.rows == len(rows)
    for name in {name for row in rows for name in row}:
        for row, came in zip(rows, found.rows, strict=True):
            value = row.get(name)
            if found.kinds[name] == "json" and value is not None:
                assert json.loads(came[name] or "") == cleaned(value)
            else:
                assert came[name] == text_of(value, found.kinds[name])


COORDINATES = st.floats(-180, 180)
POINTS = st.builds(shapely.Point, COORDINATES, COORDINATES)
POINTS_Z = st.builds(shapely.Point, COORDINATES, COORDINATES, COORDINATES)
LINES = st.lists(st.tuples(COORDINATES, COORDINATES), min_size=2, max_size=4).map(
    shapely.LineString
)
BOXES = st.builds(
    lambda x, y, w: shapely.box(x, y, x + w, y + w), COORDINATES, COORDINATES, st.floats(0.1, 9)
)
GEOMETRIES = st.one_of(
    POINTS,
    POINTS_Z,
    LINES,
    BOXES,
    st.lists(POINTS, max_size=3).map(shapely.MultiPoint),
    st.lists(POINTS_Z, min_size=1, max_size=3).map(shapely.MultiPoint),
    st.lists(LINES, max_size=3).map(shapely.MultiLineString),
    st.lists(BOXES, max_size=3).map(shapely.MultiPolygon),
    st.lists(POINTS | LINES | BOXES, max_size=3).map(shapely.GeometryCollection),
    st.just(shapely.Point()),
    st.just(shapely.Polygon()),
)


def mapping(shape: shapely.Geometry | None) -> object:
    return None if shape is None else json.loads(shapely.to_geojson(shape))


def wkb(shape: shapely.Geometry | None) -> bytes | None:
    return None if shape is None else shapely.to_wkb(shape, flavor="iso", byte_order=1)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.none() | GEOMETRIES, max_size=5))
def test_every_geometry_is_the_wkb_of_its_coordinates(
    geometries: list[shapely.Geometry | None],
) -> None:
    features = [feature(mapping(shape)) for shape in geometries]
    with tempfile.TemporaryDirectory() as folder:
        found = read(collection(*features), Path(folder))
    assert found.geometries == [wkb(shape) for shape in geometries]
