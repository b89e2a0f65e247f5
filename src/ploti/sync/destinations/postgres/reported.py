"""What PostgreSQL itself reports of the rows that a transaction has written to a table."""

from __future__ import annotations

from typing import NamedTuple

from ploti.sync.destinations.postgres.wire import Wire

_REPORTED = """
    SELECT pg_stat_get_xact_tuples_inserted(oid), pg_stat_get_xact_tuples_updated(oid),
        pg_stat_get_xact_tuples_deleted(oid)
    FROM pg_class WHERE oid = to_regclass(%s)
"""
_ACTS = """
    SELECT bool_or(relhastriggers OR relhasrules OR relrowsecurity) FROM pg_class
    WHERE oid IN (to_regclass(%s), '_ploti.datasets'::regclass, '_ploti.subscriptions'::regclass)
"""
"""Whether anything acts on what is written: triggers, which foreign keys are too, rules, policies.

At the commit it may act on any table, later than rows are counted.
"""


class Reported(NamedTuple):
    """Rows that were inserted, updated and deleted."""

    inserted: int
    updated: int
    deleted: int


def read_reported(wire: Wire, place: str) -> Reported:
    """The rows of a table that were written up to now; what it begins with means nothing."""
    return Reported(*wire.rows(_REPORTED, place)[0])


def more_rows(
    wire: Wire, place: str, before: Reported, *, deleted: int, written: int
) -> int | None:
    """How many rows more the table has since `before`, by what its statements say that they did.

    None where that is not all that happened to it, or may not be all that happens.
    """
    now = Reported(*(b - a for a, b in zip(before, read_reported(wire, place), strict=True)))
    if (now.inserted + now.updated, now.deleted) != (written, deleted):
        return None
    return None if wire.value(_ACTS, place) else now.inserted - now.deleted
