"""An open PostgreSQL database: its transactions, and what is held, in the schema `_ploti`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ploti.model.ids import DatasetId, EventId, SubscriptionId
from ploti.sync.destination import Transaction
from ploti.sync.destinations.postgres import recorded
from ploti.sync.destinations.postgres.faults import said_of_the_table
from ploti.sync.destinations.postgres.names import TABLES
from ploti.sync.destinations.postgres.tables import Tables
from ploti.sync.destinations.postgres.wire import Wire
from ploti.sync.held import Held, Holdings
from ploti.sync.names import fit
from ploti.sync.transaction import DatabaseTransaction, Owner

_PLACE = "SELECT cursor, chosen, revision FROM _ploti.subscriptions WHERE subscription_id = %s"
_OWNERS = "SELECT subscription_id, dataset_id, state FROM _ploti.datasets WHERE table_name = %s"


class PostgresSession:
    """The database while there is something to do with it, for one subscription."""

    def __init__(self, tables: Tables, subscription_id: SubscriptionId) -> None:
        self._wire = tables.wire
        self._tables = tables
        self._subscription_id = subscription_id

    def set_up(self) -> None:
        """Make the tables of what is held, where they are not there."""
        if not recorded.is_set_up(self._wire):
            recorded.set_up(self._wire)

    def holdings(self) -> Holdings:
        """What is held of the subscription."""
        found = self._wire.rows(_PLACE, self._subscription_id)
        cursor, chosen, revision = found[0] if found else (None, [], 0)
        return Holdings(
            cursor=cursor,
            chosen=frozenset(chosen),
            revision=revision,
            datasets=recorded.read_datasets(self._wire, self._subscription_id),
        )

    def revision(self) -> int:
        """The number of transactions that made what is held."""
        found = self._wire.rows(_PLACE, self._subscription_id)
        return int(found[0][2]) if found else 0

    def table_name(self, wanted: str) -> str:
        """The name that a table can have."""
        return fit(wanted, TABLES)

    def names(self, table: str) -> Mapping[str, str]:
        """The columns that the table has by another name."""
        return self._tables.names.of(table)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """All that is done in the block, or nothing; in a reader's, one moment of the database."""
        if self._wire.is_in_transaction():
            yield PostgresTransaction(self._wire, self._tables, self._subscription_id)
            return
        self._wire.run("BEGIN")
        transaction = PostgresTransaction(self._wire, self._tables, self._subscription_id)
        try:
            yield transaction
            transaction.count_up()
            self._tables.end()
            with said_of_the_table():
                self._wire.run("COMMIT")
        except BaseException:
            self._tables.forget()
            if self._wire.is_in_transaction():
                self._wire.run("ROLLBACK")
            raise


class PostgresTransaction(DatabaseTransaction):
    """One transaction of a session."""

    def __init__(self, wire: Wire, tables: Tables, subscription_id: SubscriptionId) -> None:
        super().__init__(tables, subscription_id)
        self._wire = wire
        self._has_changed = False

    def _owners(self, table: str) -> list[Owner]:
        # Another subscription's client may claim the same name now: it waits for this commit.
        self._wire.run("SELECT pg_advisory_xact_lock(hashtextextended(%s, 1))", table)
        return self._wire.rows(_OWNERS, table)

    def _release(self, table: str) -> None:
        self._wire.run("UPDATE _ploti.datasets SET table_name = NULL WHERE table_name = %s", table)

    def save(self, held: Held) -> None:
        """Write the dataset's line anew."""
        self._has_changed = True
        recorded.write_dataset(self._wire, self._subscription_id, held)

    def move(self, cursor: EventId) -> None:
        """Write the cursor."""
        self._set("cursor = %s", cursor)

    def choose(self, chosen: frozenset[DatasetId]) -> None:
        """Write which datasets this destination is for."""
        self._set("chosen = %s", sorted(chosen))

    def count_up(self) -> None:
        """Begin a new revision, if anything of what is held has changed."""
        if self._has_changed:
            self._set("revision = revision + 1, changed_at = now()")

    def _set(self, what: str, *given: object) -> None:
        self._has_changed = True
        self._wire.run(
            "INSERT INTO _ploti.subscriptions (subscription_id) VALUES (%s) ON CONFLICT DO NOTHING",
            self._subscription_id,
        )
        self._wire.run(
            f"UPDATE _ploti.subscriptions SET {what} WHERE subscription_id = %s",
            *given,
            self._subscription_id,
        )
