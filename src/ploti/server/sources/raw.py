"""A source's state as read: whole, as text, untyped."""

from __future__ import annotations

from enum import StrEnum

from ploti.model.admin import Finding
from ploti.model.wire import Value


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
    """A column as read: its name in the source, and the name of its values in the relation.

    `type` is the column type that the source's own schema states, where it says more than `kind`
    does: `decimal(12,2)`, `float64`, `date`, `timestamp`, `datetime`. All values fit it but those
    that no column type can hold (a year beyond 9999). `description` is what the source tells of
    it in words, None where it says nothing; `made_up` columns are its software's own.
    """

    source_name: str
    kind: RawKind
    field: str
    type: str | None = None
    description: str | None = None
    made_up: bool = False


class RawGeometry(Value, kw_only=True):
    """The geometry that a spatial format brings: the field of its WKB, its CRS, its types.

    `crs` is `EPSG:n` where it is one of those, else the system in full as WKT; None where the
    source does not say it.
    """

    field: str
    crs: str | None
    types: list[str]


class RawTable(Value, kw_only=True):
    """A source's state as read, whole and untyped.

    `relation` is SQL text that DuckDB can scan more than once (`read_csv(…)`, `read_parquet(…)`),
    `sample` such a relation of a few rows from all over a large source, and `rows` how many rows
    the reader counted in the source by itself, for the proof that none is lost on the way. Every
    field is VARCHAR holding the source's text exactly (null where the source has no value), but
    WKB, which is canonical little-endian ISO WKB as a BLOB.
    """

    relation: str
    columns: list[RawColumn]
    geometry: RawGeometry | None
    findings: list[Finding]
    sample: str | None = None
    rows: int | None = None
