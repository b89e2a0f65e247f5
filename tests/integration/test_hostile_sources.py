"""Files made to hurt, in the real child: each is a failed check with a reason, in bounds."""

import asyncio
import sqlite3
import struct
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.building import declare

from ploti.server.adapters.builder.limits import Limits
from ploti.server.adapters.builder.process import ProcessBuilder
from ploti.server.build.candidate import Broken, BuildOrder, BuildResult

MIB = 1 << 20
MEMORY = "needs more memory than the 512 MiB"


def zip_bomb(folder: Path) -> Path:
    path = folder / "bomb.zip"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed,
        packed.open("a.csv", "w", force_zip64=True) as member,
    ):
        member.write(b"id\n")
        for _ in range(1100):
            member.write(b"0" * MIB)
    return path


def endless_view(folder: Path) -> Path:
    path = folder / "endless.gpkg"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE gpkg_contents (table_name, data_type);"
            "CREATE TABLE gpkg_geometry_columns (table_name, column_name, srs_id);"
            "CREATE TABLE gpkg_spatial_ref_sys"
            " (srs_id, organization, organization_coordsys_id, definition);"
            "CREATE VIEW v AS WITH RECURSIVE r (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM r)"
            " SELECT id FROM r;"
            "INSERT INTO gpkg_contents VALUES ('v', 'attributes')"
        )
    return path


def one_text_for_terabytes(folder: Path) -> Path:
    path = folder / "dictionary.parquet"
    numbers = pa.array([0] * 1_000_000, pa.int32())
    text = pa.DictionaryArray.from_arrays(numbers, pa.array(["x" * 1_000_000]))
    pq.write_table(pa.table({"id": text}), path, compression="zstd")
    return path


def nested_geometry(folder: Path) -> Path:
    path = folder / "nested.parquet"
    wkb = struct.pack("<BII", 1, 7, 1) * 200_000 + struct.pack("<BII", 1, 7, 0)
    geo = '{"version": "1.1.0", "primary_column": "g", "columns": {"g": {"encoding": "WKB"}}}'
    table = pa.table({"id": ["a"], "g": [wkb]})
    pq.write_table(table.replace_schema_metadata({"geo": geo}), path)
    return path


def long_text(folder: Path) -> Path:
    path = folder / "long.kml"
    with path.open("wb") as file:
        file.write(b"<kml><Placemark><name>")
        for _ in range(400):
            file.write(b"x" * MIB)
        file.write(b"</name></Placemark></kml>")
    return path


def sparse(path: Path, head: bytes) -> Path:
    """A file that says to be of 10 GiB and takes no room."""
    with path.open("wb") as file:
        file.write(head)
        file.truncate(10 << 30)
    return path


def endless_line(folder: Path) -> Path:
    return sparse(folder / "line.csv", b"id,name\n1,")


def endless_quote(folder: Path) -> Path:
    return sparse(folder / "quote.csv", b'id,name\n1,"')


def endless_object(folder: Path) -> Path:
    return sparse(folder / "line.ndjson", b'{"id": "')


def million_columns(folder: Path) -> Path:
    path = folder / "wide.csv"
    path.write_text(",".join(f"c{n}" for n in range(1_000_000)) + "\n")
    return path


def million_members(folder: Path) -> Path:
    path = folder / "wide.ndjson"
    path.write_text("\n".join(f'{{"c{n}": 1}}' for n in range(1_000_000)))
    return path


def laughs(folder: Path) -> Path:
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    path = folder / "laughs.kml"
    path.write_text(
        f'<!DOCTYPE kml [<!ENTITY l0 "ha">{entities}]>'
        "<kml><Placemark><name>&l9;</name></Placemark></kml>"
    )
    return path


def archive_in_archives(folder: Path) -> Path:
    inner, path = folder / "inner.zip", folder / "outer.zip"
    with zipfile.ZipFile(inner, "w") as packed:
        packed.writestr("a.csv", "id\n1\n")
    with zipfile.ZipFile(path, "w") as packed:
        packed.write(inner, "inner.zip")
    return path


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (endless_line, "line 2: a record without an end"),
        (endless_quote, "line 2: a record without an end"),
        (endless_object, "more than 134,217,728 bytes"),
        (million_columns, "the source has 1,000,000 columns, and may have 2,000"),
        (million_members, "the source has more than 2,000 columns"),
        (laughs, "entities"),
        (archive_in_archives, "inner.zip"),
        (zip_bomb, "the archive unpacks to far more than its size, at 'a.csv'"),
        (endless_view, "longer than the 3 s of PLOTI_BUILD_SECONDS"),
        (one_text_for_terabytes, MEMORY),
        (nested_geometry, "row 1: its geometry cannot be read: collections are nested more than"),
        (long_text, MEMORY),
    ],
)
def test_a_hostile_file_is_a_failed_check_with_its_reason(
    tmp_path: Path, make: Callable[[Path], Path], reason: str
) -> None:
    seconds = 3 if make is endless_view else 300
    limits = Limits(memory=512 * MIB, seconds=seconds, file_size=1 << 30)
    entry = ["-m", "ploti.server.app.child"]
    builder = ProcessBuilder(tmp_path / "work", entry=entry, limits=limits)
    source = make(tmp_path)

    async def build() -> BuildResult:
        async with builder.folder() as folder:
            order = BuildOrder(
                dataset_id=declare().id,
                declaration=declare(),
                version=1,
                base=None,
                source=str(source),
                source_name=source.name,
                folder=folder,
            )
            return await builder.build(order)

    try:
        result = asyncio.run(build())
    finally:
        builder.close()
    assert isinstance(result, Broken)
    assert reason in result.detail
    assert list((tmp_path / "work").iterdir()) == []
