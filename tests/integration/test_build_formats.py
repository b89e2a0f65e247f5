"""The same records out of every format: whatever it is packed in, a version holds them exactly."""

import datetime as dt
import sqlite3
import struct
import zipfile
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from itertools import chain
from math import pi
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import pytest
import shapely
from tests.building import Dataset, declare

from ploti.server.build.candidate import Candidate, FileRole

IDS = ["007", "12E4", "9223372036854775808"]
NOTES = ["a", "", None]
WKB = [shapely.to_wkb(shapely.Point(n, 2)) for n in range(3)]
TABLE = pa.table({"id": IDS, "note": NOTES, "n": [2**53 + 1, -1, None], "g": pa.array(WKB)})
GEO = '{"version": "1.1.0", "primary_column": "g", "columns": {"g": {"encoding": "WKB"}}}'


def geoparquet(folder: Path) -> Path:
    path = folder / "a.parquet"
    pq.write_table(TABLE.replace_schema_metadata({"geo": GEO}), path)
    return path


def by_gdal(
    folder: Path,
    name: str,
    driver: str,
    *,
    table: pa.Table = TABLE,
    kind: str = "Point",
    **options: str,
) -> Path:
    path = folder / name
    pyogrio.write_arrow(
        table,
        path,
        driver=driver,
        geometry_name="g",
        geometry_type=kind,
        crs="EPSG:4326",
        **options,
    )
    return path


def gpkg(folder: Path, **given: Any) -> Path:
    return by_gdal(folder, "a.gpkg", "GPKG", **given)


def flatgeobuf(folder: Path) -> Path:
    return by_gdal(folder, "a.fgb", "FlatGeobuf", SPATIAL_INDEX="NO")


def filegdb(folder: Path, **given: Any) -> Path:
    newer = {"TARGET_ARCGIS_VERSION": "ARCGIS_PRO_3_2_OR_LATER"}
    made = by_gdal(folder, "a.gdb", "OpenFileGDB", **newer, **given)
    return zipped(folder, *sorted(made.iterdir()), inside="a.gdb/")


def shapefile(folder: Path) -> Path:
    by_gdal(folder, "a.shp", "ESRI Shapefile")
    return zipped(folder, *sorted(folder.glob("a.*")))


def zipped(folder: Path, *files: Path, inside: str = "") -> Path:
    path = folder / "packed.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in files:
            packed.write(file, inside + file.name)
    return path


def features() -> list[str]:
    rows = zip(IDS, NOTES, TABLE["n"].to_pylist(), range(3), strict=True)
    quoted = [
        (i, "null" if t is None else f'"{t}"', "null" if n is None else n, x) for i, t, n, x in rows
    ]
    return [
        f'{{"type":"Feature","properties":{{"id":"{i}","note":{t},"n":{n}}},'
        f'"geometry":{{"type":"Point","coordinates":[{x},2]}}}}'
        for i, t, n, x in quoted
    ]


def geojson(folder: Path) -> Path:
    path = folder / "a.geojson"
    path.write_text(f'{{"type":"FeatureCollection","features":[{",".join(features())}]}}')
    return path


def geojsonseq(folder: Path) -> Path:
    path = folder / "a.geojsonl"
    path.write_text("\n".join(features()))
    return path


def geojson_zipped(folder: Path) -> Path:
    return zipped(folder, geojson(folder))


def snapshot(dataset: Dataset, built: Candidate) -> list[dict[str, Any]]:
    path = dataset.path(built, FileRole.SNAPSHOT)
    rows = duckdb.sql(
        f"SELECT * EXCLUDE (_ploti_record_id, _ploti_bbox, geometry),"
        f" st_astext(geometry) AS wkt FROM '{path}' ORDER BY id"
    )
    return [dict(zip(rows.columns, row, strict=True)) for row in rows.fetchall()]


FAITHFUL = [geoparquet, gpkg, filegdb, geojson, geojsonseq, geojson_zipped]
"""Formats that tell an empty text from null."""


