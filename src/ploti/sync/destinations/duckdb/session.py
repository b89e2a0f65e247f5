"""An open DuckDB file: its transactions, and what is held, in the schema `_ploti`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb

from ploti.errors import SyncError
from ploti.model.ids import DatasetId, EventId, SubscriptionId
from ploti.model.schema import Schema
from ploti.model.wire import Instant
from ploti.sync.destination import Transaction
from ploti.sync.destinations.duckdb.tables import ALIAS, Tables, said_of_the_table
from ploti.sync.engine import little_memory
from ploti.sync.held import Held, Holdings, State
from ploti.sync.transaction import DatabaseTransaction, Owner

_SUBSCRIPTIONS = f"{ALIAS}._ploti.subscriptions"
_DATASETS = f"{ALIAS}._ploti.datasets"

_SET_UP = f"""
    BEGIN;
    CREATE SCHEMA IF NOT EXISTS {ALIAS}._ploti;
    CREATE TABLE IF NOT EXISTS {_SUBSCRIPTIONS} (
        subscription_id VARCHAR NOT NULL,
        cursor VARCHAR,
        chosen VARCHAR[] NOT NULL,
        revision BIGINT NOT NULL,
        changed_at TIMESTAMPTZ NOT NULL
    );
    CREATE TABLE IF NOT EXISTS {_DATASETS} (
        subscription_id VARCHAR NOT NULL,
        dataset_id VARCHAR NOT NULL,
        table_name VARCHAR,
        version BIGINT,
        schema_version VARCHAR,
        content_digest VARCHAR,
        row_count BIGINT,
        state VARCHAR NOT NULL,
        reason VARCHAR,
        wanted_version BIGINT,
        last_event VARCHAR NOT NULL,
        left_at TIMESTAMPTZ,
        changed_at TIMESTAMPTZ NOT NULL
    );
    COMMIT;
"""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DuckDBSession:
    """The file while it is open, for one subscription."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, subscription_id: SubscriptionId
    ) -> None:
        self._connection = connection
        self._subscription_id = subscription_id

    def set_up(self) -> None:
        """Make the tables of what is held, where they are not there."""
        if not self._is_set_up():
            self._connection.execute(_SET_UP)

    def _is_set_up(self) -> bool:
        found = self._connection.execute(
            "SELECT count(*) FROM duckdb_tables() WHERE database_name = ? AND schema_name = ?"
            " AND table_name IN ('subscriptions', 'datasets')",
            [ALIAS, "_ploti"],
        ).fetchone()
        return found == (2,)

    def holdings(self) -> Holdings:
        """What is held; nothing where the file was never synced."""
        if not self._is_set_up():
            return Holdings()
        place = self._connection.execute(
            f"SELECT cursor, chosen, revision FROM {_SUBSCRIPTIONS} WHERE subscription_id = ?",
            [self._subscription_id],
        ).fetchone()
        cursor, chosen, revision = place or (None, [], 0)
        return Holdings(
            cursor=cursor,
            chosen=frozenset(chosen),
            revision=revision,
            datasets=self._datasets(),
        )

    def revision(self) -> int:
        """The number of transactions that made what is held."""
        found = self._connection.execute(
            f"SELECT revision FROM {_SUBSCRIPTIONS} WHERE subscription_id = ?",
            [self._subscription_id],
        ).fetchone()
        return int(found[0]) if found else 0

    def table_name(self, wanted: str) -> str:
        """The name itself: DuckDB holds any."""
        return wanted

    def names(self, table: str) -> Mapping[str, str]:
        """None: DuckDB holds any name that a dataset's column has."""
        del table
        return {}

    def _datasets(self) -> dict[DatasetId, Held]:
        rows = self._connection.execute(
            "SELECT dataset_id, state, version, schema_version, content_digest, row_count,"
            f" table_name, reason, wanted_version, last_event, epoch_us(left_at) FROM {_DATASETS}"
            " WHERE subscription_id = ? ORDER BY dataset_id",
            [self._subscription_id],
        ).fetchall()
        return {row[0]: _held(row) for row in rows}

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """All that is done in the block, or nothing."""
        self._connection.execute("BEGIN")
        transaction = DuckDBTransaction(self._connection, self._subscription_id)
        try:
            yield transaction
            transaction.count_up()
        except BaseException:
            # The error may have ended the transaction already; it is the one to tell.
            with suppress(duckdb.Error):
                self._connection.execute("ROLLBACK")
            raise
        with said_of_the_table():
            self._connection.execute("COMMIT")


