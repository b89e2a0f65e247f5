"""Stage: a column whose type all texts but a few have, retyped without a second reading.

The shaped table keeps the texts of the rows in which some did not fit, of columns whose values tell
all others: so a wider type is found, and read, from both. What comes of it is what `shape_sql`
gives for that type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ploti.model.schema import Schema
from ploti.server.build.columns import PlannedColumn
from ploti.server.build.shape import Shape, hashes, keeps_texts, tells_texts
from ploti.server.build.texts import sql_type

_FEW_DIGITS = 10**15
"""Whole numbers below it are doubles by either reading of texts."""


class Mending(NamedTuple):
    """Columns whose texts did not all fit, as they are and over `texts`, with `wider` types.

    The relation `texts` has the fields of the second, null where all texts of a row fit.
    """

    wrong: tuple[PlannedColumn, ...]
    wider: tuple[PlannedColumn, ...]
    texts: str


def plan_mending(
    shaped: str, shape: Shape, wrong: Sequence[PlannedColumn], wider: Sequence[PlannedColumn]
) -> Mending | None:
    """The columns over the texts kept; None where the texts of one of them are not."""
    places = {column.name: place for place, column in enumerate(keeps_texts(shape), start=1)}
    if not all(column.name in places for column in wrong):
        return None
    given = ", ".join(f"misfits[{places[c.name]}] AS t{places[c.name]}" for c in wrong)
    return Mending(
        wrong=tuple(wrong),
        wider=tuple(column._replace(field=f"t{places[column.name]}") for column in wider),
        texts=f"(SELECT *, {given} FROM {shaped})",
    )


def tell_all_sql(mending: Mending, shape: Shape) -> str | None:
    """SQL of one row: whether values and texts tell all in the wider types, and new values.

    These are counted for each column. None where the types alone say that they do not tell.
    """
    pairs = zip(mending.wrong, mending.wider, strict=True)
    if not all(tells_texts(before, after.type) for before, after in pairs):
        return None
    fields = [(shape.field(column.name), column) for column in mending.wider]
    few = [
        f"coalesce(max(abs({field})) < {_FEW_DIGITS}, true)"
        for field, column in fields
        if column.type == "float64"
    ]
    filled = [
        f"count({column.value(column.type)}) FILTER ({field} IS NULL)" for field, column in fields
    ]
    return f"SELECT {' AND '.join(few) or 'true'}, {', '.join(filled)} FROM {mending.texts}"


def mended(mending: Mending, shape: Shape, *, base: Schema | None) -> str:
    """The relation of the shaped table as it is with the wider types, which `shape` has."""
    values = [
        f"CASE WHEN misfits IS NULL THEN {field}::{sql_type(column.type)}"
        f" ELSE {column.value(column.type)} END AS {field}"
        for column in mending.wider
        for field in [shape.field(column.name)]
    ]
    row, *key = hashes(shape, base)
    if not any(column.name in shape.key for column in mending.wrong):
        key = []  # it is as it was
    dropped = ["ch", *(["kh"] if key else []), *(column.field for column in mending.wider)]
    return (
        f"(SELECT *, {', '.join([row, *key])} FROM (SELECT * EXCLUDE"
        f" ({', '.join(dropped)}) REPLACE ({', '.join(values)}) FROM {mending.texts}))"
    )
