"""Shapefiles: texts and numbers as they stand in the file, shapes by GDAL."""

import struct
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyogrio
import pytest
import shapely
from tests.unit.readers.reading import Read, read

from ploti.errors import SourceError
from ploti.server.adapters.readers.shapefile import ShapefileReader

FLORIDA = (
    'PROJCS["NAD_1983_StatePlane_Florida_East_FIPS_0901_Feet",GEOGCS["GCS_North_American_1983",'
    'DATUM["D_North_American_1983",SPHEROID["GRS_1980",6378137.0,298.257222101]],'
    'PRIMEM["Greenwich",0.0],UNIT["Degree",0.0174532925199433]],PROJECTION["Transverse_Mercator"],'
    'PARAMETER["False_Easting",656166.6666666665],PARAMETER["False_Northing",0.0],'
    'PARAMETER["Central_Meridian",-81.0],PARAMETER["Scale_Factor",0.9999411764705882],'
    'PARAMETER["Latitude_Of_Origin",24.33333333333333],UNIT["Foot_US",0.3048006096012192]]'
)
Field = tuple[str, str, int, int]


def dbf(fields: Sequence[Field], rows: Sequence[Sequence[bytes]], *, language: int = 0) -> bytes:
    width = 1 + sum(field[2] for field in fields)
    head = struct.pack("<B3xIHH17xBxx", 3, len(rows), 33 + 32 * len(fields), width, language)
    listed = b"".join(
        struct.pack("<11sc4xBB14x", name.encode(), kind.encode(), length, decimals)
        for name, kind, length, decimals in fields
    )
    records = b"".join(
        (row[0] if len(row) > len(fields) else b" ")
        + b"".join(
            value.ljust(field[2]) for value, field in zip(row[-len(fields) :], fields, strict=True)
        )
        for row in rows
    )
    return head + listed + b"\r" + records + b"\x1a"


def archive(folder: Path, geometries: Sequence[str | None], table: bytes, **more: bytes) -> Path:
    """A zipped shapefile whose attributes are `table`, and further members by suffix."""
    shapes = [
        None if text is None else shapely.to_wkb(shapely.from_wkt(text)) for text in geometries
    ]
    shp = folder / "roads.shp"
    pyogrio.write_arrow(
        pa.table({"i": list(range(len(shapes))), "geometry": pa.array(shapes, pa.binary())}),
        shp,
        driver="ESRI Shapefile",
        geometry_name="geometry",
        geometry_type=shapely.from_wkt(next(filter(None, geometries))).geom_type
        + (" Z" if " Z" in str(geometries[0]) else ""),
        crs="EPSG:4326",
    )
    shp.with_suffix(".dbf").write_bytes(table)
    shp.with_suffix(".cpg").unlink()
    for suffix, content in more.items():
        shp.with_suffix(f".{suffix}").write_bytes(content)
    path = folder / "roads.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for each in sorted(folder.glob("roads.*")):
            if each != path:
                packed.write(each, f"data/{each.name}")
    return path


def read_values(folder: Path, field: Field, *values: bytes, **more: bytes) -> Read:
    path = archive(
        folder, ["POINT (1 2)"] * len(values), dbf([field], [[v] for v in values]), **more
    )
    return read(ShapefileReader(), path, unpacked(folder))


def unpacked(folder: Path) -> Path:
    into = folder / "unpacked"
    into.mkdir()
    return into


def test_numbers_keep_every_digit_they_have(tmp_path: Path) -> None:
    given = [str(2**53 + 1), str(2**63), str(10**19 + 1), "", "*" * 20]
    found = read_values(tmp_path, ("n", "N", 20, 0), *(text.rjust(20).encode() for text in given))
    assert found.column("n") == [*given[:3], None, None]
    assert found.kind("n") == "integer"


def test_a_whole_column_with_a_fraction_in_it_is_a_column_of_numbers(tmp_path: Path) -> None:
    found = read_values(tmp_path, ("n", "N", 20, 0), b"12", b"1.5e+003")
    assert found.column("n") == ["12", "1.5e+003"]
    assert found.kind("n") == "number"


def test_decimals_keep_their_zeros_and_what_is_no_number_is_text(tmp_path: Path) -> None:
    found = read_values(tmp_path, ("n", "N", 19, 11), b"0.10000000000", b"1e+10")
    assert found.column("n") == ["0.10000000000", "1e+10"]
    assert found.kind("n") == "number"


def test_what_is_no_number_is_kept_as_text(tmp_path: Path) -> None:
    found = read_values(tmp_path, ("n", "N", 9, 2), b"1.00", b"1,50")
    assert found.column("n") == ["1.00", "1,50"]
    assert found.kind("n") == "text"


