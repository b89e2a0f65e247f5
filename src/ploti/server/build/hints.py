"""What would end a schema's review: a column that only changed its name, a text that means null."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ploti.model.admin import Finding
from ploti.model.schema import RetypedColumn, Schema, SchemaChange
from ploti.model.sql import identifier, literal
from ploti.server.build.diff import DIFF
from ploti.server.build.measures import Measures
from ploti.server.build.names import bare
from ploti.server.build.shape import Shape, base_value
from ploti.server.build.texts import kept

_MOST = 5
"""Columns that left, and that came, which are compared with each other."""

_ALIKE = 0.95
_NEARLY_ALL = 0.8
_LOOKED_AT = 10_000
_NO_SCALARS = {"json", "geometry"}


def written_otherwise(change: SchemaChange) -> dict[str, str]:
    """The name that came for each that left, where both have the same letters and digits."""
    came = {bare(column.name): column.name for column in change.added if bare(column.name)}
    left = {column.name: came.get(bare(column.name)) for column in change.removed}
    return {old: new for old, new in left.items() if new}


def written_finding(names: Mapping[str, str]) -> list[Finding]:
    """A finding of all columns whose names are only written otherwise."""
    if not names:
        return []
    pairs = ", ".join(f"{new}: {old}" for old, new in names.items())
    return [
        Finding(
            reason=None,
            kind="likely_rename",
            message=f"{', '.join(names)} came with the name written otherwise: if nothing else"
            f" changed, declare rename: {{{pairs}}}",
        )
    ]


def renames_sql(
    change: SchemaChange, *, before: str, after: str, filled: Sequence[str], told: Mapping[str, str]
) -> str | None:
    """SQL of a row a pair of columns: the one that left, the one that came, values, equal ones.

    None where nothing left or nothing came but what is `told` already. The values are those of
    records in both snapshots; of the `filled` columns, which were there, those of records that had
    none in them.
    """
    left = [each.name for each in change.removed if each.name not in told]
    came = [each.name for each in change.added if each.name not in told.values()]
    pairs = [(old, new) for old in left[:_MOST] for new in [*came, *filled][:_MOST]]
    if not pairs:
        return None
    parts = [
        f"SELECT {literal(old)}, {literal(new)}, count(*) FILTER (o IS NOT NULL OR n IS NOT NULL),"
        f" count(*) FILTER (o = n), count(DISTINCT o) FROM (SELECT b.{identifier(old)}::VARCHAR"
        f" AS o, a.{identifier(new)}::VARCHAR AS n FROM read_parquet({literal(before)}) AS b"
        f" JOIN read_parquet({literal(after)}) AS a USING (_ploti_record_id)"
        f"{f' WHERE b.{identifier(new)} IS NULL' if new in filled else ''})"
        for old, new in pairs
    ]
    return " UNION ALL ".join(parts)


def filled_since(change: SchemaChange, before: Measures, after: Measures) -> list[str]:
    """The columns in which about as many values came as left with a column."""
    left = [before.filled.get(old.name, 0) for old in change.removed]
    return [
        name
        for name in sorted(before.filled.keys() & after.filled.keys())
        if any(
            after.filled[name] - before.filled[name] >= _NEARLY_ALL * values
            for values in left
            if values
        )
    ]


def rename_findings(found: list[tuple[object, ...]]) -> list[Finding]:
    """A finding for each column that most likely goes on under another name."""
    return [
        Finding(
            reason=None,
            kind="likely_rename",
            message=f"{old} is gone while the same values came in {new}: if it is the same"
            f" column, declare rename: {{{new}: {old}}}",
        )
        for old, new, values, equal, different in found
        if isinstance(values, int) and isinstance(equal, int) and isinstance(different, int)
        if different > 1 and equal >= _ALIKE * values
    ]


def alone_sql(shaped: str, snapshot: str, shape: Shape, *, base: Schema) -> str | None:
    """SQL of a row a column: its name, and how many changed records differ in it alone.

    A sample of them is looked at; None where the state has one column beside its key. A column
    that came or was retyped is not told: the schema's change says so.
    """
    known = {column.name: column for column in base.columns}
    names = [name for name in shape.fields if name not in {*shape.key, *shape.unhashed}]
    if len(names) < 2:
        return None
    # each side names its own: a column may be called as a field is
    before = ", ".join(
        f"{base_value(known.get(name), shape.named_types[name])} AS before_{number}"
        for number, name in enumerate(names)
    )
    after = ", ".join(f"{shape.fields[name]} AS after_{n}" for n, name in enumerate(names))
    flags = ", ".join(
        f"(b.before_{number} IS DISTINCT FROM s.after_{number})::INTEGER AS d{number}"
        for number in range(len(names))
    )
    pairs = (
        f"(FROM {DIFF} WHERE base_pos IS NOT NULL AND new_pos IS NOT NULL"
        f" ORDER BY base_pos LIMIT {_LOOKED_AT}) AS pair"
        f" JOIN (SELECT file_row_number, {before} FROM {snapshot}) AS b"
        " ON b.file_row_number = pair.base_pos"
        f" JOIN (SELECT file_row_number, {after} FROM {shaped}) AS s"
        " ON s.file_row_number = pair.new_pos"
    )
    total = " + ".join(f"d{number}" for number in range(len(names)))
    told = [
        f"SELECT {literal(name)}, count(*) FILTER (d{number} = 1 AND {total} = 1), count(*)"
        " FROM differing"
        for number, name in enumerate(names)
        if name in known and known[name].type == shape.named_types[name]
    ]
    if not told:
        return None
    return f"WITH differing AS (SELECT {flags} FROM {pairs}) {' UNION ALL '.join(told)}"


def alone_finding(found: list[tuple[object, ...]]) -> list[Finding]:
    """A finding where one column explains nearly all of a version's changes."""
    return [
        Finding(
            reason=None,
            kind="one_column",
            subject=str(name),
            message=f"{alone} of {changed} changed records differ in {name} alone: if that is no"
            f" change, declare ignore_changes: [{name}]",
            measure=alone,
        )
        for name, alone, changed in found
        if isinstance(alone, int) and isinstance(changed, int) and alone >= _NEARLY_ALL * changed
    ]


def misfits_sql(column: RetypedColumn, *, after: str) -> str | None:
    """SQL of up to two texts of a column that its former type does not hold; None for others."""
    if column.to != "string" or column.from_ in _NO_SCALARS:
        return None
    name = identifier(column.name)
    return (
        f"SELECT DISTINCT {name} FROM read_parquet({literal(after)}) WHERE {name} IS NOT NULL"
        f" AND NOT {kept(column.from_, name)} LIMIT 2"
    )


def null_finding(column: RetypedColumn, found: list[tuple[object, ...]]) -> list[Finding]:
    """A finding where one text alone made a column a text."""
    if len(found) != 1:
        return []
    text = str(found[0][0])
    return [
        Finding(
            reason=None,
            kind="likely_null_values",
            message=f"{column.name} was {column.from_} and is text because of '{text}' alone: if"
            f" that means null, declare null_values: ['{text}']",
        )
    ]
