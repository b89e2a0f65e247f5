"""How a source's format is told, and what is plainly no data."""

import pytest

from ploti.errors import SourceError
from ploti.server.adapters.readers import READERS
from ploti.server.sources.formats import FORMATS, choose

COLLECTION = b'{"type": "FeatureCollection", "features": []}'
TABLE = b"id,name\n1,a\n"


@pytest.mark.parametrize(
    ("name", "head", "format"),
    [
        ("a.csv", TABLE, "csv"),
        ("A.CSV", b"id\n1\n", "csv"),
        ("a.geojson", COLLECTION, "geojson"),
        ("a.json", COLLECTION, "geojson"),
        ("export", b"\xef\xbb\xbf \n" + COLLECTION, "geojson"),
        ("export", TABLE, "csv"),
        ("export", b"id\tname\n1\ta\n", "tsv"),
        ("a.tsv", b"id\n1\n", "tsv"),
        ("a.csv", b"\xff\xfei\x00d\x00", "csv"),
        ("a.json", b'[{"a": 1}]', "json"),
        ("a.json", b'{"a": 1}\n{"a": 2}\n', "ndjson"),
        ("a.geojsonl", b'{"type": "Feature"}\n', "geojsonseq"),
        ("export", b"PAR1\x15\x04", "parquet"),
        ("export", b"SQLite format 3\x00", "gpkg"),
        ("export", b"fgb\x03fgb\x01", "flatgeobuf"),
        ("export", b'<?xml version="1.0"?><kml xmlns="x">', "kml"),
        ("a.csv", b"PK\x03\x04\x14\x00", "packed"),
        ("a.csv", b"\x1f\x8b\x08\x00", "packed"),
    ],
)
def test_a_format_is_told_by_name_and_head(name: str, head: bytes, format: str) -> None:
    assert choose(READERS, declared=None, name=name, head=head).format == format


def test_a_declared_format_wins_over_the_name() -> None:
    assert choose(READERS, declared="geojson", name="a.csv", head=COLLECTION).format == "geojson"


@pytest.mark.parametrize("declared", FORMATS)
def test_every_format_that_may_be_declared_has_a_reader(declared: str) -> None:
    assert choose(READERS, declared=declared, name="a", head=b"<kml>" * (declared == "kml") or b"a")


@pytest.mark.parametrize(
    ("declared", "format"), [("csv", "packed"), ("kml", "packed"), ("shapefile", "shapefile")]
)
def test_an_archive_is_unpacked_unless_it_is_what_was_declared(declared: str, format: str) -> None:
    head = b"PK\x03\x04\x14\x00"
    assert choose(READERS, declared=declared, name="a.zip", head=head).format == format


def test_what_cannot_be_told_must_be_declared() -> None:
    with pytest.raises(SourceError, match=r"format of 'a\.dat' cannot be told: declare"):
        choose(READERS, declared=None, name="a.dat", head=b"\x01\x02\x03")


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"", "empty"),
        (b"\xef\xbb\xbf\r\n ", "empty"),
        (b"\x00" * 100, "empty"),
        (b"<!DOCTYPE html><html></html>", "an HTML page"),
        (b"\xef\xbb\xbf\n  <HTML lang=en>", "an HTML page"),
        (b"<?xml version='1.0'?><!DOCTYPE html><html xmlns='x'>", "an HTML page"),
        (b"\n<!-- login --><html><body>", "an HTML page"),
        (b"<?xml version='1.0'?><gml/>", "XML, of which only KML is read"),
        (b"PK\x05\x06" + b"\x00" * 18, "an empty ZIP archive"),
        (b"BZh91AY", "packed with bzip2"),
        (b"%PDF-1.7", "a PDF document"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "a workbook of the old kind"),
        (b"\x00\x00\x27\x0a", "one file of a shapefile, which is not read: bring all of them"),
    ],
)
@pytest.mark.parametrize("declared", ["csv", "geojson", None])
def test_a_head_that_is_no_data_is_named_whatever_was_declared(
    head: bytes, kind: str, declared: str | None
) -> None:
    with pytest.raises(SourceError, match=kind):
        choose(READERS, declared=declared, name="a.csv", head=head)


@pytest.mark.parametrize("head", [b'{"error": "quota"}', b'\xef\xbb\xbf [ {"a": 1}]', b"{}", b"[]"])
@pytest.mark.parametrize("declared", ["csv", "tsv"])
def test_json_in_place_of_a_table_of_text_is_shown(head: bytes, declared: str) -> None:
    with pytest.raises(SourceError, match=f"the source is JSON, and {declared} is expected: [{{[]"):
        choose(READERS, declared=declared, name="a.json", head=head)


def test_names_in_brackets_are_no_json() -> None:
    head = b"[id],[kind]\n1,a\n"
    assert choose(READERS, declared=None, name="a.csv", head=head).format == "csv"


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"PAR1\x15\x04", "a Parquet file"),
        (b"SQLite format 3\x00", "a SQLite or GeoPackage file"),
        (b"fgb\x03fgb", "a FlatGeobuf file"),
        (b"\xff\xfei\x00d\x00", "text in UTF-16"),
    ],
)
def test_another_format_than_the_declared_one_is_named(head: bytes, kind: str) -> None:
    with pytest.raises(SourceError, match=f"{kind}, and geojson is declared"):
        choose(READERS, declared="geojson", name="a", head=head)
