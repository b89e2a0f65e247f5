"""Which format a source's bytes are of, and what they are plainly not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from ploti.errors import SourceError

HEAD = 4096
"""The bytes of a file's beginning by which it is told."""

_BOM = b"\xef\xbb\xbf"
_BLANKS = b" \t\r\n"
_MAGIC = {
    b"PK\x03\x04": "a ZIP archive",
    b"PK\x05\x06": "an empty ZIP archive",
    b"\x1f\x8b": "packed with gzip",
    b"BZh": "packed with bzip2",
    b"\xfd7zXZ\x00": "packed with xz",
    b"\x28\xb5\x2f\xfd": "packed with zstd",
    b"PAR1": "a Parquet file",
    b"SQLite format 3\x00": "a SQLite or GeoPackage file",
    b"fgb\x03": "a FlatGeobuf file",
    b"%PDF": "a PDF document",
    b"\xff\xfe": "text in UTF-16, and only UTF-8 is read so far",
    b"\xfe\xff": "text in UTF-16, and only UTF-8 is read so far",
}
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
    refuse(head)
    for reader in readers:
        if reader.format == declared or (declared is None and reader.matches(name, head)):
            return reader
    known = " or ".join(reader.format for reader in readers)
    raise SourceError(f"the format of '{name}' cannot be told: declare source.format as {known}")


def refuse(head: bytes) -> None:
    """Raise SourceError for a head that no format read here begins with, saying what it is."""
    text = head.removeprefix(_BOM).lstrip(_BLANKS)
    if not text.strip(b"\x00"):
        raise SourceError("the source is empty: it sent no data")
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            raise SourceError(f"the source is {kind}: csv or geojson can be read so far")
    lowered = text[:64].lower()
    if lowered.startswith(_HTML) or (lowered.startswith(b"<?xml") and b"<html" in head.lower()):
        raise SourceError("the source is an HTML page, not data: see what its address shows")
    if lowered.startswith(b"<"):
        raise SourceError("the source is XML: csv or geojson can be read so far")
