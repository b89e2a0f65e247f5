"""GeoPackages: what SQLite holds is what comes out."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyogrio
import pytest
import shapely
from tests.unit.readers.reading import Read, read

from ploti.errors import SourceError
from ploti.server.adapters.readers.geopackage import GeoPackageReader


def made(folder: Path, *, layer: str = "permits", crs: str = "EPSG:4326") -> Path:
    """A GeoPackage by GDAL, with one layer of three points, which tests then change."""
    path = folder / "given.gpkg"
    points = [shapely.to_wkb(shapely.Point(1, 2)), None, shapely.to_wkb(shapely.Point())]
    pyogrio.write_arrow(
        pa.table({"t": ["007", "", None], "geometry": pa.array(points, pa.binary())}),
        path,
        layer=layer,
        driver="GPKG",
        geometry_name="geometry",
        geometry_type="Point",
        crs=crs,
        append=path.exists(),
        SPATIAL_INDEX="NO",
        GEOMETRY_NAME="geometry",
    )
    return path


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()


def read_column(folder: Path, declared: str, *values: str) -> Read:
    """A column of a declared type, its three values written as SQL."""
    path = made(folder)
    sets = [f"UPDATE permits SET a = {value} WHERE fid = {n}" for n, value in enumerate(values, 1)]
    change(path, f"ALTER TABLE permits ADD COLUMN a {declared}", *sets)
    return read(GeoPackageReader(), path, folder)


def test_whole_numbers_keep_every_digit(tmp_path: Path) -> None:
    found = read_column(tmp_path, "INTEGER", str(2**63 - 1), str(2**53 + 1), str(-(2**63)))
    assert found.column("a") == [str(2**63 - 1), str(2**53 + 1), str(-(2**63))]
    assert found.kind("a") == "integer"


def test_numbers_beyond_int64_survive_as_the_text_that_holds_them(tmp_path: Path) -> None:
    found = read_column(tmp_path, "TEXT(20)", f"'{2**63}'", "'00012'", "'12E4'")
    assert found.column("a") == [str(2**63), "00012", "12E4"]
    assert found.kind("a") == "string"


def test_floats_give_back_the_same_double(tmp_path: Path) -> None:
    found = read_column(tmp_path, "DOUBLE", "0.1", "1e300", "3")
    assert [float(text) for text in found.column("a")] == [0.1, 1e300, 3.0]
    assert (found.kind("a"), found.type("a")) == ("number", "float64")


def test_a_text_in_a_column_of_numbers_is_neither_lost_nor_bent(tmp_path: Path) -> None:
    found = read_column(tmp_path, "INTEGER", "12", "'A-17'", "3.5")
    assert found.column("a") == ["12", "A-17", "3.5"]
    assert found.kind("a") == "text"


def test_date_times_keep_offsets_and_microseconds(tmp_path: Path) -> None:
    given = ["2024-01-02T03:04:05.123456Z", "2024-01-02T03:04:05+05:30", "9999-12-31"]
    found = read_column(tmp_path, "DATETIME", *(f"'{each}'" for each in given))
    assert found.column("a") == given


def test_columns_that_the_database_computes_are_columns(tmp_path: Path) -> None:
    path = made(tmp_path)
    change(path, "ALTER TABLE permits ADD COLUMN n INTEGER GENERATED ALWAYS AS (fid * 2)")
    found = read(GeoPackageReader(), path, tmp_path)
    assert found.names == ["t", "n"]
    assert found.column("n") == ["2", "4", "6"]


def test_booleans_are_booleans_and_nothing_else_is(tmp_path: Path) -> None:
    found = read_column(tmp_path, "BOOLEAN", "1", "0", "NULL")
    assert found.column("a") == ["true", "false", None]
    assert found.kind("a") == "boolean"


@pytest.mark.parametrize("value", ["2", "'t'"])
def test_a_boolean_that_is_neither_0_nor_1_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(SourceError, match="column 'a' is BOOLEAN"):
        read_column(tmp_path, "BOOLEAN", "1", value)


def test_bytes_are_hex(tmp_path: Path) -> None:
    assert read_column(tmp_path, "BLOB", "x'00ff'").column("a") == ["00ff", None, None]


def test_a_nul_in_a_text_is_taken_out_and_said(tmp_path: Path) -> None:
    found = read_column(tmp_path, "TEXT", "CAST(x'610062' AS TEXT)")
    assert found.column("a") == ["ab", None, None]
    assert [finding.kind for finding in found.table.findings] == ["nul_removed"]


def test_empty_text_and_null_differ_and_so_do_empty_and_null_geometry(tmp_path: Path) -> None:
    found = read(GeoPackageReader(), made(tmp_path), tmp_path)
    assert found.names == ["t"]
    assert found.column("t") == ["007", "", None]
    shapes = [wkb and shapely.from_wkb(wkb).wkt for wkb in found.column("geometry")]
    assert shapes == ["POINT (1 2)", None, "POINT EMPTY"]


def test_shapes_with_a_box_before_them_and_heights_are_read_whole(tmp_path: Path) -> None:
    shapes = ["POLYGON Z ((0 0 1, 9 0 2, 9 9 3, 0 0 1))", "LINESTRING (0 0, 1 1)", "POLYGON EMPTY"]
    given = pa.array([shapely.to_wkb(shapely.from_wkt(each), flavor="iso") for each in shapes])
    path = tmp_path / "shapes.gpkg"
    pyogrio.write_arrow(
        pa.table({"g": given}),
        path,
        driver="GPKG",
        geometry_name="g",
        geometry_type="Unknown",
        crs="EPSG:4326",
    )
    found = read(GeoPackageReader(), path, tmp_path)
    assert found.column("geometry") == given.to_pylist()
    assert found.table.geometry
    assert found.table.geometry.types == ["LineString", "Polygon", "Polygon Z"]


def test_the_row_number_is_there_where_the_key_names_it(tmp_path: Path) -> None:
    found = read(GeoPackageReader(), made(tmp_path), tmp_path, key=["fid"])
    assert found.column("fid") == ["1", "2", "3"]


def test_the_reference_system_is_the_layers(tmp_path: Path) -> None:
    found = read(GeoPackageReader(), made(tmp_path, crs="EPSG:2236"), tmp_path)
    assert found.table.geometry
    assert found.table.geometry.crs == "EPSG:2236"
    change(tmp_path / "given.gpkg", "UPDATE gpkg_geometry_columns SET srs_id = 0")
    found = read(GeoPackageReader(), tmp_path / "given.gpkg", tmp_path)
    assert found.table.geometry
    assert found.table.geometry.crs is None


def test_of_several_layers_one_has_to_be_declared(tmp_path: Path) -> None:
    made(tmp_path)
    path = made(tmp_path, layer="roads")
    with pytest.raises(SourceError, match=r"permits, roads: declare source.layer"):
        read(GeoPackageReader(), path, tmp_path)


def test_a_table_without_geometry_is_read_as_a_table(tmp_path: Path) -> None:
    path = made(tmp_path)
    change(
        path,
        "UPDATE gpkg_contents SET data_type = 'attributes'",
        "DELETE FROM gpkg_geometry_columns",
        "UPDATE permits SET geometry = NULL",
    )
    found = read(GeoPackageReader(), path, tmp_path)
    assert found.table.geometry is None
    assert sorted(found.names) == ["geometry", "t"]


def test_a_database_that_is_no_geopackage_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plain.sqlite"
    change(path, "CREATE TABLE a (b)")
    with pytest.raises(SourceError, match="no GeoPackage"):
        read(GeoPackageReader(), path, tmp_path)


def test_a_damaged_file_is_refused_with_a_reason(tmp_path: Path) -> None:
    path = made(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:5000] + b"\xff" * (len(whole) - 5000))
    with pytest.raises(SourceError, match="cannot be read"):
        read(GeoPackageReader(), path, tmp_path)


def test_rows_that_were_overwritten_are_not_taken_for_nulls(tmp_path: Path) -> None:
    path = made(tmp_path)
    change(path, "UPDATE permits SET t = 'a text of some length that stands in its own place'")
    whole = path.read_bytes()
    at = whole.index(b"a text of some length")
    path.write_bytes(whole[: at - 80] + bytes(120) + whole[at + 40 :])
    with pytest.raises(SourceError, match="the GeoPackage is damaged"):
        read(GeoPackageReader(), path, tmp_path)


def test_a_row_that_breaks_a_rule_of_its_table_is_read(tmp_path: Path) -> None:
    path = made(tmp_path)
    stricter = "replace(sql, '\"t\" TEXT', '\"t\" TEXT NOT NULL CHECK (t > ''9'')')"
    change(
        path,
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_master SET sql = {stricter} WHERE name = 'permits'",
    )
    assert read(GeoPackageReader(), path, tmp_path).column("t") == ["007", "", None]


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = made(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"permits"', b'"permit\xff"'))
    with pytest.raises(SourceError, match="cannot be read"):
        read(GeoPackageReader(), path, tmp_path)


@pytest.mark.parametrize("blob", ["x'00ff'", "'POINT (1 2)'", "x'4750002100000000'"])
def test_a_geometry_of_another_kind_is_named_by_its_row(tmp_path: Path, blob: str) -> None:
    path = made(tmp_path)
    change(path, f"UPDATE permits SET geometry = {blob} WHERE fid = 2")
    with pytest.raises(SourceError, match="row 2: its geometry is"):
        read(GeoPackageReader(), path, tmp_path)


def test_a_layer_that_is_a_broken_view_is_refused(tmp_path: Path) -> None:
    path = made(tmp_path)
    change(
        path,
        "CREATE VIEW broken AS SELECT * FROM nowhere",
        "UPDATE gpkg_contents SET table_name = 'broken'",
    )
    with pytest.raises(SourceError, match="cannot be read"):
        read(GeoPackageReader(), path, tmp_path)


def test_a_layer_without_rows_keeps_its_columns(tmp_path: Path) -> None:
    path = made(tmp_path)
    change(path, "DELETE FROM permits")
    found = read(GeoPackageReader(), path, tmp_path)
    assert (found.names, found.rows) == (["t"], [])
