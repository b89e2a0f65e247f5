"""How a state with keys that several rows have is matched, without a look at its other rows.

Both sides are joined by the keys that neither has more than once. What these leave are the rows
that came and went, and those of the table `SHARED`: few where few keys are shared. The state is the
shaped table, the base its snapshot; both give `file_row_number`.
"""

from __future__ import annotations

from ploti.model.columns import RECORD_ID
from ploti.model.schema import Schema
from ploti.model.sql import listed
from ploti.server.build.diff import (
    DIFF,
    SHARED,
    base_rows,
    key_hash,
    more_than_once,
    nearness,
    state_rows,
)
from ploti.server.build.shape import Shape, recast

SHARING = "sharing"
"""The table of the base's rows of shared keys that differ or have no partner, as they are there."""

GOING = "sharing_and_going"
"""The table of those in `SHARING` that go, once it is known which these are."""

_JOINED = "joined_by_key"
"""The table of rows that differ or have no partner, as `base` and `state`; those of shared keys
have none."""


def share_base_keys_sql(snapshot: str, shape: Shape, *, base: Schema, rows: int) -> str:
    """The statement that puts the keys into `SHARED` that several of the base's `rows` have."""
    keys = f"(SELECT {key_hash(shape, base)} AS kh FROM {snapshot})"
    return f"INSERT INTO {SHARED} {more_than_once(keys, rows=rows)} EXCEPT FROM {SHARED}"


def join_sql(shaped: str, snapshot: str, shape: Shape, *, base: Schema) -> str:
    """The statement that joins both sides by the keys that neither has more than once."""
    single = f"CASE WHEN kh NOT IN (FROM {SHARED}) THEN kh END AS single"
    return (
        f"CREATE OR REPLACE TABLE {_JOINED} AS SELECT base, state"
        f" FROM (SELECT *, {single} FROM ({base_rows(snapshot, shape, base)})) AS base"
        f" FULL JOIN ({state_rows(shaped, shape, base)}) AS state ON base.single = state.kh"
        f" WHERE base.ch IS DISTINCT FROM state.ch{nearness(shape, base).apart}"
    )


def leave_equal_out_sql(shape: Shape, *, base: Schema) -> str | None:
    """The statement that leaves out equal rows of a shared key, by count and in order: untouched.

    None where the hash of a row does not tell all that is compared.
    """
    if shape.unhashed or recast(shape, base) is not None:
        return None
    rows = (
        "SELECT rowid AS row, coalesce(base.kh, state.kh) AS kh, coalesce(base.ch, state.ch) AS ch,"
        f" base.pos IS NULL AS new, coalesce(base.pos, state.pos) AS pos FROM {_JOINED}"
    )
    placed = (
        "SELECT *, row_number() OVER (PARTITION BY kh, ch, new ORDER BY pos) AS place"
        f" FROM ({rows}) WHERE kh IN (FROM {SHARED})"
    )
    equal = (
        f"SELECT unnest([min(row), max(row)]) FROM ({placed})"
        " GROUP BY kh, ch, place HAVING count(*) = 2"
    )
    return f"DELETE FROM {_JOINED} WHERE rowid IN ({equal})"


COUNTS_SQL = f"""
    SELECT coalesce(sum(came) FILTER (came > 0), 0)::BIGINT,
        (SELECT count(*) FROM {_JOINED} WHERE base.pos IS NOT NULL AND state.pos IS NOT NULL),
        coalesce(-sum(came) FILTER (came < 0), 0)::BIGINT,
        coalesce(sum(old), 0)::BIGINT
    FROM (
        SELECT count(state.pos) - count(base.pos) AS came, count(base.pos) AS old
        FROM {_JOINED} WHERE base.pos IS NULL OR state.pos IS NULL
        GROUP BY coalesce(base.kh, state.kh)
    )
"""
"""SQL of one row: records that come once the shared keys are matched too, those of single keys that
change, those that go; and the base's rows without a partner so far."""

CHANGED = (
    f"(SELECT base.pos AS base_pos, state.pos AS new_pos FROM {_JOINED}"
    " WHERE base.pos IS NOT NULL AND state.pos IS NOT NULL)"
)
"""The rows of single keys that changed, as `DIFF` has them."""


def sharing_sql(snapshot: str, *, base: Schema) -> str:
    """The statement that makes the table `SHARING`, which is a relation like the snapshot."""
    rows = _at(snapshot, f"base.pos AS file_row_number FROM {_JOINED} WHERE {_shares('base')}")
    columns = listed([RECORD_ID, "file_row_number", *(column.name for column in base.columns)])
    return f"CREATE OR REPLACE TABLE {SHARING} AS SELECT {columns} FROM {rows}"


def sharing_state(shaped: str) -> str:
    """The state's rows of shared keys, as a relation like the shaped table."""
    return _at(shaped, f"state.pos AS file_row_number FROM {_JOINED} WHERE {_shares('state')}")


def left_of_state(shaped: str) -> str:
    """The state's rows without a partner so far, as a relation like the shaped table."""
    return _at(shaped, f"state.pos AS file_row_number FROM {_JOINED} WHERE base.pos IS NULL")


def _at(relation: str, places: str) -> str:
    return f"(FROM {relation} SEMI JOIN (SELECT {places}) USING (file_row_number))"


def _shares(side: str) -> str:
    return f"{side}.kh IN (FROM {SHARED})"


def differences_sql(shape: Shape, *, base: Schema) -> str:
    """The statement that makes the table of what differs, by single keys and then by the links.

    These link rows in `SHARING` alone: no other one of the base needs its id.
    """
    ids = f"SELECT {RECORD_ID} AS id, file_row_number AS place FROM {SHARING}"
    old = (
        f"SELECT base.*, id FROM {_JOINED} LEFT JOIN ({ids}) ON base.pos = place"
        " WHERE state.pos IS NULL"
    )
    new = (
        f"SELECT state.*, record_id AS id FROM {_JOINED} LEFT JOIN match_links"
        " ON state.pos = position WHERE base.pos IS NULL"
    )
    return (
        f"CREATE OR REPLACE TABLE {DIFF} AS FROM {CHANGED} UNION ALL"
        f" SELECT base.pos AS base_pos, state.pos AS new_pos FROM ({old}) AS base"
        f" FULL JOIN ({new}) AS state ON base.id = state.id"
        f" WHERE base.ch IS DISTINCT FROM state.ch{nearness(shape, base).apart}"
    )


GOING_SQL = (
    f"CREATE OR REPLACE TABLE {GOING} AS SELECT {SHARING}.* FROM {SHARING}"
    f" JOIN {DIFF} ON {SHARING}.file_row_number = {DIFF}.base_pos WHERE {DIFF}.new_pos IS NULL"
)
"""The statement that makes the table `GOING`."""

LET_GO_SQL = f"DROP TABLE {_JOINED}; DROP TABLE {SHARING}"
"""The statement that frees what is not asked any more."""
