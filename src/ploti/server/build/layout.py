"""Stage: how a version's files are laid out: columns, encodings, what a row group holds."""

from __future__ import annotations

from collections.abc import Mapping

from ploti.model.schema import Schema
from ploti.model.wire import Value

LISTED = 10_000
"""A version of up to this many changes has them as JSON lines too."""

EXPORTED = 100_000
"""A dataset of up to this many rows has CSV files from the start."""

_DICTIONARY = "dictionary"
_BY_TYPE = {
    "int64": "DELTA_BINARY_PACKED",
    "date": "DELTA_BINARY_PACKED",
    "timestamp": "DELTA_BINARY_PACKED",
    "datetime": "DELTA_BINARY_PACKED",
    "string": "DELTA_BYTE_ARRAY",
    "json": "DELTA_BYTE_ARRAY",
    "float64": "BYTE_STREAM_SPLIT",
}


class Layout(Value, kw_only=True):
    """How files of a version are written: its schema, and each column's encoding by name.

    Encodings are chosen at the first version and kept, or bytes would change with the data.
    """

    schema: Schema
    encodings: dict[str, str]


def choose_encodings(
    schema: Schema, *, kept: Mapping[str, str], distinct: Mapping[str, float]
) -> dict[str, str]:
    """The encoding of each column: the base's where its type still takes it, else a new choice.

    `distinct` is the share of different values among those of the first rows.
    """
    return {
        column.name: kept.get(column.name)
        or _choose(column.type, distinct=distinct.get(column.name, 1.0))
        for column in schema.columns
    }


def _choose(type_: str, *, distinct: float) -> str:
    if distinct < 0.5 and type_ not in {"boolean", "geometry"}:
        return _DICTIONARY
    return _BY_TYPE.get(type_, "PLAIN")
