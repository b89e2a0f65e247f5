"""Ports of the child that builds: readers of formats, and the engine that runs the tables' SQL."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from ploti.model.admin import Finding
from ploti.model.wire import Value
from ploti.server.sources.declaration import Declaration


class RawKind(StrEnum):
    """What a source itself says of a column's values; CSV knows only text, JSON knows kinds.

    TEXT may hold anything. STRING is a text by the source's own word: no numbers are found in it,
    only dates. JSON is JSON text, also where a column holds values of several kinds.
    """

    TEXT = "text"
    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    JSON = "json"
    WKB = "wkb"


class RawColumn(Value, kw_only=True):
    """A column as read: its name in the source, and the name of its values in the relation."""

    source_name: str
    kind: RawKind
    field: str


class RawGeometry(Value, kw_only=True):
    """The geometry that a spatial format brings: the field of its WKB, its CRS, its types."""

    field: str
    crs: str
    types: list[str]


class RawTable(Value, kw_only=True):
    """A source's state as read, whole and untyped.

    `relation` is SQL text that DuckDB can scan more than once (`read_csv(…)`, `read_parquet(…)`),
    its rows in the source's order. Every field is VARCHAR holding the source's text exactly (null
    where the source has no value), but WKB, which is canonical little-endian ISO WKB as a BLOB.
    """

    relation: str
    columns: list[RawColumn]
    geometry: RawGeometry | None
    findings: list[Finding]


class Reader(Protocol):
    """Reads one format. One file a format; `adapters/readers/__init__.py` lists them."""

    format: str

    def matches(self, name: str, head: bytes) -> bool:
        """Whether a file of this name that begins with `head` is of this format."""
        ...

    def read(self, path: str, *, declaration: Declaration, folder: str) -> RawTable:
        """Read the file at `path`, leaving what it needs in `folder`.

        Raises SourceError with one line that names the place (line or feature) and the reason.
        """
        ...
