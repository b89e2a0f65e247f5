"""Parquet and GeoParquet keep every value, and say what the file says of it."""

import datetime as dt
import decimal
import struct
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from tests.unit.readers.reading import CASES, Read, read

from ploti.errors import SourceError
from ploti.server.adapters.readers.parquet import GeoParquetReader, ParquetReader


def written(folder: Path, table: pa.Table, **metadata: str) -> Path:
    path = folder / "given.parquet"
    pq.write_table(table.replace_schema_metadata(metadata), path)
    return path


def read_column(folder: Path, column: pa.Array) -> Read:
    return read(ParquetReader(), written(folder, pa.table({"a": column})), folder)


@pytest.mark.parametrize(
    ("file", "crs", "x"),
    [
        ("none", "OGC:CRS84", -93.1),
        ("crs84", "OGC:CRS84", -93.1),
        ("epsg4326", "EPSG:4326", -93.1),
        ("utm", "EPSG:26915", 492_000.0),
    ],
)
def test_f01_a_missing_crs_means_degrees_and_any_other_is_carried(
    tmp_path: Path, file: str, crs: str, x: float
) -> None:
    found = read(ParquetReader(), CASES / f"F01.{file}.parquet", tmp_path)
    assert found.table.geometry
    assert found.table.geometry.crs == crs
    assert shapely.from_wkb(found.rows[0]["geometry"]).x == pytest.approx(x, abs=1e-6)


def test_f03_the_covering_column_is_part_of_the_geometry(tmp_path: Path) -> None:
    found = read(ParquetReader(), CASES / "F03.input.parquet", tmp_path)
    assert found.names == ["id"]
    extents = shapely.total_bounds(shapely.from_wkb(found.column("geometry")))
    assert extents.tolist() == [0, 0, 12, 12]
    assert found.table.geometry
    assert found.table.geometry.types == ["Polygon Z"]


def test_f52_the_data_decides_on_geometry_types_and_a_wrong_list_is_a_finding(
    tmp_path: Path,
) -> None:
    wrong = read(ParquetReader(), CASES / "F52.wrong.parquet", tmp_path)
    assert wrong.table.geometry
    assert wrong.table.geometry.types == ["LineString", "Point"]
    assert [finding.kind for finding in wrong.table.findings] == ["geometry_types"]
    empty = read(ParquetReader(), CASES / "F52.empty.parquet", tmp_path)
    assert empty.table.geometry
    assert empty.table.geometry.types == ["LineString", "Point"]
    assert empty.table.findings == []


def test_numbers_beyond_doubles_and_beyond_int64_keep_every_digit(tmp_path: Path) -> None:
    found = read_column(tmp_path, pa.array([2**53 + 1, 2**63, 2**64 - 1, None], pa.uint64()))
    assert found.column("a") == ["9007199254740993", str(2**63), str(2**64 - 1), None]
    assert found.kind("a") == "integer"


def test_decimals_are_plain_and_their_type_is_kept(tmp_path: Path) -> None:
    given = [decimal.Decimal("0.0000000001"), decimal.Decimal(12), None]
    found = read_column(tmp_path, pa.array(given, pa.decimal128(38, 10)))
    assert found.column("a") == ["0.0000000001", "12.0000000000", None]
    assert (found.kind("a"), found.type("a")) == ("number", "decimal(38,10)")
    wide = read_column(tmp_path, pa.array([decimal.Decimal(10**45)], pa.decimal256(50, 2)))
    assert wide.column("a") == ["1" + "0" * 45 + ".00"]
    assert wide.type("a") is None


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_floats_give_back_the_same_double(tmp_path: Path, kind: pa.DataType) -> None:
    given = pa.array([0.1, 1e-30, -0.0, 3.0, 1e16, float("inf"), None], kind)
    found = read_column(tmp_path, given)
    back = [None if text is None else float(text) for text in found.column("a")]
    assert back == given.cast(pa.float64()).to_pylist()
    assert (found.kind("a"), found.type("a")) == ("number", "float64")


