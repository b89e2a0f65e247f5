"""Geometry in any reference system becomes the dataset's: the same from every format, each time."""

import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import pyproj
import pytest
import shapely
from tests.building import Dataset, declare

from ploti.model.schema import Level
from ploti.server.build.candidate import Broken, Candidate, FileRole, Unchanged

CASES = Path(__file__).parents[1] / "data" / "cases"
ORLANDO = (-81.379234, 28.538336)
FEET = pyproj.Transformer.from_crs("EPSG:4326", "EPSG:2236", always_xy=True).transform(*ORLANDO)


def points(dataset: Dataset, built: Candidate) -> list[tuple[float, ...]]:
    path = dataset.path(built, FileRole.SNAPSHOT)
    with duckdb.connect() as connection:
        connection.execute("SET enable_geoparquet_conversion = false")
        sql = f"SELECT geometry FROM '{path}' ORDER BY _ploti_record_id"
        found = connection.execute(sql).fetchall()
    return [shapely.from_wkb(wkb).coords[0] for (wkb,) in found]


def by_gdal(folder: Path, name: str, driver: str) -> Path:
    path = folder / name
    table = pa.table({"id": ["a"], "g": pa.array([shapely.to_wkb(shapely.Point(FEET))])})
    options: dict[str, Any] = {"SPATIAL_INDEX": "NO"} if driver in {"GPKG", "FlatGeobuf"} else {}
    pyogrio.write_arrow(
        table,
        path,
        driver=driver,
        geometry_name="g",
        geometry_type="Point",
        crs="EPSG:2236",
        **options,
    )
    return path


def gpkg(folder: Path) -> Path:
    return by_gdal(folder, "a.gpkg", "GPKG")


def flatgeobuf(folder: Path) -> Path:
    return by_gdal(folder, "a.fgb", "FlatGeobuf")


def filegdb(folder: Path) -> Path:
    made = by_gdal(folder, "a.gdb", "OpenFileGDB")
    return zipped(folder, *sorted(made.iterdir()), inside="a.gdb/")


def shapefile(folder: Path, *leave_out: str) -> Path:
    by_gdal(folder, "a.shp", "ESRI Shapefile")
    return zipped(folder, *(f for f in sorted(folder.glob("a.*")) if f.suffix not in leave_out))


def geojson(folder: Path, at: tuple[float, ...] = FEET) -> Path:
    path = folder / "a.geojson"
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::2236"}}
    geometry = {"type": "Point", "coordinates": at}
    one = {"type": "Feature", "properties": {"id": "a"}, "geometry": geometry}
    path.write_text(json.dumps({"type": "FeatureCollection", "crs": crs, "features": [one]}))
    return path


def geoparquet(folder: Path) -> Path:
    path = folder / "a.parquet"
    column = {"encoding": "WKB", "crs": pyproj.CRS("EPSG:2236").to_json_dict()}
    geo = {"version": "1.1.0", "primary_column": "g", "columns": {"g": column}}
    table = pa.table({"id": ["a"], "g": pa.array([shapely.to_wkb(shapely.Point(FEET))])})
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), path)
    return path


def zipped(folder: Path, *files: Path, inside: str = "") -> Path:
    path = folder / "packed.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in files:
            packed.write(file, inside + file.name)
    return path


