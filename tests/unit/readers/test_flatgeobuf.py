"""FlatGeobuf: values as they are stored, geometry as GDAL wrote it."""

import datetime as dt
from pathlib import Path
from struct import pack
from typing import Any

import numpy as np
import pyarrow as pa
import pyogrio
import pytest
import shapely
from tests.unit.readers.reading import Read, read

from ploti.errors import SourceError
from ploti.server.adapters.readers.flatbuffer import Table
from ploti.server.adapters.readers.flatgeobuf import FlatGeobufReader
from ploti.server.adapters.readers.flatgeobuf_geometry import to_wkb

UNSIGNED_LONG = 8
SHAPES = [
    "POINT (1 2)",
    "POINT Z (1 2 3)",
    "POLYGON ((0 0, 9 0, 9 9, 0 0), (5 1, 6 1, 6 2, 5 1))",
    "MULTIPOINT Z ((1 2 3), (5 6 7))",
    "MULTILINESTRING ((0 0, 1 1), (2 2, 3 3))",
    "MULTIPOLYGON (((0 0, 9 0, 9 9, 0 0)), ((0 0, 9 0, 9 9, 0 0), (5 1, 6 1, 6 2, 5 1)))",
    "GEOMETRYCOLLECTION (POINT (1 2), LINESTRING (0 0, 1 1))",
]


def made(folder: Path, table: pa.Table, kind: str = "Unknown", *, index: str = "NO") -> Path:
    path = folder / "given.fgb"
    pyogrio.write_arrow(
        table,
        path,
        driver="FlatGeobuf",
        geometry_name="g",
        geometry_type=kind,
        crs="EPSG:4326",
        SPATIAL_INDEX=index,
    )
    return path


def kind_of(shape: str) -> str:
    words = shape.partition(" (")[0].split()
    return " ".join([shapely.from_wkt(shape).geom_type, *words[1:]])


def points(count: int) -> pa.Array:
    return pa.array([shapely.to_wkb(shapely.Point(n, 2)) for n in range(count)], pa.binary())


def read_column(folder: Path, column: pa.Array) -> Read:
    path = made(folder, pa.table({"a": column, "g": points(len(column))}))
    return read(FlatGeobufReader(), path, folder)


def test_whole_numbers_keep_every_digit_beyond_int64_too(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([-1, 2**53 + 1, None], pa.int64()), "g": points(3)})
    path = made(tmp_path, table)
    signed = read(FlatGeobufReader(), path, tmp_path)
    assert signed.column("a") == ["-1", str(2**53 + 1), None]
    content = bytearray(path.read_bytes())
    (column,) = Table.root(bytes(content[12:])).tables(7)
    content[12 + (column._place(1) or 0)] = UNSIGNED_LONG
    path.write_bytes(content)
    unsigned = read(FlatGeobufReader(), path, tmp_path)
    assert unsigned.column("a") == [str(2**64 - 1), str(2**53 + 1), None]
    assert unsigned.kind("a") == "integer"


def test_every_kind_of_value_is_the_text_of_what_is_stored(tmp_path: Path) -> None:
    moment = dt.datetime.fromisoformat("2024-01-02T03:04:05.123456")
    table = pa.table(
        {
            "i": pa.array([-5], pa.int32()),
            "f": pa.array([0.1], pa.float32()),
            "d": [0.1],
            "b": [True],
            "s": ["007"],
            "e": [""],
            "x": [b"\x00\xff"],
            "t": [moment],
            "g": points(1),
        }
    )
    found = read(FlatGeobufReader(), made(tmp_path, table), tmp_path)
    (row,) = found.rows
    assert [row[name] for name in "idbsex"] == ["-5", "0.1", "true", "007", "", "00ff"]
    assert float(row["f"]) == pa.array([0.1], pa.float32()).cast(pa.float64())[0].as_py()
    assert row["t"].startswith("2024-01-02T03:04:05")
    assert [found.kind(name) for name in "ifdbst"] == [
        "integer",
        "number",
        "number",
        "boolean",
        "string",
        "string",
    ]


def test_offsets_and_microseconds_of_date_times_stay_as_they_are_written(tmp_path: Path) -> None:
    given = "2024-01-02T03:04:05.123+05:30"
    moment = pa.array([dt.datetime.fromisoformat(given)], pa.timestamp("us", "+05:30"))
    path = made(tmp_path, pa.table({"a": moment, "g": points(1)}))
    written = path.read_bytes()
    (before,) = read(FlatGeobufReader(), path, tmp_path).column("a")
    finer = "2024-01-02T03:04:05.123456+05"[: len(before)].ljust(len(before), "0")
    path.write_bytes(written.replace(before.encode(), finer.encode()))
    assert before.endswith("+05:30")
    assert read(FlatGeobufReader(), path, tmp_path).column("a") == [finer]


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_comes_out_as_it_went_in(tmp_path: Path, shape: str) -> None:
    given = pa.array([shapely.to_wkb(shapely.from_wkt(shape), flavor="iso"), None], pa.binary())
    path = made(tmp_path, pa.table({"a": [1, 2], "g": given}), kind_of(shape))
    found = read(FlatGeobufReader(), path, tmp_path)
    assert [wkb and bytes(wkb) for wkb in found.column("geometry")] == given.to_pylist()


class Stored:
    """The fields of a geometry, as a table of the file has them; GDAL here cannot write M."""

    def __init__(self, **fields: list[float]) -> None:
        self._fields = {"xy": 1, "z": 2, "m": 3}
        self._given = {self._fields[name]: np.array(each) for name, each in fields.items()}

    def doubles(self, field: int) -> Any:
        return self._given.get(field)

    def indices(self, field: int) -> list[int]:
        return []