def test_instants_local_times_and_dates_are_told_apart(tmp_path: Path) -> None:
    zoned = pa.array([1_700_000_000_123_456, -5], pa.timestamp("us", "America/New_York"))
    local = pa.array([1_700_000_000_123_456, -5], pa.timestamp("us"))
    found = read(
        ParquetReader(),
        written(
            tmp_path,
            pa.table({"z": zoned, "l": local, "d": pa.array([dt.date(1, 1, 1), None])}),
        ),
        tmp_path,
    )
    assert found.column("z") == ["2023-11-14T22:13:20.123456Z", "1969-12-31T23:59:59.999995Z"]
    assert found.column("l") == ["2023-11-14T22:13:20.123456", "1969-12-31T23:59:59.999995"]
    assert found.column("d") == ["0001-01-01", None]
    assert [found.type(name) for name in "zld"] == ["timestamp", "datetime", "date"]


def test_nanoseconds_are_not_cut_off(tmp_path: Path) -> None:
    exact = read_column(tmp_path, pa.array([1_000], pa.timestamp("ns")))
    assert exact.column("a") == ["1970-01-01T00:00:00.000001"]
    finer = read_column(tmp_path, pa.array([1_001], pa.timestamp("ns")))
    assert finer.column("a") == ["1970-01-01T00:00:00.000001001"]


def test_texts_keep_leading_zeros_and_tell_empty_from_null(tmp_path: Path) -> None:
    given = ["007", "", None, " x ", "NULL"]
    found = read_column(tmp_path, pa.array(given))
    assert found.column("a") == given
    assert found.kind("a") == "string"
    assert read_column(tmp_path, pa.array(given).dictionary_encode()).column("a") == given


def test_a_nul_is_taken_out_and_counted(tmp_path: Path) -> None:
    found = read_column(tmp_path, pa.array(["a\0b\0", "c"]))
    assert found.column("a") == ["ab", "c"]
    assert [finding.kind for finding in found.table.findings] == ["nul_removed"]


def test_booleans_bytes_uuids_and_nested_values_have_a_text(tmp_path: Path) -> None:
    assert read_column(tmp_path, pa.array([True, False, None])).column("a") == [
        "true",
        "false",
        None,
    ]
    assert read_column(tmp_path, pa.array([b"\x00\xff"])).column("a") == ["00ff"]
    name = uuid.UUID(int=5)
    assert read_column(tmp_path, pa.array([name.bytes], pa.uuid())).column("a") == [str(name)]
    nested = read_column(tmp_path, pa.array([{"a": [1, 2**63 - 1], "b": decimal.Decimal("0.10")}]))
    assert nested.column("a") == ['{"a":[1,9223372036854775807],"b":0.10}']
    assert nested.kind("a") == "json"


def test_geometry_of_any_flavour_becomes_little_endian_iso_wkb(tmp_path: Path) -> None:
    flavours = [
        shapely.to_wkb(shapely.from_wkt(text), byte_order=0, flavor="extended", include_srid=True)
        for text in ("POINT ZM (1 2 3 4)", "POINT M (1 2 3)", "POLYGON EMPTY", "POINT EMPTY")
    ]
    geo = '{"version": "1.1.0", "primary_column": "g", "columns": {"g": {"encoding": "WKB"}}}'
    given = pa.table({"g": pa.array([*flavours, None], pa.binary())})
    found = read(ParquetReader(), written(tmp_path, given, geo=geo), tmp_path)
    texts = [
        wkb and (wkb[0], shapely.from_wkb(bytes(wkb)).wkt, int.from_bytes(wkb[1:5], "little"))
        for wkb in found.column("geometry")
    ]
    assert texts == [
        (1, "POINT ZM (1 2 3 4)", 3001),
        (1, "POINT M (1 2 3)", 2001),
        (1, "POLYGON EMPTY", 3),
        (1, "POINT EMPTY", 1),
        None,
    ]


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_line_of_one_point_is_kept_although_geos_takes_it_for_none(
    tmp_path: Path, order: str
) -> None:
    line = struct.pack(f"{order}BII2d", order == "<", 2, 1, 5.0, 6.0)
    geo = '{"version": "1.1.0", "primary_column": "g", "columns": {"g": {"encoding": "WKB"}}}'
    found = read(ParquetReader(), written(tmp_path, pa.table({"g": [line]}), geo=geo), tmp_path)
    assert found.column("geometry") == [struct.pack("<BII2d", 1, 2, 1, 5.0, 6.0)]