def test_texts_keep_leading_zeros_and_leading_blanks(tmp_path: Path) -> None:
    found = read_values(tmp_path, ("t", "C", 12, 0), b"007", b" x", b"", b"12E4")
    assert found.column("t") == ["007", " x", None, "12E4"]
    assert found.kind("t") == "string"


def test_dates_are_dates_and_a_date_of_zeros_is_null(tmp_path: Path) -> None:
    found = read_values(tmp_path, ("d", "D", 8, 0), b"20240229", b"00000000", b"")
    assert found.column("d") == ["2024-02-29", None, None]
    assert found.type("d") == "date"


def test_a_day_that_does_not_exist_makes_a_column_of_texts(tmp_path: Path) -> None:
    found = read_values(tmp_path, ("d", "D", 8, 0), b"20240229", b"20260230")
    assert found.column("d") == ["2024-02-29", "2026-02-30"]
    assert found.type("d") is None


def test_logical_values_are_booleans_and_others_are_refused(tmp_path: Path) -> None:
    found = read_values(tmp_path, ("l", "L", 1, 0), b"T", b"n", b"?")
    assert found.column("l") == ["true", "false", None]


def test_a_logical_value_that_is_neither_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="record 2: 'x' is neither true nor false"):
        read_values(tmp_path, ("l", "L", 1, 0), b"T", b"x")


@pytest.mark.parametrize("code_page", ["1252", "ANSI 1252", "ISO 88591", "ISO-8859-1", "LDID/87"])
def test_the_encoding_is_the_one_that_the_cpg_file_says(tmp_path: Path, code_page: str) -> None:
    found = read_values(
        tmp_path, ("t", "C", 9, 0), "Größe".encode("cp1252"), cpg=code_page.encode()
    )
    assert found.column("t") == ["Größe"]


def test_the_encoding_may_stand_in_the_table_itself(tmp_path: Path) -> None:
    table = dbf([("t", "C", 9, 0)], [["Größe".encode("cp850")]], language=0x02)
    found = read(ShapefileReader(), archive(tmp_path, ["POINT (1 2)"], table), unpacked(tmp_path))
    assert found.column("t") == ["Größe"]


def test_an_encoding_that_nobody_states_is_not_guessed(tmp_path: Path) -> None:
    table = dbf([("t", "C", 9, 0)], [["Größe".encode("cp1252")]])
    path = archive(tmp_path, ["POINT (1 2)"], table)
    with pytest.raises(SourceError, match=r"record 1: .* declare source.encoding"):
        read(ShapefileReader(), path, unpacked(tmp_path))


def test_a_character_cut_in_two_by_the_width_is_left_out_and_said(tmp_path: Path) -> None:
    found = read_values(tmp_path, ("t", "C", 3, 0), "aö".encode() + b"\xc3"[:0], "aaö".encode()[:3])
    assert found.column("t") == ["aö", "aa"]
    assert [finding.kind for finding in found.table.findings] == ["texts_cut"]


def test_shapes_keep_z_and_null_and_stay_beside_their_attributes(tmp_path: Path) -> None:
    lines = [
        "LINESTRING Z (0 0 1, 1 1 2)",
        None,
        "MULTILINESTRING Z ((0 0 1, 1 1 2), (5 5 1, 6 6 2))",
    ]
    table = dbf([("n", "N", 9, 0)], [[b"1"], [b"2"], [b"3"]])
    found = read(ShapefileReader(), archive(tmp_path, lines, table), unpacked(tmp_path))
    assert [
        None if g is None else shapely.from_wkb(g).wkt for g in found.column("geometry")
    ] == lines
    assert found.column("n") == ["1", "2", "3"]
    assert found.table.geometry
    assert found.table.geometry.crs == "EPSG:4326"
    assert found.table.geometry.types == ["LineString Z", "MultiLineString Z"]


