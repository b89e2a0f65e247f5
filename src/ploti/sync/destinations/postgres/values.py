"""How values stand in PostgreSQL: the types, what COPY is given, and each value's digest bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ploti.sync.parquet import Written

TYPES: Mapping[str, str] = {
    "string": "text",
    "int64": "bigint",
    "float64": "double precision",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp with time zone",
    "datetime": "timestamp without time zone",
    "json": "json",
}
"""The types, as PostgreSQL calls them; `decimal(p,s)` is numeric(p,s), and geometry depends."""

GEOMETRY, WKB = "geometry", "bytea"


class PostGIS(NamedTuple):
    """Where the extension's type and functions are: its schema, quoted."""

    schema: str


def declared(type_: str, *, has_postgis: bool) -> str:
    """The type that a column is declared with; geometries have no type modifier.

    One with a modifier would refuse a Z among those without.
    """
    if type_ == "geometry":
        return GEOMETRY if has_postgis else WKB
    return TYPES.get(type_) or type_.replace("decimal", "numeric")


def qualified(declared: str, postgis: PostGIS | None) -> str:
    """A type as SQL must call it, wherever the extension is."""
    return f"{postgis.schema}.{GEOMETRY}" if postgis and declared == GEOMETRY else declared


def is_declared(type_: str, found: str) -> bool:
    """Whether a table's column has the type that it should; geometry has either of two."""
    if type_ == "geometry":
        return found in (GEOMETRY, WKB)
    return found == declared(type_, has_postgis=False)


def written_as(geometry: str, srid: int) -> Written:
    """Gives DuckDB's SQL of what COPY reads, for a table whose geometries are of a type."""

    def written(type_: str, value: str) -> str:
        if type_ != "geometry":
            return value
        prefix = f"SRID={srid};" if geometry == GEOMETRY else r"\x"
        return f"'{prefix}' || hex({value})"

    return written


def srid_of(crs: str) -> int:
    """The number by which PostGIS knows a reference system; 0 where it has none."""
    if crs == "OGC:CRS84":
        return 4326
    authority, _, code = crs.partition(":")
    return int(code) if authority == "EPSG" and code.isdigit() else 0


def compared(found: str, value: str) -> str:
    """SQL of what tells two values of a column apart; json has no equality of its own."""
    if found == "json":
        return f"{value}::text"
    return f"{value}::bytea" if found == GEOMETRY else value


def digested(found: str, value: str, postgis: PostGIS | None) -> str:
    """SQL of the bytes that the digest takes of a value (digest rules d1), null for a null.

    An infinite date or time is none of the dataset's: its text stands for it, and differs.
    """
    match found:
        case "text" | "json" | "bigint" | "boolean":
            return _bytes(f"{value}::text")
        case "double precision":
            bits = f"float8send(nullif({value}, 'NaN') + 0.0::float8)"
            return _bytes(f"upper(encode({bits}, 'hex'))")
        case "date":
            return _bytes(_finite(value, f"{value} - DATE '1970-01-01'"))
        case "timestamp with time zone" | "timestamp without time zone":
            return _bytes(_finite(value, f"(extract(epoch FROM {value}) * 1000000)::bigint"))
        case "bytea":
            return value
        case "geometry" if postgis is not None:
            return f"{postgis.schema}.ST_AsBinary({value}, 'NDR')"
        case _:
            return _bytes(f"{value}::text")


def _finite(value: str, number: str) -> str:
    return f"CASE WHEN isfinite({value}) THEN ({number})::text ELSE {value}::text END"


def _bytes(text: str) -> str:
    return f"convert_to({text}, 'UTF8')"
