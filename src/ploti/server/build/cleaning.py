"""Stage: a table as read, as the declaration takes it: texts trimmed, texts that mean null gone."""

from __future__ import annotations

import json

from msgspec.structs import replace

from ploti.errors import SourceError
from ploti.model.schema import Schema
from ploti.model.sql import identifier, literal
from ploti.server.build.names import BLANKS, GEOMETRY
from ploti.server.sources.declaration import Declaration
from ploti.server.sources.raw import RawColumn, RawKind, RawTable

_BLANKS = " || ".join(f"chr({ord(blank)})" for blank in BLANKS)


def clean(raw: RawTable, declaration: Declaration) -> RawTable:
    """The table with `trim` and then `null_values` obeyed."""
    if not declaration.trim and not declaration.null_values:
        return raw
    fields = [
        f"{_cleaned(column, declaration)} AS {identifier(column.field)}" for column in raw.columns
    ]
    if raw.geometry:
        fields.append(identifier(raw.geometry.field))
    chosen = ", ".join(fields)
    return replace(
        raw,
        relation=f"(SELECT {chosen} FROM {raw.relation})",
        sample=raw.sample and f"(SELECT {chosen} FROM {raw.sample})",
    )


def emptied(raw: RawTable, base: Schema | None) -> RawTable:
    """A state without rows that says no columns, such as an empty JSON array, has the base's.

    Raises SourceError where there is no base, and so no column at all.
    """
    if raw.columns or raw.rows != 0:
        return raw
    if base is None:
        if raw.geometry is None:
            raise SourceError("the source has no rows, and so no columns to begin with")
        return raw
    kept = [column for column in base.columns if column.name != GEOMETRY]
    columns = [
        RawColumn(source_name=column.name, kind=RawKind.STRING, field=f"f{number}")
        for number, column in enumerate(kept)
    ]
    fields = [f"NULL::VARCHAR AS {column.field}" for column in columns]
    if raw.geometry:
        fields.append(f"NULL::BLOB AS {identifier(raw.geometry.field)}")
    return replace(raw, relation=f"(SELECT {', '.join(fields)} FROM range(0))", columns=columns)


def _cleaned(column: RawColumn, declaration: Declaration) -> str:
    """SQL of a field; a text of CSV that is empty once it is trimmed has no value."""
    field = identifier(column.field)
    if declaration.trim and column.kind in {RawKind.TEXT, RawKind.STRING}:
        field = f"trim({field}, {_BLANKS})"
        if column.kind is RawKind.TEXT:
            field = f"nullif({field}, '')"
    if not declaration.null_values:
        return field
    texts = [*declaration.null_values]
    if column.kind is RawKind.JSON:
        texts += [json.dumps(text, ensure_ascii=False) for text in texts]
    return f"CASE WHEN {field} IN ({', '.join(map(literal, texts))}) THEN NULL ELSE {field} END"