class DuckDBTransaction(DatabaseTransaction):
    """One transaction of a session."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, subscription_id: SubscriptionId
    ) -> None:
        super().__init__(Tables(connection), subscription_id)
        self._connection = connection
        self._released: list[str] = []
        self._has_changed = False

    def load(self, table: str, schema: Schema, file: Path, *, exactly: bool = False) -> None:
        """Replace the table's rows by a snapshot's, in little memory where its rows allow that.

        Rows may be too wide for it. Then the transaction, which a load begins, begins again.
        """
        try:
            with little_memory(self._connection):
                super().load(table, schema, file, exactly=exactly)
        except SyncError as error:
            if self._has_changed or not isinstance(error.__cause__, duckdb.OutOfMemoryException):
                raise
            self._connection.execute("ROLLBACK; BEGIN")
            for released in self._released:
                self._release(released)
            super().load(table, schema, file, exactly=exactly)

    def _owners(self, table: str) -> list[Owner]:
        return self._connection.execute(
            f"SELECT subscription_id, dataset_id, state FROM {_DATASETS}"
            " WHERE lower(table_name) = lower(?)",
            [table],
        ).fetchall()

    def _release(self, table: str) -> None:
        self._connection.execute(
            f"UPDATE {_DATASETS} SET table_name = NULL WHERE lower(table_name) = lower(?)", [table]
        )
        self._released = [table]

    def save(self, held: Held) -> None:
        """Write the dataset's line anew."""
        self._has_changed = True
        self._connection.execute(
            f"DELETE FROM {_DATASETS} WHERE subscription_id = ? AND dataset_id = ?",
            [self._subscription_id, held.dataset_id],
        )
        self._connection.execute(
            f"INSERT INTO {_DATASETS} VALUES"
            " (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?::TIMESTAMPTZ, now())",
            [
                self._subscription_id,
                held.dataset_id,
                held.table,
                held.version,
                held.schema_version,
                held.content_digest,
                held.row_count,
                held.state.value,
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
        self._set("chosen = ?", sorted(chosen))

    def count_up(self) -> None:
        """Begin a new revision, if anything of what is held has changed."""
        if self._has_changed:
            self._set("revision = revision + 1, changed_at = now()")

    def _set(self, what: str, *values: object) -> None:
        self._has_changed = True
        self._connection.execute(
            f"INSERT INTO {_SUBSCRIPTIONS} SELECT ?, NULL, [], 0, now() WHERE NOT EXISTS"
            f" (SELECT 1 FROM {_SUBSCRIPTIONS} WHERE subscription_id = ?)",
            [self._subscription_id, self._subscription_id],
        )
        self._connection.execute(
            f"UPDATE {_SUBSCRIPTIONS} SET {what} WHERE subscription_id = ?",
            [*values, self._subscription_id],
        )


def _held(row: tuple[object, ...]) -> Held:
    dataset_id, state, version, schema_version, digest, rows, table, reason, wanted, event, left = (
        row
    )
    return Held(
        dataset_id=DatasetId(str(dataset_id)),
        state=State(str(state)),
        version=_number(version),
        schema_version=_text(schema_version),
        content_digest=_text(digest),
        row_count=_number(rows),
        table=_text(table),
        reason=_text(reason),
        wanted=_number(wanted),
        last_event=EventId(str(event)),
        left_at=_instant(_number(left)),
    )


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _instant(microseconds: int | None) -> Instant | None:
    if microseconds is None:
        return None
    return Instant.of(_EPOCH + timedelta(microseconds=microseconds))
