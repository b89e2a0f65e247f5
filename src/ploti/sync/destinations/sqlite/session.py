"""An open SQLite file: its transactions, and what is held, in tables with the prefix `_ploti_`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ploti.model.ids import DatasetId, EventId, SubscriptionId
from ploti.model.wire import Instant
from ploti.sync.destination import Transaction
from ploti.sync.destinations.sqlite.faults import said_of_the_table
from ploti.sync.destinations.sqlite.layout import Layout
from ploti.sync.destinations.sqlite.tables import Tables
from ploti.sync.held import Held, Holdings, State
from ploti.sync.names import Limits, fit
from ploti.sync.transaction import DatabaseTransaction, Owner

_SET_UP = (
    """
    CREATE TABLE IF NOT EXISTS _ploti_subscriptions (
        subscription_id TEXT NOT NULL PRIMARY KEY,
        cursor TEXT,
        chosen TEXT NOT NULL DEFAULT '[]',
        revision INTEGER NOT NULL DEFAULT 0,
        changed_at TEXT
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS _ploti_datasets (
        subscription_id TEXT NOT NULL,
        dataset_id TEXT NOT NULL,
        state TEXT NOT NULL,
        version INTEGER,
        schema_version TEXT,
        content_digest TEXT,
        row_count INTEGER,
        table_name TEXT,
        reason TEXT,
        wanted_version INTEGER,
        last_event TEXT NOT NULL,
        left_at TEXT,
        changed_at TEXT NOT NULL,
        PRIMARY KEY (subscription_id, dataset_id)
    )
    """,
)
_NOW = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"


class SQLiteSession:
    """The file while it is open, for one subscription."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        tables: Tables,
        layout: Layout,
        subscription_id: SubscriptionId,
    ) -> None:
        self._connection = connection
        self._tables = tables
        self._layout = layout
        self._subscription_id = subscription_id

    def set_up(self) -> None:
        """Make the tables of what is held, where they are not there."""
        if self._is_set_up():
            return
        with self._begun("BEGIN IMMEDIATE"):
            self._layout.set_up(self._connection)
            for statement in _SET_UP:
                self._connection.execute(statement)

    def _is_set_up(self) -> bool:
        found = self._connection.execute(
            "SELECT count(*) FROM sqlite_schema"
            " WHERE name IN ('_ploti_subscriptions', '_ploti_datasets')"
        ).fetchone()
        return bool(found == (2,))

    def holdings(self) -> Holdings:
        """What is held; nothing where the file was never synced."""
        if not self._is_set_up():
            return Holdings()
        place = self._connection.execute(
            "SELECT cursor, chosen, revision FROM _ploti_subscriptions WHERE subscription_id = ?",
            [self._subscription_id],
        ).fetchone()
        cursor, chosen, revision = place or (None, "[]", 0)
        return Holdings(
            cursor=cursor,
            chosen=frozenset(json.loads(chosen)),
            revision=revision,
            datasets=self._datasets(),
        )

    def revision(self) -> int:
        """The number of transactions that made what is held."""
        found = self._connection.execute(
            "SELECT revision FROM _ploti_subscriptions WHERE subscription_id = ?",
            [self._subscription_id],
        ).fetchone()
        return int(found[0]) if found else 0

    def table_name(self, wanted: str) -> str:
        """The name that a table can have."""
        return fit(wanted, Limits(prefixes=self._layout.own_names))

    def names(self, table: str) -> Mapping[str, str]:
        """None: SQLite holds any name that a dataset's column has."""
        del table
        return {}

    def _datasets(self) -> dict[DatasetId, Held]:
        rows = self._connection.execute(
            "SELECT dataset_id, state, version, schema_version, content_digest, row_count,"
            " table_name, reason, wanted_version, last_event, left_at FROM _ploti_datasets"
            " WHERE subscription_id = ? ORDER BY dataset_id",
            [self._subscription_id],
        ).fetchall()
        return {row[0]: _held(row) for row in rows}

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """All that is done in the block, or nothing; a reader's sees one moment of the file."""
        is_reading = self._connection.execute("PRAGMA query_only").fetchone() == (1,)
        transaction = SQLiteTransaction(self._connection, self._tables, self._subscription_id)
        with self._begun("BEGIN" if is_reading else "BEGIN IMMEDIATE"):
            yield transaction
            transaction.count_up()

    @contextmanager
    def _begun(self, begin: str) -> Iterator[None]:
        self._connection.execute(begin)
        try:
            yield
            with said_of_the_table():
                self._connection.execute("COMMIT")
        except BaseException:
            self._tables.forget()
            # A full disk may have ended the transaction already.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise


class SQLiteTransaction(DatabaseTransaction):
    """One transaction of a session."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        tables: Tables,
        subscription_id: SubscriptionId,
    ) -> None:
        super().__init__(tables, subscription_id)
        self._connection = connection
        self._has_changed = False

    def _owners(self, table: str) -> list[Owner]:
        return self._connection.execute(
            "SELECT subscription_id, dataset_id, state FROM _ploti_datasets"
            " WHERE lower(table_name) = lower(?)",
            [table],
        ).fetchall()

    def _release(self, table: str) -> None:
        self._connection.execute(
            "UPDATE _ploti_datasets SET table_name = NULL WHERE lower(table_name) = lower(?)",
            [table],
        )

    def save(self, held: Held) -> None:
        """Write the dataset's line anew."""
        self._has_changed = True
        self._connection.execute(
            "INSERT OR REPLACE INTO _ploti_datasets (subscription_id, dataset_id, state, version,"
            " schema_version, content_digest, row_count, table_name, reason, wanted_version,"
            f" last_event, left_at, changed_at) VALUES ({'?, ' * 12}{_NOW})",
            [
                self._subscription_id,
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
                held.left_at and str(held.left_at),
            ],
        )

    def move(self, cursor: EventId) -> None:
        """Write the cursor."""
        self._set("cursor = ?", cursor)

    def choose(self, chosen: frozenset[DatasetId]) -> None:
        """Write which datasets this destination is for."""
        self._set("chosen = ?", json.dumps(sorted(chosen)))

    def count_up(self) -> None:
        """Begin a new revision, if anything of what is held has changed."""
        if self._has_changed:
            self._set(f"revision = revision + 1, changed_at = {_NOW}")

    def _set(self, what: str, *given: object) -> None:
        self._has_changed = True
        self._connection.execute(
            "INSERT OR IGNORE INTO _ploti_subscriptions (subscription_id) VALUES (?)",
            [self._subscription_id],
        )
        self._connection.execute(
            f"UPDATE _ploti_subscriptions SET {what} WHERE subscription_id = ?",
            [*given, self._subscription_id],
        )


def _held(row: tuple[Any, ...]) -> Held:
    """What was saved; only `save` writes it, so each value is of its column's type."""
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
        left_at=Instant.parse(left) if left else None,
    )