@pytest.mark.parametrize("make", [gpkg, flatgeobuf, filegdb, shapefile, geojson, geoparquet])
def test_every_spatial_format_is_brought_to_degrees_unless_another_system_is_declared(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    dataset = Dataset(tmp_path / "built", declare(key=["id"]))
    built = dataset.release(make(tmp_path))
    assert built.schema.geometry
    assert built.schema.geometry.crs == "EPSG:4326"
    assert points(dataset, built) == [pytest.approx(ORLANDO, abs=2e-9)]


@pytest.mark.parametrize("make", [gpkg, geojson, geoparquet])
def test_a_declared_system_is_the_datasets_and_what_is_in_it_already_stays_exact(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    own = {"crs": "EPSG:2236", "precision": "off"}
    dataset = Dataset(tmp_path / "built", declare(key=["id"], geometry=own))
    built = dataset.release(make(tmp_path))
    assert built.schema.geometry
    assert built.schema.geometry.crs == "EPSG:2236"
    assert points(dataset, built) == [FEET]
    stated = json.loads(pq.read_metadata(dataset.path(built, FileRole.SNAPSHOT)).metadata[b"geo"])
    assert stated["columns"]["geometry"]["crs"]["id"] == {"authority": "EPSG", "code": 2236}


def test_metres_are_rounded_to_a_tenth_of_a_millimetre(tmp_path: Path) -> None:
    dataset = Dataset(tmp_path / "built", declare(key=["id"], geometry={"crs": "EPSG:26917"}))
    ((x, y),) = points(dataset, dataset.release(geojson(tmp_path)))
    assert (x, y) == (round(x, 4), round(y, 4))
    expected = pyproj.Transformer.from_crs(2236, 26917, always_xy=True).transform(*FEET)
    assert (x, y) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("file", ["none", "crs84", "epsg4326", "utm"])
def test_geoparquet_is_placed_by_its_own_reference_whatever_that_is(
    tmp_path: Path, file: str
) -> None:
    """Case F01: no crs means longitude, latitude; metres are converted, never read as degrees."""
    dataset = Dataset(tmp_path / "built", declare())
    built = dataset.release(CASES / f"F01.{file}.parquet")
    place = (-93.1010774, 44.7573446) if file == "utm" else (-93.1, 44.7)
    assert points(dataset, built)[0] == pytest.approx(place, abs=1e-6)
    assert built.schema.geometry
    assert built.schema.geometry.crs == "EPSG:4326"


def test_two_names_of_degrees_are_one_system(tmp_path: Path) -> None:
    dataset = Dataset(tmp_path / "built", declare())
    dataset.release(CASES / "F01.none.parquet")
    for same in ("crs84", "epsg4326"):
        assert isinstance(dataset.build(CASES / f"F01.{same}.parquet"), Unchanged)


def test_degrees_are_stated_as_proj_has_them(tmp_path: Path) -> None:
    dataset = Dataset(tmp_path, declare(key=["id"], geometry={"longitude": "x", "latitude": "y"}))
    built = dataset.release_text("id,x,y\n1,2.5,3.5\n")
    said = pq.read_metadata(dataset.path(built, FileRole.SNAPSHOT)).metadata[b"geo"]
    stated = json.loads(said)["columns"]["geometry"]["crs"]
    assert stated == pyproj.CRS.from_epsg(4326).to_json_dict()


def test_another_declared_system_is_a_major_change(tmp_path: Path) -> None:
    dataset = Dataset(tmp_path / "built", declare(key=["id"]))
    dataset.release(geojson(tmp_path))
    dataset.declaration = declare(key=["id"], geometry={"crs": "EPSG:3857"})
    built = dataset.build(geojson(tmp_path))
    assert isinstance(built, Candidate)
    assert built.schema_change
    assert built.schema_change.level is Level.MAJOR
    assert built.schema_change.geometry
    assert built.schema_change.geometry.to
    assert built.schema_change.geometry.to.crs == "EPSG:3857"


def test_a_source_that_does_not_say_its_system_needs_a_declared_one(tmp_path: Path) -> None:
    source = shapefile(tmp_path, ".prj")
    refused = Dataset(tmp_path / "refused", declare(key=["id"])).build(source)
    assert isinstance(refused, Broken)
    assert "does not say its reference system" in refused.detail
    dataset = Dataset(tmp_path / "built", declare(key=["id"], geometry={"crs": "EPSG:2236"}))
    built = dataset.release(source)
    assert points(dataset, built) == [pytest.approx(FEET, abs=1e-4)]
    assert "reference_system" in [finding.kind for finding in built.findings]


def test_columns_of_points_are_in_the_declared_system(tmp_path: Path) -> None:
    geometry = {"longitude": "x", "latitude": "y", "crs": "EPSG:2236", "precision": "off"}
    dataset = Dataset(tmp_path / "built", declare(key=["id"], geometry=geometry))
    built = dataset.release_text(f"id,x,y\na,{FEET[0]!r},{FEET[1]!r}\n")
    assert points(dataset, built) == [FEET]


def test_coordinates_outside_a_systems_area_fail_the_check_and_are_shown(tmp_path: Path) -> None:
    broken = Dataset(tmp_path / "built", declare(key=["id"])).build(geojson(tmp_path, (1e30, 4e6)))
    assert isinstance(broken, Broken)
    assert "coordinates such as 1e+30, 4000000.0 lie outside the area" in broken.detail


def test_coordinates_that_are_nowhere_are_told(tmp_path: Path) -> None:
    points_ = {"longitude": "x", "latitude": "y"}
    dataset = Dataset(tmp_path, declare(key=["id"], geometry=points_))
    built = dataset.release_text(
        "id,x,y\na,-180,-90\nb,180,90\nc,200.1,10\nd,28.5,-81.3\ne,1,90.1\nf,,\n"
    )
    [finding] = built.findings
    assert (finding.kind, finding.reason) == ("outside", None)
    assert "longitudes or latitudes of EPSG:4326: 2 of them" in finding.message
    assert finding.examples == ["(1.0, 90.1)", "(200.1, 10.0)"]
    for end in ("-180.5,-90", "180.5,90", "-180,-90.5", "180,90.5"):
        [finding] = dataset.release_text(f"id,x,y\na,{end}\nb,180,-90\n").findings
        assert finding.examples == [f"({', '.join(str(float(n)) for n in end.split(','))})"]


def test_the_box_of_a_shape_that_is_partly_nowhere_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.geojson"
    line = {"type": "LineString", "coordinates": [[170, 1], [190.5, 2]]}
    one = {"type": "Feature", "properties": {"id": "a"}, "geometry": line}
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [one]}))
    built = Dataset(tmp_path / "built", declare(key=["id"])).release(path)
    [finding] = [each for each in built.findings if each.kind == "outside"]
    assert finding.examples == ["(170.0, 1.0) to (190.5, 2.0)"]


