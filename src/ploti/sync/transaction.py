"""What transactions do alike in every database: whose a table is, and what becomes of its rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from ploti.model.digest import Buckets
from ploti.model.ids import DatasetId, SubscriptionId
from ploti.model.schema import AddedColumn, Schema
from ploti.sync.destination import TableError, Tables
from ploti.sync.held import State

Owner = tuple[str, str, str]
"""A subscription and a dataset whose table it is or was, and the dataset's state there."""


class Claims(ABC):
    """A transaction as far as it is about who has a table; the rest is its destination's."""

    def __init__(self, subscription_id: SubscriptionId) -> None:
        self._subscription_id = subscription_id

    def claim(self, table: str, dataset_id: DatasetId) -> None:
        """Take the table over, unless it is somebody else's."""
        owners = list(self._owners(table))
        for subscription_id, owner, state in owners:
            if (subscription_id, owner) == (self._subscription_id, dataset_id):
                return
            if owner != dataset_id or state != State.REMOVED:
                raise TableError(
                    f"table {table} is that of {owner} in {subscription_id}:"
                    f" sync with --dataset {dataset_id} --table-name NAME, or elsewhere"
                )
        if owners:
            self._release(table)
        elif (other := self._other(table)) is not None:
            raise TableError(
                f"a {other} that is not ploti's is in the way: rename it, or"
                f" sync with --dataset {dataset_id} --table-name NAME"
            )

    @abstractmethod
    def _owners(self, table: str) -> Iterable[Owner]:
        """All that it is recorded for."""

    @abstractmethod
    def _release(self, table: str) -> None:
        """Take it, which was left behind, from the dataset's earlier subscriptions."""

    @abstractmethod
    def _other(self, table: str) -> str | None:
        """What there is of this name, None where there is nothing."""


class DatabaseTables(Tables, Protocol):
    """The tables of a database."""

    def kind(self, table: str) -> str | None:
        """What kind of thing has this name, None where nothing has."""
        ...


class DatabaseTransaction(Claims):
    """A transaction of a database: what is about rows is its tables' to do."""

    def __init__(self, tables: DatabaseTables, subscription_id: SubscriptionId) -> None:
        super().__init__(subscription_id)
        self._tables = tables

    def load(self, table: str, schema: Schema, file: Path, *, exactly: bool = False) -> None:
        """Replace the table's rows by a snapshot's."""
        self._tables.load(table, schema, file, exactly=exactly)

    def apply(self, table: str, schema: Schema, file: Path) -> None:
        """Delete and insert what a changes file says."""
        self._tables.apply(table, schema, file)

    def add_columns(self, table: str, columns: Sequence[AddedColumn]) -> None:
        """Add columns, null in every row."""
        self._tables.add_columns(table, columns)

    def drop(self, table: str) -> None:
        """Drop the table if it is there."""
        self._tables.drop(table)

    def count(self, table: str) -> int:
        """The number of its rows."""
        return self._tables.count(table)

    def record_ids(self, table: str, buckets: Collection[int]) -> list[str]:
        """The ids of its rows in these buckets."""
        return self._tables.record_ids(table, buckets)

    def buckets(self, table: str, schema: Schema) -> Buckets:
        """The content digest of the table as it stands."""
        return self._tables.buckets(table, schema)

    def _other(self, table: str) -> str | None:
        return None if self._tables.kind(table) is None else f"table or view {table}"
