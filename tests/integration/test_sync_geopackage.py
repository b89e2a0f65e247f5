"""What is particular to a GeoPackage as a destination, as GDAL and plain SQLite see it."""

from __future__ import annotations

import math
import struct
import warnings
from pathlib import Path

import geopandas
import pyogrio
import pytest
from tests.fakes import synced
from tests.fakes.feed import FakeFeed, make_schema

from ploti.errors import SyncError
from ploti.model.digest import bucket_of
from ploti.model.ids import DatasetId
from ploti.sync.verify import verify

PERMITS = DatasetId("ds_permits")
SCHEMA = make_schema(
    crs="EPSG:26915", name="string", active="boolean", issued="date", geometry="geometry"
)
EMPTY = struct.pack("<BII", 1, 3, 0)


def point(x: float, y: float) -> bytes:
    return struct.pack("<BIdd", 1, 1, x, y)


def line(*points: tuple[float, float, float]) -> bytes:
    flat = [number for each in points for number in each]
    return struct.pack(f"<BII{len(flat)}d", 1, 1002, len(points), *flat)


ROWS = {
    "rec_a": {"name": "one", "active": True, "geometry": point(1, 2)},
    "rec_b": {"name": "two", "geometry": line((3, 4, 0), (5, -6, 1))},
    "rec_c": {"name": "empty", "geometry": EMPTY},
    "rec_d": {"name": "none"},
    "rec_e": {"name": "no point", "geometry": point(math.nan, math.nan)},
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "feeds.gpkg"


@pytest.fixture
def feed() -> FakeFeed:
    feed = FakeFeed()
    feed.join(PERMITS)
    feed.release(PERMITS, SCHEMA, ROWS)
    return feed


def read(file: Path, **options: object) -> geopandas.GeoDataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return geopandas.read_file(file, layer="permits", **options).set_index("name")


def assert_equal(feed: FakeFeed, file: Path) -> None:
    (found,) = verify(feed, synced.destination(file)).datasets
    assert found.matches, found.detail


def test_gdal_reads_the_layer_with_its_reference_system(feed: FakeFeed, file: Path) -> None:
    synced.sync(feed, file)
    assert_equal(feed, file)
    layer = read(file)
    assert layer.crs == "EPSG:26915"
    assert layer.geometry["one"].wkt == "POINT (1 2)"
    assert layer.geometry["two"].wkt == "LINESTRING Z (3 4 0, 5 -6 1)"
    assert layer.geometry["empty"].wkt == "POLYGON EMPTY"
    assert layer.geometry["none"] is None
    assert layer["active"]["one"] == True  # noqa: E712 - a value of numpy's
    assert list(read(file, bbox=(0, 0, 2, 3)).index) == ["one"]
    assert pyogrio.read_info(file, layer="permits", force_total_bounds=True)["total_bounds"] == (
        1,
        -6,
        5,
        4,
    )


def test_the_header_says_which_geometries_are_empty(feed: FakeFeed, file: Path) -> None:
    synced.sync(feed, file)
    found = synced.query(file, "SELECT name, hex(substr(geometry, 1, 8)) FROM permits")
    of_26915 = "23690000"
    assert dict(found) == {
        "one": f"47500001{of_26915}",
        "two": f"47500001{of_26915}",
        "empty": f"47500011{of_26915}",
        "no point": f"47500011{of_26915}",
        "none": "",
    }


def test_a_dataset_of_longitudes_and_latitudes_is_in_4326(file: Path) -> None:
    feed = FakeFeed()
    feed.join(PERMITS)
    rows = {"rec_a": {"name": "one", "geometry": point(1, 2)}}
    feed.release(PERMITS, make_schema(name="string", geometry="geometry"), rows)
    synced.sync(feed, file)
    assert read(file).crs == "EPSG:4326"


def test_a_dataset_without_geometry_is_a_table_for_gdal(file: Path) -> None:
    feed = FakeFeed()
    feed.join(PERMITS)
    feed.release(PERMITS, make_schema(name="string"), {"rec_a": {"name": "one"}})
    synced.sync(feed, file)
    assert_equal(feed, file)
    assert list(pyogrio.read_dataframe(file, layer="permits")["name"]) == ["one"]


def indexed(file: Path) -> list[tuple[object, ...]]:
    return synced.query(file, "SELECT minx, maxx, miny, maxy FROM rtree_permits_geometry")


def gdals_triggers(folder: Path) -> list[str]:
    """The triggers by which GDAL keeps the spatial index of a layer, for the layer `permits`."""
    mine = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy([1], [2]), crs=4326)
    mine.to_file(folder / "mine.gpkg", layer="mine", engine="pyogrio")
    found = synced.query(
        folder / "mine.gpkg",
        "SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'rtree%'",
    )
    names = {'"mine"': '"permits"', "rtree_mine_geom": "rtree_permits_geometry"}
    names |= {'"geom"': '"geometry"', '"fid"': '"_ploti_fid"'}
    triggers = [str(sql) for (sql,) in found]
    for old, new in names.items():
        triggers = [sql.replace(old, new) for sql in triggers]
    assert any("ST_IsEmpty" in sql for sql in triggers)
    return triggers


