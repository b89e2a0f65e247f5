"""Readers and validators that are not ours take the files as they are."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import geopandas
import geoparquet_validator
import pyarrow.parquet as pq
import pyogrio
import pytest
import shapely
from tests.building import Dataset, declare

from ploti.server.build.candidate import Candidate, FileRole

SHAPES = {
    "1": "POLYGON ((0 0, 6 0, 6 6, 0 6, 0 0))",
    "2": "MULTIPOLYGON (((1 1, 2 1, 2 2, 1 1)), ((3 3, 4 3, 4 4, 3 3)))",
    "3": "POLYGON Z ((0 0 9, 1 0 9, 1 1 9, 0 0 9))",
    "4": None,
    "5": "POLYGON EMPTY",
}


def features() -> str:
    return json.dumps(
        {
            "type": "FeatureCollection",
            "features": [
                {
                    "type": "Feature",
                    "properties": {"id": key, "status": "open"},
                    "geometry": shape and json.loads(shapely.to_geojson(shapely.from_wkt(shape))),
                }
                for key, shape in SHAPES.items()
            ],
        }
    )


@pytest.fixture
def shapes(tmp_path: Path) -> tuple[Dataset, Candidate]:
    dataset = Dataset(tmp_path, declare(key=["id"]))
    return dataset, dataset.release_text(features(), name="shapes.geojson")


@pytest.fixture
def points(tmp_path: Path) -> tuple[Dataset, Candidate]:
    dataset = Dataset(
        tmp_path,
        declare(key=["id"], geometry={"longitude": "x", "latitude": "y"}),
    )
    state = "id,x,y,note\n" + "".join(
        f"p{number},{number / 10 - 80},{45 - number / 100},n{number % 3}\n" for number in range(500)
    )
    dataset.release_text(state)
    return dataset, dataset.release_text(state.replace("p7,", "p507,").replace("n1", "m", 40))


def require_valid(path: Path) -> None:
    report = geoparquet_validator.check(str(path))
    for name in ("core", "covering"):
        assert geoparquet_validator.failed(report, name) == []


def test_a_validator_accepts_snapshots_and_changes(
    shapes: tuple[Dataset, Candidate], tmp_path: Path
) -> None:
    dataset, built = shapes
    require_valid(dataset.path(built, FileRole.SNAPSHOT))
    later = dataset.release_text(
        features().replace('"open"', '"closed"', 2).replace('"5"', '"6"'), name="shapes.geojson"
    )
    require_valid(dataset.path(later, FileRole.SNAPSHOT))
    require_valid(dataset.path(later, FileRole.CHANGES))


def test_types_and_box_are_those_of_the_data(shapes: tuple[Dataset, Candidate]) -> None:
    """F02, F05: types listed truthfully, no box for what is empty, the null stays null."""
    dataset, built = shapes
    said = json.loads(pq.read_metadata(dataset.path(built, FileRole.SNAPSHOT)).metadata[b"geo"])
    column = said["columns"]["geometry"]
    assert said["version"] == "1.1.0"
    assert column["geometry_types"] == ["MultiPolygon", "Polygon", "Polygon Z"]
    assert column["bbox"] == [0, 0, 6, 6]
    assert built.schema.geometry is not None
    assert built.schema.geometry.types == column["geometry_types"]


def test_geopandas_reads_the_files_with_their_reference_system(
    points: tuple[Dataset, Candidate],
) -> None:
    dataset, built = points
    frame = geopandas.read_parquet(dataset.path(built, FileRole.SNAPSHOT))
    assert (len(frame), frame.crs.to_epsg()) == (500, 4326)
    box = (-70.05, 0, -60.05, 90)
    found = geopandas.read_parquet(dataset.path(built, FileRole.SNAPSHOT), bbox=box)
    assert len(found) == 100
    assert len(geopandas.read_parquet(dataset.path(built, FileRole.CHANGES))) == 41


def test_duckdb_reads_the_files_as_geometry(points: tuple[Dataset, Candidate]) -> None:
    dataset, built = points
    with duckdb.connect() as connection:
        found = connection.execute(
            "SELECT count(*), min(st_astext(geometry)), any_value(typeof(geometry))"
            f" FROM '{dataset.path(built, FileRole.SNAPSHOT)}'"
        ).fetchone()
    assert found is not None
    assert found[:2] == (500, "POINT (-30.1 40.01)")
    assert found[2].startswith("GEOMETRY")


def test_gdal_reads_the_csv(points: tuple[Dataset, Candidate]) -> None:
    dataset, built = points
    frame = pyogrio.read_dataframe(dataset.path(built, FileRole.SNAPSHOT, "csv"))
    assert len(frame) == 500
    assert list(frame.columns) == ["_ploti_record_id", "id", "x", "y", "note", "geometry"]
    row = frame[frame["id"] == "p3"].iloc[0]
    assert (row["x"], row["note"], row["geometry"]) == (
        "-79.7",
        "n0",
        "POINT (-79.7 44.97)",
    )