@pytest.mark.parametrize("make", [*FAITHFUL, flatgeobuf, shapefile])
def test_a_version_holds_what_the_format_was_given(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    dataset = Dataset(tmp_path / "built", declare(key=["id"]))
    built = dataset.release(make(tmp_path))
    blank = "" if make is not shapefile else None
    assert snapshot(dataset, built) == [
        {"id": "007", "note": "a", "n": 2**53 + 1, "wkt": "POINT (0 2)"},
        {"id": "12E4", "note": blank, "n": -1, "wkt": "POINT (1 2)"},
        {"id": "9223372036854775808", "note": None, "n": None, "wkt": "POINT (2 2)"},
    ]


def circle(number: int) -> bytes:
    """A circle of radius 1 as a polygon of arcs."""
    arcs = [(number + 1, 2), (number - 1, 2), (number + 1, 2)]
    ring = struct.pack("<BII6d", 1, 8, 3, *chain.from_iterable(arcs))
    return struct.pack("<BII", 1, 10, 1) + ring


@pytest.mark.parametrize(("make", "kind"), [(gpkg, "Unknown"), (filegdb, "MultiPolygon")])
def test_curves_are_drawn_and_told_and_stay_as_they_are_drawn(
    tmp_path: Path, make: Callable[..., Path], kind: str
) -> None:
    curves = pa.table({"id": IDS, "g": pa.array([circle(n) for n in range(3)])})
    dataset = Dataset(tmp_path / "built", declare(key=["id"]))
    source = make(tmp_path, table=curves, kind=kind)
    built = dataset.release(source)
    shapes = [shapely.from_wkt(row["wkt"]) for row in snapshot(dataset, built)]
    assert [shape.area for shape in shapes] == pytest.approx([pi] * 3, rel=1e-2)
    assert [round(shape.centroid.x, 6) for shape in shapes] == [0, 1, 2]
    assert [finding.kind for finding in built.findings] == ["arc_drawn"]
    assert not isinstance(dataset.build(source), Candidate)


@pytest.mark.parametrize("make", FAITHFUL)
def test_a_source_that_changes_only_its_format_is_unchanged(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    dataset = Dataset(tmp_path / "built", declare(key=["id"]))
    (tmp_path / "first").mkdir()
    first = dataset.release(geojson(tmp_path / "first"))
    (tmp_path / "second").mkdir()
    again = dataset.build(make(tmp_path / "second"))
    assert again.state_digest == first.state_digest


def test_the_types_of_parquet_are_those_of_the_version(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    moment = dt.datetime(2024, 1, 2, 3, 4, 5, 123456, tzinfo=dt.UTC)
    pq.write_table(
        pa.table(
            {
                "id": ["a"],
                "fee": pa.array([Decimal("12.50")], pa.decimal128(12, 2)),
                "size": [3.0],
                "big": pa.array([2**64 - 1], pa.uint64()),
                "day": [dt.date(2024, 2, 29)],
                "seen": pa.array([moment], pa.timestamp("us", "America/New_York")),
                "local": pa.array([moment.replace(tzinfo=None)], pa.timestamp("ms")),
                "ok": [True],
                "more": [{"b": [1, 2]}],
            }
        ),
        path,
    )
    dataset = Dataset(tmp_path / "built", declare(key=["id"]))
    built = dataset.release(path)
    assert {column.name: column.type for column in built.schema.columns} == {
        "id": "string",
        "fee": "decimal(12,2)",
        "size": "float64",
        "big": "string",
        "day": "date",
        "seen": "timestamp",
        "local": "datetime",
        "ok": "boolean",
        "more": "json",
    }
    (row,) = duckdb.sql(
        f"SELECT fee, big, epoch_us(seen) FROM '{dataset.path(built, FileRole.SNAPSHOT)}'"
    ).fetchall()
    assert row == (Decimal("12.50"), str(2**64 - 1), int(moment.timestamp()) * 1_000_000 + 123456)


def test_date_times_of_a_geopackage_keep_their_microseconds(tmp_path: Path) -> None:
    path = gpkg(tmp_path)
    with closing(sqlite3.connect(path)) as database:
        database.create_function("ST_IsEmpty", 1, lambda _: 0)
        for name in ("ST_MinX", "ST_MaxX", "ST_MinY", "ST_MaxY"):
            database.create_function(name, 1, lambda _: 0.0)
        database.execute("ALTER TABLE a ADD COLUMN seen DATETIME")
        database.execute("UPDATE a SET seen = '2024-01-02T03:04:05.123456Z'")
        database.commit()
    dataset = Dataset(tmp_path / "built", declare(key=["id"]))
    built = dataset.release(path)
    assert built.schema.column("seen").type == "timestamp"
    sql = (
        f"SELECT DISTINCT epoch_us(seen) % 1000000 FROM '{dataset.path(built, FileRole.SNAPSHOT)}'"
    )
    assert duckdb.sql(sql).fetchall() == [(123456,)]
