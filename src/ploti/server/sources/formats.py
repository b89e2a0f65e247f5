"""Which format a source's bytes are of, and what they are plainly not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, TypeVar

from ploti.errors import SourceError

FORMATS = (
    *("csv", "tsv", "json", "ndjson", "geojson", "geojsonseq", "geoparquet", "parquet"),
    *("shapefile", "gpkg", "flatgeobuf", "filegdb", "kml", "xlsx"),
)
SPATIAL = {"geojson", "geojsonseq", "geoparquet", "shapefile", "flatgeobuf", "kml"}
"""Formats that always bring a geometry; of others a file may have one."""

PACKED = "packed"
"""The format of what is to be unpacked first; no declaration names it."""

GZIP = b"\x1f\x8b"
HEAD = 4096
"""The bytes of a file's beginning by which it is told."""

_BOM = b"\xef\xbb\xbf"
_BLANKS = b" \t\r\n"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_ZIPPED = {"shapefile", "filegdb"}
_MAGIC = {
    b"PK\x05\x06": "an empty ZIP archive",
    b"BZh": "packed with bzip2",
    b"\xfd7zXZ\x00": "packed with xz",
    b"\x28\xb5\x2f\xfd": "packed with zstd",
    b"7z\xbc\xaf\x27\x1c": "packed with 7-Zip",
    b"Rar!": "packed with RAR",
    b"%PDF": "a PDF document",
    b"\x00\x00\x27\x0a": "one file of a shapefile: bring all of them in one ZIP archive",
    b"\xd0\xcf\x11\xe0": "a workbook of the old kind, or with a password: save it as XLSX, without",
}
_TOLD = {
    b"PAR1": ("a Parquet file", {"parquet", "geoparquet"}),
    b"SQLite format 3\x00": ("a SQLite or GeoPackage file", {"gpkg"}),
    b"fgb\x03": ("a FlatGeobuf file", {"flatgeobuf"}),
    b"\xff\xfe": ("text in UTF-16", {"csv", "tsv"}),
    b"\xfe\xff": ("text in UTF-16", {"csv", "tsv"}),
}
_TABLES = {"csv", "tsv"}
_JSON = re.compile(rb'\{\s*["}]|\[\s*[]\[{"]')
_SHOWN = 100
_HTML = (b"<!doctype html", b"<html", b"<head", b"<body", b"<script")


class Format(Protocol):
    """A format that can be read: its name, and how it is told."""

    @property
    def format(self) -> str:
        """The name, as declarations have it."""
        ...

    def matches(self, name: str, head: bytes) -> bool:
        """Whether a file of this name that begins with `head` is of this format."""
        ...


F = TypeVar("F", bound=Format)


def choose(readers: Sequence[F], *, declared: str | None, name: str, head: bytes) -> F:
    """The reader of the declared format, or else the first that the name and the head fit.

    `head` is the file's first `HEAD` bytes, or all of it. Raises SourceError where the bytes are
    no data that can be read, or no format fits.
    """
    refuse(head, declared=declared)
    if is_packed(head) and declared not in _ZIPPED:
        declared = PACKED
    for reader in readers:
        if reader.format == declared or (declared is None and reader.matches(name, head)):
            _refuse_json(head, reader.format)
            return reader
    known = ", ".join(reader.format for reader in readers if reader.format in FORMATS)
    raise SourceError(f"the format of '{name}' cannot be told: declare source.format as {known}")


def is_packed(head: bytes) -> bool:
    """Whether a head is that of a ZIP archive or of a gzip file."""
    return head.startswith((*_ZIP, GZIP))


def refuse(head: bytes, *, declared: str | None = None) -> None:
    """Raise SourceError for a head of what is no data, or not of the declared format."""
    text = head.removeprefix(_BOM).lstrip(_BLANKS)
    if not text.strip(b"\x00"):
        raise SourceError("the source is empty: it sent no data")
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            what, colon, advice = kind.partition(":")
            raise SourceError(f"the source is {what}, which is not read{colon}{advice}")
    for magic, (kind, formats) in _TOLD.items():
        if head.startswith(magic) and declared not in {None, *formats}:
            raise SourceError(f"the source is {kind}, and {declared} is declared")
    _refuse_markup(text, head, declared=declared)


def _refuse_json(head: bytes, format_: str) -> None:
    text = head.removeprefix(_BOM).lstrip(_BLANKS)
    if format_ in _TABLES and _JSON.match(text):
        said = text[:_SHOWN].decode(errors="replace")
        raise SourceError(f"the source is JSON, and {format_} is expected: {said}")


def _refuse_markup(text: bytes, head: bytes, *, declared: str | None) -> None:
    lowered = text[:64].lower()
    opening = lowered.startswith((b"<?xml", b"<!--"))
    if lowered.startswith(_HTML) or (opening and b"<html" in head.lower()):
        raise SourceError("the source is an HTML page, not data: see what its address shows")
    is_kml = declared == "kml" or (declared is None and b"<kml" in head)
    if lowered.startswith(b"<") and not is_kml:
        raise SourceError("the source is XML, of which only KML is read")
