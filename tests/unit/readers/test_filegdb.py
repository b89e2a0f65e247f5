"""File geodatabases: what GDAL gives, with nothing cut on the way."""

import datetime as dt
import shutil
import struct
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyogrio
import pytest
import shapely
from tests.unit.readers.reading import Read, read

from ploti.errors import SourceError
from ploti.server.adapters.readers.filegdb import FileGdbReader


def database(folder: Path, **layers: pa.Table) -> Path:
    """A zipped geodatabase with these layers of points."""
    made = folder / "given.gdb"
    for name, table in layers.items():
        pyogrio.write_arrow(
            table,
            made,
            layer=name,
            driver="OpenFileGDB",
            geometry_name="g",
            geometry_type="Point",
            crs="EPSG:4326",
            append=made.exists(),
            TARGET_ARCGIS_VERSION="ARCGIS_PRO_3_2_OR_LATER",
        )
    path = folder / "given.gdb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for each in sorted(made.iterdir()):
            packed.write(each, f"data/given.gdb/{each.name}")
    shutil.rmtree(made)
    return path


def points(count: int) -> pa.Array:
    return pa.array([shapely.to_wkb(shapely.Point(n, 2)) for n in range(count)], pa.binary())


def read_layer(folder: Path, table: pa.Table, **settings: Any) -> Read:
    path = database(folder, permits=table)
    into = folder / "unpacked"
    into.mkdir()
    return read(FileGdbReader(), path, into, **settings)


def test_whole_numbers_texts_and_geometry_survive(tmp_path: Path) -> None:
    table = pa.table(
        {
            "n": pa.array([2**63 - 1, 2**53 + 1, None], pa.int64()),
            "f": [0.1, 1e300, None],
            "t": ["007", "", None],
            "g": pa.array([*points(2).to_pylist(), None], pa.binary()),
        }
    )
    found = read_layer(tmp_path, table)
    assert found.names == ["n", "f", "t"]
    assert found.column("n") == [str(2**63 - 1), str(2**53 + 1), None]
    assert [text and float(text) for text in found.column("f")] == [0.1, 1e300, None]
    assert found.column("t") == ["007", "", None]
    assert found.column("geometry") == table["g"].to_pylist()
    assert [found.kind(name) for name in "nft"] == ["integer", "number", "string"]
    assert found.table.geometry
    assert found.table.geometry.crs == "EPSG:4326"


def test_dates_and_offsets_survive(tmp_path: Path) -> None:
    moment = dt.datetime.fromisoformat("2024-01-02T03:04:05.123")
    early = dt.datetime.fromisoformat("1950-06-01T12:00:00")
    zone = dt.timezone(dt.timedelta(hours=5, minutes=30))
    table = pa.table(
        {
            "d": [dt.date(2024, 2, 29), None],
            "l": pa.array([moment, early], pa.timestamp("ms")),
            "z": pa.array([moment.replace(tzinfo=zone), None], pa.timestamp("ms", "+05:30")),
            "g": points(2),
        }
    )
    found = read_layer(tmp_path, table)
    assert found.column("d") == ["2024-02-29", None]
    assert found.type("d") == "date"
    assert [text[:23] for text in found.column("l")] == [
        "2024-01-02T03:04:05.123",
        "1950-06-01T12:00:00Z",
    ]
    assert found.column("z") == ["2024-01-02T03:04:05.123+05:30", None]


def test_the_systems_own_number_is_there_where_the_key_names_it(tmp_path: Path) -> None:
    table = pa.table({"t": ["a", "b"], "GlobalID": ["x", "y"], "g": points(2)})
    assert read_layer(tmp_path, table).names == ["t"]
    found = read(FileGdbReader(), tmp_path / "given.gdb.zip", fresh(tmp_path), key=["OBJECTID"])
    assert found.column("OBJECTID") == ["1", "2"]


def fresh(folder: Path) -> Path:
    into = folder / "again"
    into.mkdir()
    return into


def test_of_several_layers_one_has_to_be_declared(tmp_path: Path) -> None:
    table = pa.table({"t": ["a"], "g": points(1)})
    path = database(tmp_path, roads=table, rivers=table)
    with pytest.raises(SourceError, match=r"layers are r\w+, r\w+: declare source.layer"):
        read(FileGdbReader(), path, fresh(tmp_path))
    found = read(FileGdbReader(), path, fresh(tmp_path / "again"), source={"layer": "rivers"})
    assert found.column("t") == ["a"]


def test_an_archive_without_a_geodatabase_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a.csv", "a\n1\n")
    with pytest.raises(SourceError, match="geodatabases are none"):
        read(FileGdbReader(), path, fresh(tmp_path))


def damaged(path: Path, part: str, change: Callable[[bytes], bytes]) -> Path:
    """The archive with a change to each part whose name ends so."""
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in parts.items():
            packed.writestr(name, change(content) if name.endswith(part) else content)
    return path


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ("", "cannot be read"),
        ("a00000009.gdbtablx", "'permits' cannot be read: the geodatabase is damaged"),
        ("a00000009.gdbtable", r"rows of 'permits' can be read, of 300 that it says it has"),
    ],
)
def test_a_geodatabase_that_is_cut_off_is_refused(tmp_path: Path, part: str, reason: str) -> None:
    path = database(tmp_path, permits=pa.table({"t": ["a"] * 300, "g": points(300)}))
    half = damaged(path, part, lambda content: content[: len(content) // 2])
    with pytest.raises(SourceError, match=reason):
        read(FileGdbReader(), half, fresh(tmp_path))


def test_a_geodatabase_with_a_name_twice_is_refused(tmp_path: Path) -> None:
    one, two = (name.encode("utf-16-le") for name in ("one", "two"))
    path = database(tmp_path, permits=pa.table({"one": ["a"], "two": ["b"], "g": points(1)}))
    same = damaged(path, "a00000009.gdbtable", lambda content: content.replace(two, one))
    with pytest.raises(SourceError, match="'permits' cannot be read: the geodatabase is damaged"):
        read(FileGdbReader(), same, fresh(tmp_path))


def test_triangulated_surfaces_that_gdal_does_not_hand_over_are_named(tmp_path: Path) -> None:
    ring = struct.pack("<I12d", 4, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0)
    triangle = struct.pack("<BII", 1, 1017, 1) + ring
    given = struct.pack("<BII", 1, 1016, 2) + triangle + triangle
    made = tmp_path / "given.gdb"
    with suppress(pyogrio.errors.GeometryError):  # it is written, and then looked at
        pyogrio.write_arrow(
            pa.table({"a": ["1"], "g": pa.array([given], pa.binary())}),
            made,
            layer="roofs",
            driver="OpenFileGDB",
            geometry_name="g",
            geometry_type="MultiPolygon Z",
            crs="EPSG:4326",
            CREATE_MULTIPATCH="YES",
        )
    path = tmp_path / "given.gdb.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for each in sorted(made.iterdir()):
            packed.write(each, f"given.gdb/{each.name}")
    into = tmp_path / "unpacked"
    into.mkdir()
    with pytest.raises(SourceError, match="a layer of triangulated surfaces"):
        read(FileGdbReader(), path, into)
