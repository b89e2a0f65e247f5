"""Stage: what differs between a state and its base, matched by key, as SQL.

One join of narrow tables (key hash, row hash, position): equal hashes, which together are 128
bits, mean an untouched record, and its row is never looked at again. Rules: equal keys are the
same record; a column that one side has not reads as null there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from ploti.model.columns import PREFIX
from ploti.model.schema import Schema
from ploti.model.sql import identifier, literal
from ploti.server.build.candidate import KeyFault
from ploti.server.build.shape import Shape, base_hashed, base_value

DIFF = "diff"
"""The table of what differs: `base_pos` and `new_pos`, rows in the base and in the shaped table."""

SHARED = "shared_keys"
"""The table of the hashes `kh` of keys that several rows of one side have."""

PLACE = f"{PREFIX}place"
"""The column of a row's place in the order of rows."""

Box = tuple[float, float, float, float]
"""Least x and y, greatest x and y."""

RETURNED = "returned"
"""The table of added rows whose records were removed lately: `position`, and their `record_id`."""

_EXAMPLES = 5

_SORTED = 5_000_000
"""Hashes that are sorted in memory: some 200 MB while it lasts."""


def snapshot_relation(path: str) -> str:
    """A base's snapshot as a relation with `file_row_number`."""
    return f"read_parquet({literal(path)}, file_row_number=true)"


def diff_sql(
    base_side: str, state_side: str, shape: Shape, *, base: Schema, part: int = 0, parts: int = 1
) -> str:
    """The statement that makes the table `DIFF` of narrow rows, `base_rows` and `state_rows`.

    Of several parts, told by the keys' hashes, the first makes it and the others add to it.
    """
    within = f" WHERE kh % {parts} = {part}" if parts > 1 else ""
    differing = (
        f"SELECT base.pos AS base_pos, state.pos AS new_pos"
        f" FROM (FROM ({base_side}){within}) AS base"
        f" FULL JOIN (FROM ({state_side}){within}) AS state ON base.kh = state.kh"
        f" WHERE base.ch IS DISTINCT FROM state.ch{nearness(shape, base).apart}"
    )
    if part:
        return f"INSERT INTO {DIFF} {differing}"
    return f"CREATE OR REPLACE TABLE {DIFF} AS {differing}"


def base_rows(snapshot: str, shape: Shape, base: Schema) -> str:
    """SQL of the base's narrow rows: `kh`, `ch`, `pos`, and what is compared by its difference."""
    hashed = ", ".join(base_hashed(shape, base))
    return (
        f"SELECT {key_hash(shape, base)} AS kh, hash({hashed}) AS ch, file_row_number AS pos"
        f"{nearness(shape, base).base} FROM {snapshot}"
    )


def state_rows(shaped: str, shape: Shape, base: Schema) -> str:
    """SQL of the state's narrow rows, as `base_rows` gives the base's."""
    return f"SELECT kh, ch, file_row_number AS pos{nearness(shape, base).state} FROM {shaped}"


def key_hash(shape: Shape, base: Schema) -> str:
    """SQL of the hash of a base row's key, equal to the state's `kh` where the keys are."""
    known = {column.name: column for column in base.columns}
    keys = ", ".join(base_value(known[name], shape.named_types[name]) for name in shape.key)
    return f"hash({keys})"


class Nearness(NamedTuple):
    """SQL of what is compared by its difference: fields of either side, and what sets them apart.

    All three continue a text that stands, or are empty.
    """

    base: str
    state: str
    apart: str


def nearness(shape: Shape, base: Schema) -> Nearness:
    """How the columns with tolerances are compared, always with the value held."""
    known = {column.name: column for column in base.columns}
    olds, news, apart = "", "", ""
    for number, (name, tolerance) in enumerate(shape.tolerances):
        olds += f", {base_value(known.get(name), shape.named_types[name])}::DOUBLE AS t{number}"
        news += f", {shape.field(name)}::DOUBLE AS t{number}"
        old, new = f"base.t{number}", f"state.t{number}"
        # What a decimal difference is off by once both numbers are doubles.
        slack = f"{tolerance * 1e-9!r}::DOUBLE + greatest(abs({old}), abs({new})) * 4.5e-16"
        apart += f" OR ({old} IS NULL) <> ({new} IS NULL)"
        apart += f" OR abs({old} - {new}) > {tolerance!r}::DOUBLE + {slack}"
    return Nearness(base=olds, state=news, apart=apart)


COUNTS_SQL = f"""
    SELECT count(*) FILTER (base_pos IS NULL),
        count(*) FILTER (base_pos IS NOT NULL AND new_pos IS NOT NULL),
        count(*) FILTER (new_pos IS NULL)
    FROM {DIFF}
"""
"""SQL of one row: records added, changed, removed."""

RETURNED_SQL = f"SELECT count(*) FROM {RETURNED}"
"""SQL of one row: how many of the added records came back."""

TOUCHED_SQL = f"""
    SELECT base_pos, new_pos IS NULL AS removed FROM {DIFF}
    WHERE base_pos IS NOT NULL ORDER BY base_pos
"""
"""SQL of the base's rows that change or go, in the base's order."""


def added_rows(shaped: str) -> str:
    """A relation of the shaped rows that are new records; those that came back are none."""
    return (
        f"(SELECT state.* FROM {shaped} AS state JOIN {DIFF}"
        f" ON state.file_row_number = diff.new_pos WHERE diff.base_pos IS NULL"
        f" AND diff.new_pos NOT IN (SELECT position FROM {RETURNED}))"
    )


