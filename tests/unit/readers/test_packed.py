"""Archives: opened safely, and what is in them is read as if it were not packed."""

import gzip
import struct
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.readers.reading import Read, read
from tests.unit.readers.test_xlsx import HEAD, book

from ploti.errors import SourceError
from ploti.server.adapters.readers import READERS
from ploti.server.adapters.readers.archive import Archive
from ploti.server.sources import formats
from ploti.server.sources.formats import PACKED

PACKED_READER = next(reader for reader in READERS if reader.format == PACKED)
TABLE = "id,t\n1,007\n"


def packed(folder: Path, members: dict[str, str | bytes]) -> Path:
    path = folder / "given.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return path


def read_packed(folder: Path, members: dict[str, str | bytes], **settings: Any) -> Read:
    path = packed(folder, members)
    into = folder / "unpacked"
    into.mkdir()
    return read(PACKED_READER, path, into, **settings)


def test_the_one_data_file_is_read_whatever_else_is_packed_with_it(tmp_path: Path) -> None:
    members = {"readme.pdf": "", "data/t.csv": TABLE, "__MACOSX/._t.csv": "", "data/.x.csv": ""}
    assert read_packed(tmp_path, members).column("t") == ["007"]


@pytest.mark.parametrize("member", ["b.csv", "two/b.csv"])
def test_of_several_data_files_one_has_to_be_declared(tmp_path: Path, member: str) -> None:
    members: dict[str, str | bytes] = {"one/a.csv": TABLE, "two/b.csv": "id,t\n2,008\n"}
    with pytest.raises(SourceError, match=r"has one/a.csv, two/b.csv: declare source.member"):
        read(PACKED_READER, packed(tmp_path, members), tmp_path)
    assert read_packed(tmp_path, members, source={"member": member}).column("t") == ["008"]


def test_texts_beside_the_data_file_are_for_people(tmp_path: Path) -> None:
    assert read_packed(tmp_path, {"a.csv": TABLE, "readme.txt": "what"}).column("t") == ["007"]
    with pytest.raises(SourceError, match=r"has a.txt, b.txt: declare"):
        read(PACKED_READER, packed(tmp_path, {"a.txt": TABLE, "b.txt": TABLE}), tmp_path)


def test_of_several_data_files_the_declared_format_tells_the_one(tmp_path: Path) -> None:
    members: dict[str, str | bytes] = {"about.json": "[]", "a.csv": TABLE, "b.txt": "x"}
    assert read_packed(tmp_path, members, source={"format": "csv"}).column("t") == ["007"]
    with pytest.raises(SourceError, match=r"has about.json, a.csv: declare source.member"):
        read(PACKED_READER, packed(tmp_path, members), tmp_path)


def test_a_setting_is_held_against_the_format_of_the_member(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"source.layer is not for csv, but for gpkg"):
        read_packed(tmp_path, {"a.csv": TABLE}, source={"layer": "a"})


def test_a_member_that_is_not_there_is_named_beside_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no 'b.csv'; it has a.csv"):
        read_packed(tmp_path, {"a.csv": TABLE}, source={"member": "b.csv"})
    with pytest.raises(SourceError, match=r"has no data file; it has a.exe"):
        read(PACKED_READER, packed(tmp_path, {"a.exe": ""}), tmp_path)


def test_a_member_may_be_of_any_format(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"t": ["007"]}), path)
    assert read_packed(tmp_path, {"a.parquet": path.read_bytes()}).column("t") == ["007"]


def test_the_declared_format_is_that_of_the_member(tmp_path: Path) -> None:
    members: dict[str, str | bytes] = {"a.txt": "id;t\n1;007\n"}
    found = read_packed(tmp_path, members, source={"format": "csv", "delimiter": ";"})
    assert found.column("t") == ["007"]


@pytest.mark.parametrize("format_", [None, "xlsx"])
def test_a_workbook_which_is_an_archive_itself_is_read(tmp_path: Path, format_: str | None) -> None:
    row = "<row r='2'><c r='A2' t='str'><v>007</v></c></row>"
    content = book(tmp_path, HEAD + row).read_bytes()
    zipped = packed(tmp_path, {"about.txt": "what", "t.xlsx": content})
    gzipped = tmp_path / "given.gz"
    gzipped.write_bytes(gzip.compress(content))
    for number, path in enumerate((zipped, gzipped)):
        into = tmp_path / str(number)
        into.mkdir()
        with path.open("rb") as file:
            head = file.read(formats.HEAD)
        reader = formats.choose(READERS, declared=format_, name=path.name, head=head)
        source = {"format": format_}
        assert read(reader, path, into, source=source).column("a") == ["007"]


