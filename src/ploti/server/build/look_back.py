"""Stage: records removed lately, and those added since that may be the same, after their release.

Each removed record stands as it was last held. Rules: only what is in no later version is looked
for; a record goes on in one that was added in the version that removed it, or later, so that the
two never lived beside each other (domain, 'Record ids').
"""

from __future__ import annotations

from ploti.model.columns import RECORD_ID
from ploti.model.schema import Schema
from ploti.model.sql import identifier, literal
from ploti.server.build.candidate import LookOrder, Removal
from ploti.server.build.diff import snapshot_relation
from ploti.server.build.gone import REMOVED_IN, missing_rows
from ploti.server.build.id_map import PREVIOUS
from ploti.server.build.matching.links import POSITION
from ploti.server.build.matching.question import Budget, MatchColumn, Question, Stage
from ploti.server.build.shape import base_value


def removed_sql(order: LookOrder) -> str:
    """SQL of the records that were removed and are not back, in the current version's columns."""
    parts = " UNION ALL ".join(_removed(each, order.current.schema) for each in order.removals)
    return (
        f"SELECT removed.* FROM ({parts}) AS removed"
        f" ANTI JOIN {snapshot_relation(order.current.snapshot)} USING ({RECORD_ID})"
        f" QUALIFY row_number() OVER (PARTITION BY {RECORD_ID} ORDER BY {REMOVED_IN} DESC) = 1"
        f" ORDER BY {RECORD_ID}"
    )


def _removed(removal: Removal, schema: Schema) -> str:
    known = {column.name: column for column in removal.before.schema.columns}
    values = ", ".join(
        f"{base_value(known.get(column.name), column.type)} AS {identifier(column.name)}"
        for column in schema.columns
    )
    return (
        f"(SELECT {RECORD_ID}, {values}, {removal.version}::BIGINT AS {REMOVED_IN}"
        f" FROM {missing_rows(removal.before.snapshot, removal.after)})"
    )


def added_since(order: LookOrder) -> int:
    """The first version whose added records are looked at."""
    return max(order.since + 1, min(each.version for each in order.removals))


def link_known_sql(order: LookOrder) -> str:
    """The statement that links the current records that are not looked at to themselves."""
    return (
        f"INSERT INTO match_links SELECT file_row_number, {RECORD_ID}, {literal(Stage.KEY)}, NULL"
        f" FROM {snapshot_relation(order.current.snapshot)} AS held WHERE {_first_held('held')} <"
        f" {added_since(order)}"
    )


def question_of(order: LookOrder, removed: str) -> Question:
    """What the matching is asked: the current records against those that they may go on from."""
    schema = order.current.schema
    current = snapshot_relation(order.current.snapshot)
    names = ", ".join(identifier(column.name) for column in schema.columns)
    ignored = set(order.declaration.ignore_changes)
    return Question(
        base=(
            f"(SELECT {RECORD_ID}, {names} FROM {current} AS held WHERE {_first_held('held')} <"
            f" {added_since(order)} UNION ALL SELECT {RECORD_ID}, {names} FROM {removed})"
        ),
        new=f"(SELECT file_row_number AS {POSITION}, {names} FROM {current})",
        columns=tuple(
            MatchColumn(name=c.name, type=c.type, compared=c.name not in ignored)
            for c in schema.columns
        ),
        key_before=tuple(schema.key_columns),
        key_now=tuple(schema.key_columns),
        budget=Budget(),
    )


def links_sql(order: LookOrder, removed: str) -> str:
    """SQL of what was found: a record's id now, the one that it had, the stage and the evidence."""
    return (
        f"SELECT new.{RECORD_ID} AS {PREVIOUS}, old.{RECORD_ID}, stage, evidence FROM match_links"
        f" JOIN {snapshot_relation(order.current.snapshot)} AS new ON file_row_number = position"
        f" JOIN {removed} AS old ON old.{RECORD_ID} = record_id"
        f" WHERE {_first_held('new')} >= {REMOVED_IN} ORDER BY 1"
    )


def _first_held(relation: str) -> str:
    """SQL of the version that first held a record, whose number its id begins with."""
    return f"substr({relation}.{RECORD_ID}, 5, 8)::BIGINT"