def changed_sql(shaped: str, shape: Shape) -> str:
    """SQL of the changed records' new values under their names, with their rows in the base."""
    return (
        f"SELECT {named_fields(shape)}, diff.base_pos AS {PLACE} FROM {shaped} AS state JOIN {DIFF}"
        " ON state.file_row_number = diff.new_pos WHERE diff.base_pos IS NOT NULL"
    )


def geometries_sql(rows: str) -> str:
    """SQL of the geometries of new records."""
    return f"SELECT g FROM {rows}"


class NewRows(NamedTuple):
    """New records, in no order yet: SQL of so many rows under the dataset's names.

    They are numbered by the places of their geometry along a Hilbert curve over the `box`, none
    last, and then by the columns `by`, nulls last, of which those `aside` are not the dataset's.
    """

    sql: str
    rows: int
    box: Box | None
    by: tuple[str, ...]
    aside: tuple[str, ...]


def new_rows(relation: str, shape: Shape, *, rows: int, box: Box | None, unique: bool) -> NewRows:
    """New records with their order: place, key as text, columns in order (domain, 'Record ids').

    So it does not depend on that of the source's rows. After a key that is `unique` the columns
    decide nothing and are left out.
    """
    texts = {
        name if shape.named_types[name] == "string" else f"{PREFIX}key_{name}": name
        for name in shape.key
    }
    aside = tuple(text for text, name in texts.items() if text != name)
    cast = [f"{shape.field(texts[text])}::VARCHAR AS {identifier(text)}" for text in aside]
    columns = () if unique and shape.key else tuple(shape.fields)
    return NewRows(
        sql=f"SELECT {', '.join([named_fields(shape), *cast])} FROM {relation}",
        rows=rows,
        box=box,
        by=tuple(dict.fromkeys([*texts, *columns])),
        aside=aside,
    )


def numbered_sql(rows: str, shape: Shape, *, box: Box | None, unique: bool) -> str:
    """SQL of the `position` of each of `new_rows` and of its `ordinal` in their order, from 0."""
    order = [f"{field}::VARCHAR NULLS LAST" for field in shape.key_fields]
    if not (unique and order):
        order += [f"{field} NULLS LAST" for field in shape.fields.values()]
    if box:
        corners = ", ".join(f"{corner!r}::DOUBLE" for corner in box)
        order.insert(0, f"ploti_place(g, {corners}) NULLS LAST")
    ordinal = f"row_number() OVER (ORDER BY {', '.join(order)}) - 1"
    return f"SELECT file_row_number AS position, {ordinal} AS ordinal FROM {rows}"


def named_fields(shape: Shape) -> str:
    """The shaped table's columns under the names of the dataset."""
    return ", ".join(f"{field} AS {identifier(name)}" for name, field in shape.fields.items())


def shared_keys_sql(shaped: str, *, rows: int) -> str:
    """The statement that makes the table `SHARED` of the keys that several rows of a state have."""
    return f"CREATE OR REPLACE TABLE {SHARED} AS {more_than_once(shaped, rows=rows)}"


def more_than_once(relation: str, *, rows: int) -> str:
    """SQL of the hashes `kh` that are in a relation of so many rows more than once.

    To sort them is cheaper by far than to group by them, which spills to disk.
    """
    if rows <= _SORTED:
        return f"SELECT DISTINCT unnest(ploti_repeated(list(kh))) AS kh FROM {relation}"
    return f"SELECT kh FROM {relation} GROUP BY kh HAVING count(*) > 1"


def key_faults_sql(shaped: str, shape: Shape) -> tuple[str, str]:
    """SQL of the rows whose key has a null; and SQL of repeated keys: text, rows, keys in all.

    The second gives a few examples, and compares only rows under suspicion, by `SHARED`, as text.
    """
    null = " OR ".join(f"{field} IS NULL" for field in shape.key_fields)
    keys = ", ".join(shape.key_fields)
    shown = " || ' ' || ".join(f"{field}::VARCHAR" for field in shape.key_fields)
    repeated = (
        f"SELECT {shown} AS shown, count(*) AS rows, count(*) OVER () AS keys FROM {shaped}"
        f" WHERE kh IN (FROM {SHARED}) AND NOT ({null})"
        f" GROUP BY {keys} HAVING count(*) > 1 ORDER BY rows DESC, shown LIMIT {_EXAMPLES}"
    )
    return f"SELECT count(*) FROM {shaped} WHERE {null}", repeated


def make_key_fault(
    null_rows: int, repeated: Sequence[tuple[str, int, int]], *, key: Sequence[str]
) -> KeyFault | None:
    """The fault of a state's key, or none."""
    if not null_rows and not repeated:
        return None
    examples = [f"{shown}: {rows} rows" for shown, rows, _ in repeated]
    if null_rows:
        examples.insert(0, f"rows without {' or '.join(key)}: {null_rows}")
    keys = repeated[0][2] if repeated else 0
    return KeyFault(null_rows=null_rows, repeated_keys=keys, examples=examples)


def state_sql(shaped: str, shape: Shape) -> str:
    """SQL of one row that tells states of one shape apart, whatever ids their records get."""
    near = [shape.field(name) for name, _ in shape.tolerances]
    row = f"hash({', '.join(['ch', *near])})" if near else "ch"
    return f"SELECT count(*), sum({row})::VARCHAR, sum(hash({row}, 1))::VARCHAR FROM {shaped}"


def state_digest(shape: Shape, found: Sequence[object]) -> str:
    """A state's identity: its columns with their types, and the sums of its rows' hashes."""
    said = repr((list(shape.named_types.items()), shape.key, [str(part) for part in found]))
    return f"s1:{hashlib.sha256(said.encode()).hexdigest()[:32]}"