def test_a_workbook_in_place_of_the_declared_format_is_told(tmp_path: Path) -> None:
    path = book(tmp_path, HEAD)
    with pytest.raises(SourceError, match=r"a workbook \(XLSX\), and csv is declared"):
        read(PACKED_READER, path, tmp_path, source={"format": "csv"})


def test_an_archive_in_an_archive_is_refused(tmp_path: Path) -> None:
    inner = packed(tmp_path, {"a.csv": TABLE}).read_bytes()
    with pytest.raises(SourceError, match="no data file"):
        read_packed(tmp_path, {"inner.zip": inner})
    again = packed(tmp_path, {"inner.csv": inner})
    with pytest.raises(SourceError, match="another archive in it, which is not read"):
        read(PACKED_READER, again, tmp_path)


@pytest.mark.parametrize("name", ["../a.csv", "/etc/a.csv", "a/../../b.csv", "..\\a.csv"])
def test_a_path_that_leads_out_of_the_archive_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceError, match="leads out of it"):
        read_packed(tmp_path, {name: TABLE})
    assert sorted(each.name for each in tmp_path.iterdir()) == ["given.zip", "unpacked"]


def test_a_link_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "given.zip"
    link = zipfile.ZipInfo("a.csv")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(SourceError, match="a link"):
        read(PACKED_READER, path, tmp_path)


def test_too_many_members_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "given.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(20_001):
            archive.writestr(f"{number}.x", b"")
    with pytest.raises(SourceError, match="more than 20,000 members"):
        read(PACKED_READER, path, tmp_path)


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    path = packed(tmp_path, {"a.csv": TABLE})
    content = bytearray(path.read_bytes())
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(signature) + at] |= 1
    path.write_bytes(content)
    with pytest.raises(SourceError, match="encrypted"):
        read(PACKED_READER, path, tmp_path)


def test_a_member_that_says_to_unpack_to_far_more_than_the_archive_is_refused(
    tmp_path: Path,
) -> None:
    path = packed(tmp_path, {"a.csv": TABLE})
    content = bytearray(path.read_bytes())
    at = content.index(b"PK\x01\x02") + 24
    content[at : at + 4] = struct.pack("<I", 3 << 30)
    path.write_bytes(content)
    with pytest.raises(SourceError, match="far more than its size"):
        read(PACKED_READER, path, tmp_path)


def test_all_members_together_have_one_limit(tmp_path: Path) -> None:
    path = packed(tmp_path, {"a.csv": b"\0" * 1000, "b.csv": b"\0" * 1000})
    with zipfile.ZipFile(path) as file:
        archive = Archive(file, size=0)
        archive._left = 1500
        archive.unpack("a.csv", tmp_path / "a")
        with pytest.raises(SourceError, match="far more than its size"):
            archive.unpack("b.csv", tmp_path / "b")


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    path = packed(tmp_path, {"a.csv": TABLE * 1000})
    content = bytearray(path.read_bytes())
    content[60:70] = b"\xff" * 10
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"'a.csv' in the archive cannot be unpacked"):
        read(PACKED_READER, path, tmp_path)
    path.write_bytes(content[:100])
    with pytest.raises(SourceError, match="ZIP archive cannot be read"):
        read(PACKED_READER, path, tmp_path)


def test_a_gzip_file_is_read_as_what_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "given.gz"
    path.write_bytes(gzip.compress(TABLE.encode()))
    assert read(PACKED_READER, path, tmp_path).column("t") == ["007"]


def test_a_gzip_file_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "given.gz"
    path.write_bytes(gzip.compress(TABLE.encode())[:-4])
    with pytest.raises(SourceError, match="cannot be unpacked"):
        read(PACKED_READER, path, tmp_path)


def test_a_gzip_bomb_stops_at_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ploti.server.adapters.readers.packed._ALWAYS_ALLOWED", 1 << 20)
    path = tmp_path / "given.gz"
    path.write_bytes(gzip.compress(b"0" * (8 << 20)))
    with pytest.raises(SourceError, match="far more than its size"):
        read(PACKED_READER, path, tmp_path)
    assert (tmp_path / "member").stat().st_size <= 2 << 20