@pytest.mark.parametrize(
    ("wkb", "reason"),
    [
        (struct.pack("<BII4d", 1, 8, 2, 0, 0, 1, 1), "row 2: .* told by 2 positions"),
        (struct.pack("<BII2d", 1, 2, 2, 0, 0), "row 2: .* cut short"),
        (b"\x01\x01\x00", "row 2: .* cut short"),
        (struct.pack("<BI2d", 1, 99, 0, 0), "row 2: .* type 99"),
        (b"POINT (1 2)", "row 2: .* no WKB"),
        (struct.pack("<BII", 1, 7, 1) * 100_000 + bytes(9), "row 2: .* nested more than 32 deep"),
        (struct.pack(">BII", 0, 7, 1) * 100_000 + bytes(9), "row 2: .* nested more than 32 deep"),
    ],
)
def test_what_is_no_geometry_is_named_by_its_row(tmp_path: Path, wkb: bytes, reason: str) -> None:
    geo = '{"version": "1.1.0", "primary_column": "g", "columns": {"g": {"encoding": "WKB"}}}'
    good = shapely.to_wkb(shapely.Point(1, 2))
    path = written(tmp_path, pa.table({"g": [good, wkb]}), geo=geo)
    with pytest.raises(SourceError, match=reason):
        read(ParquetReader(), path, tmp_path)


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ('{"encoding": "WKB", "crs": {"name": "my grid"}}', r"my grid\) is unknown"),
        ('{"encoding": "WKB", "crs": "EPSG:99999"}', "EPSG:99999 is not known"),
        ('{"encoding": "circle"}', "'circle', which is not read"),
        ('{"encoding": "point"}', "said to be of 'point', and is binary"),
        ('{"encoding": "polygon"}', "said to be of 'polygon', and is binary"),
    ],
)
def test_geometry_that_cannot_be_placed_is_refused(
    tmp_path: Path, column: str, reason: str
) -> None:
    geo = f'{{"version": "1.1.0", "primary_column": "g", "columns": {{"g": {column}}}}}'
    path = written(tmp_path, pa.table({"g": [shapely.to_wkb(shapely.Point(1, 2))]}), geo=geo)
    with pytest.raises(SourceError, match=reason):
        read(ParquetReader(), path, tmp_path)


XY = pa.struct({"x": pa.float64(), "y": pa.float64()})
XYZ = pa.struct({"x": pa.float64(), "y": pa.float64(), "z": pa.float64()})
RING = [(0, 0), (9, 0), (9, 9), (0, 0)]
HOLE = [(5, 1), (6, 1), (6, 2), (5, 1)]
NATIVE: list[tuple[str, list[object], list[str | None]]] = [
    ("point", [(1, 2), None], ["POINT (1 2)", None]),
    (
        "linestring",
        [[(1, 2), (3, 4)], None, []],
        ["LINESTRING (1 2, 3 4)", None, "LINESTRING EMPTY"],
    ),
    (
        "polygon",
        [None, [RING, HOLE], []],
        [None, "POLYGON ((0 0, 9 0, 9 9, 0 0), (5 1, 6 1, 6 2, 5 1))", "POLYGON EMPTY"],
    ),
    (
        "multipoint",
        [[(1, 2)], [(3, 4), (5, 6)]],
        ["MULTIPOINT ((1 2))", "MULTIPOINT ((3 4), (5 6))"],
    ),
    ("multilinestring", [None, [[(1, 2), (3, 4)]]], [None, "MULTILINESTRING ((1 2, 3 4))"]),
    (
        "multipolygon",
        [[[RING, HOLE], [HOLE]], []],
        [
            "MULTIPOLYGON (((0 0, 9 0, 9 9, 0 0), (5 1, 6 1, 6 2, 5 1)), ((5 1, 6 1, 6 2, 5 1)))",
            "MULTIPOLYGON EMPTY",
        ],
    ),
]


def lists(kind: str, position: pa.DataType) -> pa.DataType:
    around = {"point": 0, "linestring": 1, "polygon": 2}[kind.removeprefix("multi")]
    for _ in range(around + kind.startswith("multi")):
        position = pa.list_(position)
    return position