def test_a_layer_has_a_spatial_index_that_is_kept_right(feed: FakeFeed, file: Path) -> None:
    synced.sync(feed, file)
    assert sorted(indexed(file)) == [(1, 1, 2, 2), (3, 5, -6, 4)]
    rows = {"rec_b": {"name": "two", "geometry": line((7, 8, 0), (9, -10, 1))}}
    for pruned in (False, True):
        feed.release(PERMITS, SCHEMA, {**ROWS, **rows, f"rec_{pruned}": {"geometry": EMPTY}})
        if pruned:
            feed.prune()
        result = synced.sync(feed, file)
        assert (result.loads, result.applies) == ((1, 0) if pruned else (0, 1))
        assert_equal(feed, file)
        assert sorted(indexed(file)) == [(1, 1, 2, 2), (7, 9, -10, 8)]
    assert list(read(file, bbox=(6, -11, 8, 9)).index) == ["two"]
    feed.release(PERMITS, SCHEMA, {"rec_a": ROWS["rec_a"]})
    synced.sync(feed, file)
    assert indexed(file) == [(1, 1, 2, 2)]


def test_gdal_knows_the_index_and_keeps_it_when_it_edits_the_layer(
    feed: FakeFeed, file: Path
) -> None:
    synced.sync(feed, file)
    kept = "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'rtree%'"
    ours = {str(name).rpartition("_")[2] for (name,) in synced.query(file, kept)}
    theirs = [sql.split('"')[1].rpartition("_")[2] for sql in gdals_triggers(file.parent)]
    assert ours == set(theirs)
    assert pyogrio.read_info(file, layer="permits")["capabilities"]["fast_spatial_filter"]
    mine = geopandas.GeoDataFrame(
        {"_ploti_record_id": ["mine"]}, geometry=geopandas.points_from_xy([50], [60]), crs=26915
    )
    mine.to_file(file, layer="permits", mode="a", engine="pyogrio")
    assert (50, 50, 60, 60) in indexed(file)
    synced.execute(file, "UPDATE permits SET geometry = NULL WHERE name = 'one'")
    assert (1, 1, 2, 2) not in indexed(file)


def test_a_table_made_anew_leaves_nothing_of_the_old_layer(feed: FakeFeed, file: Path) -> None:
    synced.sync(feed, file)
    feed.release(PERMITS, make_schema(name="int64"), {"rec_a": {"name": 1}})
    synced.sync(feed, file)
    assert_equal(feed, file)
    assert synced.query(file, "SELECT * FROM gpkg_geometry_columns") == []
    assert synced.query(file, "SELECT * FROM gpkg_extensions") == []
    assert synced.query(file, "SELECT data_type FROM gpkg_contents") == [("attributes",)]
    assert synced.query(file, "SELECT name FROM sqlite_schema WHERE name LIKE 'rtree%'") == []


def test_another_reference_system_is_told(feed: FakeFeed, file: Path) -> None:
    synced.sync(feed, file)
    other = make_schema(
        crs="EPSG:2236", name="string", active="boolean", issued="date", geometry="geometry"
    )
    feed.release(PERMITS, other, ROWS)
    synced.sync(feed, file)
    assert_equal(feed, file)
    assert read(file).crs == "EPSG:2236"


@pytest.mark.parametrize("blob", ["x'00'", "x'475000090000'", "x'010100000000'", "'text'"])
def test_a_geometry_without_a_header_makes_its_bucket_differ(
    feed: FakeFeed, file: Path, blob: str
) -> None:
    synced.sync(feed, file)
    change = f"UPDATE permits SET geometry = {blob} WHERE _ploti_record_id = 'rec_d'"
    synced.execute(file, change)
    (found,) = verify(feed, synced.destination(file)).datasets
    assert (found.matches, found.buckets) == (False, [bucket_of("rec_d")])


def test_a_database_that_is_no_geopackage_is_refused(feed: FakeFeed, file: Path) -> None:
    synced.execute(file, "CREATE TABLE mine (a)")
    with pytest.raises(SyncError, match="no GeoPackage"):
        synced.sync(feed, file)
    assert synced.query(file, "SELECT name FROM sqlite_schema") == [("mine",)]


def test_a_geopackage_of_somebodys_keeps_its_layers(feed: FakeFeed, file: Path) -> None:
    mine = geopandas.GeoDataFrame({"a": [1]}, geometry=geopandas.points_from_xy([1], [2]), crs=3857)
    mine.to_file(file, layer="mine")
    synced.sync(feed, file)
    assert_equal(feed, file)
    assert len(read(file)) == len(ROWS)
    assert geopandas.read_file(file, layer="mine").crs == "EPSG:3857"


def test_a_geopackage_is_no_plain_sqlite_destination(feed: FakeFeed, file: Path) -> None:
    synced.sync(feed, file)
    plain = file.with_suffix(".sqlite")
    file.rename(plain)
    with pytest.raises(SyncError, match="gpkg:FILE"):
        synced.sync(feed, plain)