def test_coordinates_of_a_projected_system_are_no_degrees(tmp_path: Path) -> None:
    system = {"longitude": "x", "latitude": "y", "crs": "EPSG:2236"}
    dataset = Dataset(tmp_path, declare(key=["id"], geometry=system))
    assert not dataset.release_text(f"id,x,y\na,{FEET[0]!r},{FEET[1]!r}\n").findings


def measured(code: int, body: bytes) -> bytes:
    return struct.pack("<BI", 1, code) + body


def ring(*vertices: tuple[float, ...]) -> bytes:
    return struct.pack("<I", len(vertices)) + b"".join(
        struct.pack(f"<{len(vertex)}d", *vertex) for vertex in vertices
    )


def as_parquet(folder: Path, wkb: bytes, crs: str) -> Path:
    path = folder / f"{len(list(folder.glob('*.parquet')))}.parquet"
    column = {"encoding": "WKB", "crs": pyproj.CRS(crs).to_json_dict()}
    geo = {"version": "1.1.0", "primary_column": "g", "columns": {"g": column}}
    table = pa.table({"id": ["a"], "g": pa.array([wkb])})
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), path)
    return path


def stored(dataset: Dataset, built: Candidate) -> bytes:
    found: bytes = pq.read_table(dataset.path(built, FileRole.SNAPSHOT))["geometry"][0].as_py()
    return found


def test_measures_and_heights_stay_and_lines_keep_their_direction(tmp_path: Path) -> None:
    x, y = FEET
    line = measured(3002, ring((x, y, 7.5, 100.25), (x + 1, y, -0.0, 99.0)))
    dataset = Dataset(tmp_path / "built", declare(key=["id"]))
    built = dataset.release(as_parquet(tmp_path, line, "EPSG:2236"))
    found = shapely.from_wkb(stored(dataset, built))
    assert built.schema.geometry
    assert built.schema.geometry.types == ["LineString ZM"]
    first, second = shapely.get_coordinates(found, include_z=True, include_m=True).tolist()
    assert first == pytest.approx([*ORLANDO, 7.5, 100.25], abs=2e-9)
    assert second[2:] == [0.0, 99.0]


def test_measured_polygons_have_one_form_wherever_they_begin(tmp_path: Path) -> None:
    shell = [(0.0, 0.0, 1.0), (9.0, 0.0, 2.0), (9.0, 9.0, 3.0), (0.0, 9.0, 4.0)]
    hole = [(1.0, 1.0, 5.0), (1.0, 2.0, 6.0), (2.0, 2.0, 7.0)]
    one = ring(*shell, shell[0]) + ring(*hole, hole[0])
    turned = ring(*shell[2::-1], shell[3], shell[2]) + ring(*hole[1:], *hole[:2])
    dataset = Dataset(tmp_path / "built", declare(key=["id"]))
    two = struct.pack("<I", 2)
    first = dataset.release(as_parquet(tmp_path, measured(2003, two + one), "EPSG:4326"))
    assert stored(dataset, first) == measured(2003, two + one)
    again = dataset.build(as_parquet(tmp_path, measured(2003, two + turned), "EPSG:4326"))
    assert isinstance(again, Unchanged)