def test_measures_are_kept(tmp_path: Path) -> None:
    path = archive(tmp_path, ["POINT (1 2)"], dbf([("n", "N", 9, 0)], [[b"1"]]))
    point = struct.pack("<i3d", 21, 1, 2, 5)
    box = struct.pack("<2i8d", 1000, 21, 1, 2, 1, 2, 0, 0, 5, 5)
    words = (100 + 8 + len(point)) // 2
    record = struct.pack(">2i", 1, len(point) // 2) + point
    shp = tmp_path / "roads.shp"
    shp.write_bytes(struct.pack(">i20xi", 9994, words) + box + record)
    index = struct.pack(">i20xi", 9994, 54) + box + struct.pack(">2i", 50, len(point) // 2)
    shp.with_suffix(".shx").write_bytes(index)
    path = tmp_path / "measured.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for each in sorted(tmp_path.glob("roads.*")):
            packed.write(each, each.name) if each.suffix != ".zip" else None
    found = read(ShapefileReader(), path, unpacked(tmp_path))
    assert [shapely.from_wkb(g).wkt for g in found.column("geometry")] == ["POINT M (1 2 5)"]


def test_deleted_records_are_left_out_with_their_shapes(tmp_path: Path) -> None:
    table = dbf([("n", "N", 9, 0)], [[b"1"], [b"*", b"2"], [b"3"]])
    path = archive(tmp_path, ["POINT (1 1)", "POINT (2 2)", "POINT (3 3)"], table)
    found = read(ShapefileReader(), path, unpacked(tmp_path))
    assert found.column("n") == ["1", "3"]
    assert [shapely.from_wkb(g).x for g in found.column("geometry")] == [1, 3]


def test_esris_own_names_of_reference_systems_are_known(tmp_path: Path) -> None:
    found = read_values(tmp_path, ("n", "N", 9, 0), b"1", prj=FLORIDA.encode())
    assert found.table.geometry
    assert found.table.geometry.crs == "EPSG:2236"


def test_a_reference_system_may_be_told_in_an_older_encoding(tmp_path: Path) -> None:
    named = FLORIDA.replace("NAD_1983_StatePlane", "Fläche").encode("latin-1")
    found = read_values(tmp_path, ("n", "N", 9, 0), b"1", prj=named)
    assert found.table.geometry
    assert found.table.geometry.crs
    assert "Fläche" in found.table.geometry.crs


def test_a_reference_system_without_a_number_is_refused(tmp_path: Path) -> None:
    grid = 'LOCAL_CS["my grid",UNIT["metre",1]]'
    with pytest.raises(SourceError, match="my grid"):
        read_values(tmp_path, ("n", "N", 9, 0), b"1", prj=grid.encode())


def test_a_reference_system_like_one_of_epsgs_but_elsewhere_is_not_taken_for_it(
    tmp_path: Path,
) -> None:
    moved = FLORIDA.replace("656166.6666666665", "656166.0")
    found = read_values(tmp_path, ("n", "N", 9, 0), b"1", prj=moved.encode())
    assert found.table.geometry
    assert "656166" in (found.table.geometry.crs or "")
    assert "EPSG:2236" not in (found.table.geometry.crs or "")


def test_without_a_prj_the_reference_system_is_not_stated(tmp_path: Path) -> None:
    path = archive(tmp_path, ["POINT (1 2)"], dbf([("n", "N", 9, 0)], [[b"1"]]))
    less = tmp_path / "less.zip"
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(less, "w") as packed:
        for name in whole.namelist():
            if not name.endswith(".prj"):
                packed.writestr(name, whole.read(name))
    found = read(ShapefileReader(), less, unpacked(tmp_path))
    assert found.table.geometry
    assert found.table.geometry.crs is None


@pytest.mark.parametrize("missing", [".shx", ".dbf"])
def test_a_missing_part_is_named(tmp_path: Path, missing: str) -> None:
    path = archive(tmp_path, ["POINT (1 2)"], dbf([("n", "N", 9, 0)], [[b"1"]]))
    less = tmp_path / "less.zip"
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(less, "w") as packed:
        for name in whole.namelist():
            if not name.endswith(missing):
                packed.writestr(name, whole.read(name))
    with pytest.raises(SourceError, match=f"no 'roads{missing}'"):
        read(ShapefileReader(), less, unpacked(tmp_path))


def test_of_two_shapefiles_one_has_to_be_declared(tmp_path: Path) -> None:
    path = archive(tmp_path, ["POINT (1 2)"], dbf([("n", "N", 9, 0)], [[b"1"]]))
    with zipfile.ZipFile(path, "a") as packed:
        packed.writestr("data/rivers.shp", b"")
    with pytest.raises(SourceError, match=r"roads.shp, data/rivers.shp: declare source.member"):
        read(ShapefileReader(), path, unpacked(tmp_path))


def test_more_shapes_than_records_are_refused(tmp_path: Path) -> None:
    table = dbf([("n", "N", 9, 0)], [[b"1"]])
    path = archive(tmp_path, ["POINT (1 1)", "POINT (2 2)"], table)
    with pytest.raises(SourceError, match="2 shapes and 1 records"):
        read(ShapefileReader(), path, unpacked(tmp_path))


def damaged(path: Path, suffix: str, change: Callable[[bytes], bytes]) -> Path:
    """The archive with one of its parts changed."""
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in parts.items():
            packed.writestr(name, change(content) if name.endswith(suffix) else content)
    return path


@pytest.mark.parametrize(("geometry", "cut"), [("POINT (2 2)", 1), ("LINESTRING (0 0, 1 1)", 40)])
def test_shapes_that_are_cut_off_fail_the_read(tmp_path: Path, geometry: str, cut: int) -> None:
    table = dbf([("n", "N", 9, 0)], [[b"1"], [b"2"]])
    path = damaged(archive(tmp_path, [geometry] * 2, table), ".shp", lambda shp: shp[:-cut])
    with pytest.raises(SourceError, match="cut short: 1 of its shapes are missing"):
        read(ShapefileReader(), path, unpacked(tmp_path))


def test_a_shape_that_is_broken_is_not_taken_for_none(tmp_path: Path) -> None:
    def change(shp: bytes) -> bytes:
        parts, points = 100 + 8 + 36, 100 + 8 + 40
        return shp[:parts] + struct.pack("<ii", 1, 9_999) + shp[points + 4 :]

    table = dbf([("n", "N", 9, 0)], [[b"1"], [b"2"]])
    lines = archive(tmp_path, ["LINESTRING (0 0, 1 1)", "LINESTRING (0 0, 2 2)"], table)
    with pytest.raises(SourceError, match=r"shape of record 1 in the .shp file is broken"):
        read(ShapefileReader(), damaged(lines, ".shp", change), unpacked(tmp_path))


@pytest.mark.parametrize(
    ("suffix", "at", "size"),
    [(".shx", 108, 4), (".shx", 108, 8), (".shp", 100 + 8, 4), (".shp", 100 + 28, 12)],
    ids=["place in the index", "entry of the index", "type of the shape", "record"],
)
def test_zeros_in_place_of_a_shape_are_not_taken_for_none(
    tmp_path: Path, suffix: str, at: int, size: int
) -> None:
    def change(part: bytes) -> bytes:
        return part[:at] + bytes(size) + part[at + size :]

    table = dbf([("n", "N", 9, 0)], [[b"1"], [b"2"]])
    path = archive(tmp_path, ["POINT (1 2)", "POINT (3 4)"], table)
    with pytest.raises(SourceError, match=r"shape of record [12] in the .shp file is broken"):
        read(ShapefileReader(), damaged(path, suffix, change), unpacked(tmp_path))


def test_a_code_page_that_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"encoding .* is not known"):
        read_values(tmp_path, ("t", "C", 9, 0), b"x", cpg=b"UT\0-8")


def test_an_empty_shape_is_none(tmp_path: Path) -> None:
    table = dbf([("n", "N", 9, 0)], [[b"1"], [b"2"]])
    path = archive(tmp_path, ["LINESTRING (0 0, 1 1)", None], table)
    empty = struct.pack("<i4dii", 3, 0, 0, 0, 0, 0, 0)

    def with_empty(shp: bytes) -> bytes:
        return shp[:-12] + struct.pack(">ii", 2, len(empty) // 2) + empty

    def listed(shx: bytes) -> bytes:
        return shx[:-4] + struct.pack(">i", len(empty) // 2)

    path = damaged(damaged(path, ".shp", with_empty), ".shx", listed)
    found = read(ShapefileReader(), path, unpacked(tmp_path))
    assert [geometry is None for geometry in found.column("geometry")] == [False, True]


def test_a_multipatch_is_the_polygons_that_make_it_up(tmp_path: Path) -> None:
    shape = "MULTIPOLYGON Z (((0 0 0, 1 0 0, 0 1 1, 0 0 0)), ((1 0 0, 1 1 2, 0 1 1, 1 0 0)))"
    given = shapely.to_wkb(shapely.from_wkt(shape), flavor="iso")
    shp = tmp_path / "roofs.shp"
    pyogrio.write_arrow(
        pa.table({"i": [1, 2], "geometry": pa.array([given, None], pa.binary())}),
        shp,
        driver="ESRI Shapefile",
        geometry_name="geometry",
        geometry_type="Unknown",
        crs="EPSG:4326",
        SHPT="MULTIPATCH",
    )
    path = tmp_path / "roofs.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for each in sorted(tmp_path.glob("roofs.???")):
            if each != path:
                packed.write(each, each.name)
    found = read(ShapefileReader(), path, unpacked(tmp_path))
    assert [wkb and shapely.from_wkb(wkb).wkt for wkb in found.column("geometry")] == [shape, None]
    assert [each.kind for each in found.table.findings] == ["surface_parted"]
