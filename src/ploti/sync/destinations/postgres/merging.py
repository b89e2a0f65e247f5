"""Brings what is staged into a table that is in use, whatever else its owner has made unique."""

from __future__ import annotations

from psycopg import errors

from ploti.sync.destinations.postgres import staging
from ploti.sync.destinations.postgres.staging import Columns
from ploti.sync.destinations.postgres.wire import Wire

_UNIQUE = """
    SELECT DISTINCT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid
    WHERE indrelid = to_regclass(%s) AND (indisunique OR indisexclusion)
        AND attnum > 0 AND NOT attnotnull
        AND (attnum = ANY (indkey) OR EXISTS (
            SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = indexrelid
                AND refobjid = indrelid AND refobjsubid = attnum))
        AND NOT EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND conindid = indexrelid)
"""
"""The columns of such indexes, in expressions too; those that foreign keys refer to stay away."""


def merge(wire: Wire, place: str, columns: Columns, *, is_changes: bool) -> tuple[int, int]:
    """Delete the records that are gone, then write those that are new or others; gives how many.

    A record is updated where it is, one after another. Where two exchange values that an index of
    the table's owner has but once, the one that is written first would stand in the other's way:
    then those values are let go of before all are written. Nothing else is given up for it.
    """
    deleted = wire.run(staging.delete_sql(place, is_changes=is_changes))
    write = staging.merge_sql(place, columns, is_changes=is_changes)
    unique = columns.only({name for (name,) in wire.rows(_UNIQUE, place)})
    if not unique.names:
        return deleted, wire.run(write)
    wire.run("SAVEPOINT merging")
    try:
        written = wire.run(write)
    except (errors.UniqueViolation, errors.ExclusionViolation):
        wire.run("ROLLBACK TO merging")
        wire.run(staging.let_go_sql(place, unique, is_changes=is_changes))
        written = wire.run(write)
    wire.run("RELEASE merging")
    return deleted, written
