"""How a matching stands in a build: what it is asked there, and the differences that it leaves.

The state is the shaped table (`c0`, `c1`, … with `kh` and `ch`), the base its snapshot; both give
`file_row_number`.
"""

from __future__ import annotations

from ploti.model.columns import RECORD_ID
from ploti.model.schema import Column, Schema
from ploti.model.sql import identifier, literal
from ploti.server.build.diff import DIFF, nearness
from ploti.server.build.matching.links import POSITION
from ploti.server.build.matching.proof import SAMPLE
from ploti.server.build.matching.question import (
    Budget,
    Continuation,
    MatchColumn,
    Question,
    Stage,
)
from ploti.server.build.shape import Shape, base_hashed, base_value

_STRETCH = 2_048
"""As many rows as DuckDB decodes at a time."""


def question_of(
    shaped: str,
    snapshot: str,
    shape: Shape,
    *,
    base: Schema,
    gone: str | None = None,
    continuation: Continuation = Continuation.REVIEW,
    budget: Budget | None = None,
) -> Question:
    """What the matching of a state to its base is asked."""
    before = {column.name: column for column in base.columns}
    types = shape.named_types
    return Question(
        base=_base_rows(snapshot, before, types),
        new=_new_rows(shaped, shape.fields),
        columns=tuple(
            MatchColumn(name=name, type=type_, compared=name not in shape.ignored)
            for name, type_ in types.items()
            if name in before
        ),
        added=tuple(name for name in types if name not in before),
        key_before=tuple(base.key_columns),
        key_now=tuple(shape.key),
        gone=gone,
        continuation=continuation,
        budget=budget or Budget(),
    )


def _base_rows(snapshot: str, before: dict[str, Column], types: dict[str, str]) -> str:
    """The base's records in the state's types; a column that only the base has in its own."""
    values = [
        f"{base_value(column, types.get(name, column.type))} AS {identifier(name)}"
        for name, column in before.items()
    ]
    return f"(SELECT {', '.join([RECORD_ID, *values])} FROM {snapshot})"


def _new_rows(shaped: str, fields: dict[str, str]) -> str:
    values = [f"{field} AS {identifier(name)}" for name, field in fields.items()]
    return f"(SELECT file_row_number AS {POSITION}, {', '.join(values)} FROM {shaped})"


def link_keys_sql(shaped: str, snapshot: str, shape: Shape, *, base: Schema) -> str:
    """The statement that links equal keys which are there once on both sides, by their hashes."""
    known = {column.name: column for column in base.columns}
    key = ", ".join(base_value(known[name], shape.named_types[name]) for name in shape.key)
    single = "GROUP BY kh HAVING count(*) = 1"
    return (
        f"INSERT INTO match_links SELECT n.position, o.record_id, {literal(Stage.KEY)}, NULL "
        f"FROM (SELECT hash({key}) AS kh, any_value({RECORD_ID}) AS record_id "
        f"FROM {snapshot} {single}) AS o "
        f"JOIN (SELECT kh, any_value(file_row_number) AS position FROM {shaped} {single}) AS n "
        "USING (kh)"
    )


def sample_keys_sql(shaped: str, snapshot: str, shape: Shape, *, base: Schema) -> str:
    """The statement that links the records of the proof's sample alone, for keys there once."""
    known = {column.name: column for column in base.columns}
    key = ", ".join(base_value(known[name], shape.named_types[name]) for name in shape.key)
    drawn = f"ORDER BY hash({RECORD_ID}), {RECORD_ID} LIMIT {SAMPLE}"
    return (
        f"INSERT INTO match_links SELECT file_row_number, record_id, {literal(Stage.KEY)}, NULL "
        f"FROM (SELECT hash({key}) AS kh, {RECORD_ID} AS record_id FROM {snapshot} {drawn}) "
        f"JOIN (SELECT kh, file_row_number FROM {shaped}) USING (kh)"
    )


def changed_sample_sql(changed: str) -> str:
    """A query of the positions of a sample of the changed rows, a relation like `DIFF`.

    It takes stretches of rows, chosen by a hash, so that the rest of the file is passed over.
    """
    return (
        f"SELECT new_pos AS position FROM {changed}"
        " WHERE base_pos IS NOT NULL AND new_pos IS NOT NULL"
        f" ORDER BY hash(new_pos // {_STRETCH}), new_pos LIMIT {SAMPLE}"
    )


def differences_sql(shaped: str, snapshot: str, shape: Shape, *, base: Schema) -> str:
    """The statement that makes the table of what differs, as `diff.diff_sql` does, by the links.

    The id of a record that came back is not in the base: its row counts as added.
    """
    hashed = ", ".join(base_hashed(shape, base))
    near = nearness(shape, base)
    return (
        f"CREATE OR REPLACE TABLE {DIFF} AS "
        "SELECT base.pos AS base_pos, state.pos AS new_pos "
        f"FROM (SELECT hash({hashed}) AS ch, file_row_number AS pos, {RECORD_ID} AS id{near.base} "
        f"FROM {snapshot}) AS base "
        f"FULL JOIN (SELECT ch, file_row_number AS pos, record_id AS id{near.state} FROM {shaped} "
        "LEFT JOIN match_links ON file_row_number = position) AS state "
        f"ON base.id = state.id WHERE base.ch IS DISTINCT FROM state.ch{near.apart}"
    )
