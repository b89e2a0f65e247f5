"""How values stand in SQLite: the types, and DuckDB's SQL that writes and reads each value."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from ploti.model.schema import Schema
from ploti.model.sql import identifier
from ploti.sync.parquet import sql_type

TYPES: Mapping[str, str] = {
    "string": "TEXT",
    "int64": "INTEGER",
    "float64": "REAL",
    "boolean": "INTEGER",
    "date": "TEXT",
    "timestamp": "TEXT",
    "datetime": "TEXT",
    "json": "TEXT",
    "geometry": "BLOB",
}
"""The declared types; a decimal is TEXT, since SQLite's numbers would round it."""

_STORED: dict[str, tuple[str, pa.DataType]] = {
    "int64": ("integer", pa.int64()),
    "boolean": ("integer", pa.int64()),
    "float64": ("real", pa.float64()),
    "geometry": ("blob", pa.binary()),
}
_TEXT = ("text", pa.string())


def declared(type_: str) -> str:
    """The type that a column is declared with."""
    return TYPES.get(type_, "TEXT")


def storage(type_: str) -> str:
    """What SQLite's `typeof` says of a value that is not null."""
    return _STORED.get(type_, _TEXT)[0]


def arrow(type_: str) -> pa.DataType:
    """The Arrow type that holds the stored values."""
    return _STORED.get(type_, _TEXT)[1]


def written(type_: str, value: str) -> str:
    """The SQL of the stored value."""
    match type_:
        case "boolean":
            return f"({value})::INTEGER"
        case "date":
            return f"({value})::VARCHAR"
        case "timestamp":
            return f"{_moment(value)} || 'Z'"
        case "datetime":
            return _moment(value)
        case _ if type_.startswith("decimal"):
            return rf"regexp_replace(({value})::VARCHAR, '^(-?)[.]', '\10.')"
        case _:
            return value


def _moment(value: str) -> str:
    """Three decimals, or six where there are microseconds."""
    micros = f"strftime(make_timestamp(epoch_us({value})), '%Y-%m-%dT%H:%M:%S.%f')"
    return f"regexp_replace({micros}, '000$', '')"


def read(type_: str, value: str) -> str:
    """The SQL of the value in its column's type; null where the stored one is none."""
    match type_:
        case "boolean":
            return f"({value})::BOOLEAN"
        case "timestamp" | "datetime":
            return f"TRY_CAST(rtrim({value}, 'Z') AS TIMESTAMP)"
        case "date":
            return f"TRY_CAST({value} AS DATE)"
        case _ if type_.startswith("decimal"):
            return f"TRY_CAST({value} AS {sql_type(type_)})"
        case _:
            return value


def as_written(schema: Schema) -> str:
    """The SQL of whether each of a row's values is stored just as it would be written."""
    checks = []
    for column in schema.columns:
        name = identifier(column.name)
        back = written(column.type, read(column.type, name))
        if back != name:
            checks.append(f"{name} IS NOT DISTINCT FROM {back}")
    return " AND ".join(checks) or "true"
