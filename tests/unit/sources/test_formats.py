"""How a source's format is told, and what is plainly no data."""

import pytest

from ploti.errors import SourceError
from ploti.server.adapters.readers import READERS
from ploti.server.sources.formats import choose

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
    ],
)
def test_a_format_is_told_by_name_and_head(name: str, head: bytes, format: str) -> None:
    assert choose(READERS, declared=None, name=name, head=head).format == format


def test_a_declared_format_wins_over_the_name() -> None:
    assert choose(READERS, declared="geojson", name="a.csv", head=COLLECTION).format == "geojson"


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
        (b"<?xml version='1.0'?><kml/>", "XML"),
        (b"PK\x03\x04\x14\x00", "a ZIP archive"),
        (b"\x1f\x8b\x08\x00", "packed with gzip"),
        (b"\xff\xfei\x00d\x00", "UTF-16"),
        (b"PAR1\x15\x04", "a Parquet file"),
    ],
)
@pytest.mark.parametrize("declared", ["csv", "geojson", None])
def test_a_head_that_is_no_data_is_named_whatever_was_declared(
    head: bytes, kind: str, declared: str | None
) -> None:
    with pytest.raises(SourceError, match=kind):
        choose(READERS, declared=declared, name="a.csv", head=head)
