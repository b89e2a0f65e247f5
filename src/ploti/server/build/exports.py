"""Stage: a version's files in forms for people and other tools, as SQL over its Parquet files."""

from __future__ import annotations

from ploti.model.columns import CHANGE, OP, RECORD_ID
from ploti.model.schema import Schema
from ploti.model.sql import identifier, literal
from ploti.server.build import texts


def snapshot_csv_sql(path: str, schema: Schema) -> str:
    """SQL of a snapshot's rows as its CSV file has them."""
    return _select(path, schema, (RECORD_ID,))


def changes_csv_sql(path: str, schema: Schema) -> str:
    """SQL of a changes file's rows as its CSV file has them."""
    return _select(path, schema, (RECORD_ID, OP, CHANGE))


def _select(path: str, schema: Schema, envelope: tuple[str, ...]) -> str:
    values = [identifier(name) for name in envelope]
    values += [f"{_csv(column.name, column.type)}" for column in schema.columns]
    return f"SELECT {', '.join(values)} FROM read_parquet({literal(path)})"


def _csv(name: str, type_: str) -> str:
    own = identifier(name)
    match type_:
        case "geometry":
            return f"st_astext(st_geomfromwkb({own})) AS {own}"
        case "timestamp" | "datetime":
            return f"{texts.moment_text(type_, own)} AS {own}"
        case "float64":
            endless = f"CASE WHEN {own} > 0 THEN 'Infinity' ELSE '-Infinity' END"
            return f"CASE WHEN isinf({own}) THEN {endless} ELSE {own}::VARCHAR END AS {own}"
        case _ if type_.startswith("decimal"):
            return f"{texts.decimal_text(own)} AS {own}"
        case _:
            return own
