"""What differs between a restored version and the one that it follows, by record id, as SQL."""

from __future__ import annotations

from ploti.model.columns import RECORD_ID
from ploti.model.sql import identifier, listed
from ploti.server.build.candidate import Base
from ploti.server.build.diff import PLACE, NewRows, snapshot_relation


def counts_sql(before: Base, after: Base) -> str:
    """SQL of one row: records added, changed, removed from one snapshot to the other."""
    own = RECORD_ID
    both = f"a.{own} IS NOT NULL AND b.{own} IS NOT NULL"
    return (
        f"SELECT count(*) FILTER (b.{own} IS NULL),"
        f" count(*) FILTER ({both} AND ({_differ(before, after)})),"
        f" count(*) FILTER (a.{own} IS NULL)"
        f" FROM {snapshot_relation(before.snapshot)} AS b"
        f" FULL JOIN {snapshot_relation(after.snapshot)} AS a ON a.{own} = b.{own}"
    )


def no_changes_sql(content: Base) -> str:
    """SQL of no changed rows, with their places and the columns of a version."""
    return f"SELECT {_columns(content)}, 0::BIGINT AS {PLACE} {_nothing(content)}"


def no_records_sql(content: Base) -> str:
    """SQL of no records, with their ids and the columns of a version."""
    return f"SELECT {_columns(content)}, {RECORD_ID} {_nothing(content)}"


def no_new_rows(content: Base) -> NewRows:
    """No new records, with the columns of a version."""
    sql = f"SELECT {_columns(content)} {_nothing(content)}"
    columns = tuple(column.name for column in content.schema.columns)
    return NewRows(sql=sql, rows=0, box=None, by=columns, aside=())


def _columns(content: Base) -> str:
    return listed(column.name for column in content.schema.columns)


def _nothing(content: Base) -> str:
    return f"FROM {snapshot_relation(content.snapshot)} WHERE false"


NO_PLACES_SQL = "SELECT 0::BIGINT AS base_pos, false AS removed WHERE false"
"""SQL of no rows of a base that change or go."""


def _differ(before: Base, after: Base) -> str:
    """A column that one side has not reads as null there; one of another type as text."""
    old = {column.name: column.type for column in before.schema.columns}
    new = {column.name: column.type for column in after.schema.columns}
    parts = []
    for name in {**old, **new}:
        column = identifier(name)
        if name not in new:
            parts.append(f"b.{column} IS NOT NULL")
        elif name not in old:
            parts.append(f"a.{column} IS NOT NULL")
        else:
            cast = "" if old[name] == new[name] else "::VARCHAR"
            parts.append(f"a.{column}{cast} IS DISTINCT FROM b.{column}{cast}")
    return " OR ".join(parts)
