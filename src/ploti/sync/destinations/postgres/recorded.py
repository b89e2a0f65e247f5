"""What is held, in the schema `_ploti` of the database: its tables, and a line of them read."""

from __future__ import annotations

from typing import Any

from ploti.model.ids import DatasetId, EventId
from ploti.model.wire import Instant
from ploti.sync.destinations.postgres.wire import Wire
from ploti.sync.held import Held, State

_SET_UP = (
    "CREATE SCHEMA IF NOT EXISTS _ploti",
    """
    CREATE TABLE IF NOT EXISTS _ploti.subscriptions (
        subscription_id text PRIMARY KEY,
        cursor text,
        chosen text[] NOT NULL DEFAULT '{}',
        revision bigint NOT NULL DEFAULT 0,
        changed_at timestamptz NOT NULL DEFAULT now()
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS _ploti.names (
        table_name text NOT NULL,
        column_name text NOT NULL,
        stored_name text NOT NULL,
        PRIMARY KEY (table_name, column_name)
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS _ploti.datasets (
        subscription_id text NOT NULL,
        dataset_id text NOT NULL,
        state text NOT NULL,
        version bigint,
        schema_version text,
        content_digest text,
        row_count bigint,
        table_name text,
        reason text,
        wanted_version bigint,
        last_event text NOT NULL,
        left_at timestamptz,
        changed_at timestamptz NOT NULL,
        PRIMARY KEY (subscription_id, dataset_id)
    )
    """,
)
_DATASETS = """
    SELECT dataset_id, state, version, schema_version, content_digest, row_count, table_name,
        reason, wanted_version, last_event, left_at
    FROM _ploti.datasets WHERE subscription_id = %s ORDER BY dataset_id
"""
_SAVE = """
    INSERT INTO _ploti.datasets VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, now())
    ON CONFLICT (subscription_id, dataset_id) DO UPDATE SET state = excluded.state,
        version = excluded.version, schema_version = excluded.schema_version,
        content_digest = excluded.content_digest, row_count = excluded.row_count,
        table_name = excluded.table_name, reason = excluded.reason,
        wanted_version = excluded.wanted_version, last_event = excluded.last_event,
        left_at = excluded.left_at, changed_at = excluded.changed_at
"""


def is_set_up(wire: Wire) -> bool:
    """Whether the tables are there; the one that is made last tells of all."""
    return wire.value("SELECT to_regclass('_ploti.datasets')") is not None


def set_up(wire: Wire) -> None:
    """Make the tables, one client at a time: IF NOT EXISTS alone is no guard against another."""
    wire.run("BEGIN")
    wire.run("SELECT pg_advisory_xact_lock(hashtextextended('ploti set-up', 0))")
    for statement in _SET_UP:
        wire.run(statement)
    wire.run("COMMIT")


def read_datasets(wire: Wire, subscription_id: str) -> dict[DatasetId, Held]:
    """Where each dataset of a subscription stands."""
    return {row[0]: _held(row) for row in wire.rows(_DATASETS, subscription_id)}


def write_dataset(wire: Wire, subscription_id: str, held: Held) -> None:
    """Write a dataset's line anew."""
    wire.run(
        _SAVE,
        subscription_id,
        held.dataset_id,
        held.state.value,
        held.version,
        held.schema_version,
        held.content_digest,
        held.row_count,
        held.table,
        held.reason,
        held.wanted,
        held.last_event,
        held.left_at,
    )


def _held(row: tuple[Any, ...]) -> Held:
    """What was saved; only `write_dataset` writes it, so each value is of its column's type."""
    dataset_id, state, version, schema_version, digest, rows, table, reason, wanted, event, left = (
        row
    )
    return Held(
        dataset_id=DatasetId(dataset_id),
        state=State(state),
        version=version,
        schema_version=schema_version,
        content_digest=digest,
        row_count=rows,
        table=table,
        reason=reason,
        wanted=wanted,
        last_event=EventId(event),
        left_at=left and Instant.of(left),
    )