def as_structs(value: object) -> object:
    if isinstance(value, tuple):
        return dict(zip("xyz", value, strict=False))
    return [as_structs(each) for each in value] if isinstance(value, list) else value


def wkts(found: Read) -> list[str | None]:
    return [wkb and shapely.from_wkb(wkb).wkt for wkb in found.column("geometry")]


@pytest.mark.parametrize(("kind", "given", "expected"), NATIVE)
@pytest.mark.parametrize("rows", [1, 2])
def test_native_encodings_of_geoparquet_are_read(
    tmp_path: Path, kind: str, given: list[object], expected: list[str | None], rows: int
) -> None:
    column = pa.array([as_structs(each) for each in given], lists(kind, XY))
    geo = f'{{"primary_column": "g", "columns": {{"g": {{"encoding": "{kind}"}}}}}}'
    path = tmp_path / "given.parquet"
    table = pa.table({"id": range(len(given)), "g": column}).replace_schema_metadata({"geo": geo})
    pq.write_table(table, path, row_group_size=rows)
    found = read(GeoParquetReader(), path, tmp_path)
    assert found.names == ["id"]
    assert wkts(found) == expected


def test_native_positions_keep_heights_and_may_lie_side_by_side(tmp_path: Path) -> None:
    geo = '{"primary_column": "g", "columns": {"g": {"encoding": "linestring"}}}'
    high = pa.array([[{"x": 1, "y": 2, "z": 3}, {"x": 4, "y": 5, "z": 6}]], pa.list_(XYZ))
    found = read(ParquetReader(), written(tmp_path, pa.table({"g": high}), geo=geo), tmp_path)
    assert wkts(found) == ["LINESTRING Z (1 2 3, 4 5 6)"]
    beside = pa.array([None, [[1, 2, 3], [4, 5, 6]]], pa.list_(pa.list_(pa.float64(), 3)))
    path = written(tmp_path, pa.table({"a": [1, 2], "g": beside}), geo=geo)
    assert wkts(read(ParquetReader(), path, tmp_path)) == [None, "LINESTRING Z (1 2 3, 4 5 6)"]


def test_a_column_that_geoarrow_names_is_the_geometry(tmp_path: Path) -> None:
    marks = {
        "ARROW:extension:name": "geoarrow.point",
        "ARROW:extension:metadata": '{"crs": "EPSG:3857", "crs_type": "authority_code"}',
    }
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("where", XY, metadata=marks)])
    table = pa.table({"id": [1], "where": pa.array([{"x": 1, "y": 2}], XY)}, schema=schema)
    path = tmp_path / "given.parquet"
    pq.write_table(table, path)
    found = read(ParquetReader(), path, tmp_path)
    assert (found.names, wkts(found)) == (["id"], ["POINT (1 2)"])
    assert found.table.geometry
    assert found.table.geometry.crs == "EPSG:3857"


def test_parquets_own_geometry_type_is_read_without_any_metadata(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "own.parquet"
    duckdb.sql(
        f"COPY (SELECT 1 AS id, 'POINT (1 2)'::GEOMETRY AS g) TO '{path}'"
        " (GEOPARQUET_VERSION 'NONE')"
    )
    found = read(ParquetReader(), path, tmp_path)
    assert found.names == ["id"]
    assert found.column("geometry") == [shapely.to_wkb(shapely.Point(1, 2))]


def test_no_rows_keep_their_columns(tmp_path: Path) -> None:
    found = read_column(tmp_path, pa.array([], pa.int64()))
    assert (found.names, found.rows) == (["a"], [])


def test_geoparquet_without_geometry_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no GeoParquet"):
        read(GeoParquetReader(), written(tmp_path, pa.table({"a": [1]})), tmp_path)


def test_a_damaged_file_is_refused_with_a_reason(tmp_path: Path) -> None:
    path = written(tmp_path, pa.table({"a": list(range(10_000))}))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SourceError, match="cannot be read"):
        read(ParquetReader(), path, tmp_path)


def test_too_many_columns_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, pa.table({f"c{n}": [1] for n in range(2_001)}))
    with pytest.raises(SourceError, match="2,001 columns"):
        read(ParquetReader(), path, tmp_path)