def test_measures_are_kept() -> None:
    measured: Any = Stored(xy=[0, 0, 1, 1], m=[5.0, 6.0])
    assert shapely.from_wkb(to_wkb(measured, 2)).wkt == "LINESTRING M (0 0 5, 1 1 6)"
    both: Any = Stored(xy=[1, 2], z=[3.0], m=[4.0])
    assert shapely.from_wkb(to_wkb(both, 4)).wkt == "MULTIPOINT ZM ((1 2 3 4))"


def test_types_that_nothing_is_stored_as_are_refused_by_name() -> None:
    curve: Any = Stored(xy=[0, 0, 1, 1, 2, 0])
    with pytest.raises(ValueError, match="Curve: it is not read"):
        to_wkb(curve, 13)


def head(code: int, *parts: bytes) -> bytes:
    return pack("<BII", 1, code, len(parts)) + b"".join(parts)


def places(*positions: tuple[float, ...]) -> list[bytes]:
    return [pack(f"<{len(each)}d", *each) for each in positions]


ARC = head(8, *places((1, 0), (0, 1), (-1, 0)))
BACK = head(2, *places((-1, 0), (1, 0)))
TRIANGLE = head(0, *places((0, 0, 0), (1, 0, 0), (0, 1, 1), (0, 0, 0)))[5:]
HALF = 1.57


@pytest.mark.parametrize(
    ("given", "becomes", "area"),
    [
        (ARC, "LineString", 0),
        (head(9, ARC, BACK), "LineString", 0),
        (head(10, head(9, ARC, BACK)), "Polygon", HALF),
        (head(11, ARC, BACK), "MultiLineString", 0),
        (head(12, head(10, head(9, ARC, BACK))), "MultiPolygon", HALF),
        (head(1015, head(1003, TRIANGLE), head(1003, TRIANGLE)), "MultiPolygon", 1),
        (head(1016, head(1017, TRIANGLE), head(1017, TRIANGLE)), "MultiPolygon", 1),
        (head(1017, TRIANGLE), "Polygon", 0.5),
    ],
)
def test_curves_and_surfaces_become_lines_and_polygons_and_that_is_told(
    tmp_path: Path, given: bytes, becomes: str, area: float
) -> None:
    path = made(tmp_path, pa.table({"a": [1], "g": pa.array([given], pa.binary())}))
    found = read(FlatGeobufReader(), path, tmp_path)
    (shape,) = shapely.from_wkb(found.column("geometry"))
    assert shape.geom_type == becomes
    assert shape.area == pytest.approx(area, rel=0.01)
    (finding,) = found.table.findings
    assert finding.kind in {"arc_drawn", "surface_parted"}
    assert finding.examples == ["row 1"]


def test_an_empty_point_is_null_since_gdal_writes_it_so(tmp_path: Path) -> None:
    given = pa.array([shapely.to_wkb(shapely.Point())], pa.binary())
    found = read(FlatGeobufReader(), made(tmp_path, pa.table({"a": [1], "g": given})), tmp_path)
    assert found.column("geometry") == [None]


@pytest.mark.parametrize("count", [1, 15, 16, 17, 300])
def test_the_index_is_passed_over_whatever_its_size(tmp_path: Path, count: int) -> None:
    table = pa.table({"a": list(range(count)), "g": points(count)})
    found = read(FlatGeobufReader(), made(tmp_path, table, "Point", index="YES"), tmp_path)
    assert sorted(map(int, found.column("a"))) == list(range(count))
    xs = [shapely.from_wkb(wkb).x for wkb in found.column("geometry")]
    assert xs == [float(text) for text in found.column("a")]
    assert found.table.geometry
    assert found.table.geometry.crs == "EPSG:4326"


@pytest.mark.parametrize("keep", [6, 20, 200, -1, -30])
def test_a_file_that_is_cut_short_is_refused(tmp_path: Path, keep: int) -> None:
    path = made(tmp_path, pa.table({"a": [1, 2, 3], "g": points(3)}))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(SourceError):
        read(FlatGeobufReader(), path, tmp_path)


def test_a_broken_file_is_refused_wherever_the_fault_is(tmp_path: Path) -> None:
    path = made(tmp_path, pa.table({"a": ["x", "y"], "g": points(2)}))
    whole = path.read_bytes()
    refused = 0
    for at in range(8, len(whole), 5):
        path.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
        try:
            read(FlatGeobufReader(), path, tmp_path)
        except SourceError:
            refused += 1
    assert refused > len(whole) // 40


def test_no_byte_that_is_lost_makes_a_value_or_a_shape_null(tmp_path: Path) -> None:
    table = pa.table({"a": ["permits of the county"] * 2, "n": [2**40, 2**41], "g": points(2)})
    path = made(tmp_path, table, "Point")
    whole = path.read_bytes()
    for at in range(12 + int.from_bytes(whole[8:12], "little"), len(whole)):
        path.write_bytes(whole[:at] + b"\0" + whole[at + 1 :])
        try:
            found = read(FlatGeobufReader(), path, tmp_path)
        except SourceError:
            continue
        assert not [row for row in found.rows if None in row.values()], at


def test_a_feature_of_gigabytes_is_not_waited_for(tmp_path: Path) -> None:
    path = made(tmp_path, pa.table({"a": [1], "g": points(1)}))
    with path.open("ab") as file:
        file.write(pack("<I", 0xFFFFFFFF))
    with pytest.raises(SourceError, match="larger than 1 GiB"):
        read(FlatGeobufReader(), path, tmp_path)
