"""An open folder: its transactions, which become visible by one rename of what it records."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from ploti.model.digest import Buckets
from ploti.model.ids import DatasetId, EventId, SubscriptionId
from ploti.model.schema import AddedColumn, Schema
from ploti.sync.destination import Transaction
from ploti.sync.destinations.parquet.recorded import (
    OWN,
    Line,
    Place,
    Recorded,
    settle_names,
    write_state,
)
from ploti.sync.destinations.parquet.tables import Tables
from ploti.sync.held import Held, Holdings
from ploti.sync.names import Limits, fit
from ploti.sync.transaction import Claims, Owner

ENDING = ".parquet"
_NAMES = Limits(longest=240, forbidden="/\0", prefixes=(".", "_ploti"))


class Committing(Protocol):
    """Keeps readers out while the files are exchanged."""

    def __call__(self) -> AbstractContextManager[None]:
        """For as long as the block lasts."""
        ...


class ParquetSession:
    """The folder while there is something to do with it, for one subscription."""

    def __init__(
        self,
        folder: Path,
        recorded: Recorded,
        tables: Tables,
        subscription_id: SubscriptionId,
        committing: Committing,
    ) -> None:
        self._folder = folder
        self._recorded = recorded
        self._tables = tables
        self._subscription_id = subscription_id
        self._committing = committing

    def holdings(self) -> Holdings:
        """What is held of the subscription."""
        place = self._recorded.subscriptions.get(self._subscription_id, Place())
        return Holdings(
            cursor=place.cursor,
            chosen=frozenset(place.chosen),
            revision=place.revision,
            datasets=self._recorded.lines_of(self._subscription_id),
        )

    def revision(self) -> int:
        """The number of transactions that made what is held."""
        return self._recorded.subscriptions.get(self._subscription_id, Place()).revision

    def table_name(self, wanted: str) -> str:
        """The name that a file can have."""
        return fit(wanted, _NAMES)

    def names(self, table: str) -> Mapping[str, str]:
        """None: a file holds any name that a dataset's column has."""
        del table
        return {}

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """All that is done in the block, or nothing."""
        transaction = ParquetTransaction(
            self._folder, self._recorded, self._tables, self._subscription_id
        )
        with ExitStack() as unless_committed:
            unless_committed.callback(transaction.tidy)
            yield transaction
            if transaction.has_changed:
                with self._committing():
                    # From here on the state that is on the disk says which files are of use, and
                    # the next client that locks the folder goes by it (finish_moves).
                    unless_committed.pop_all()
                    self._commit(transaction)

    def _commit(self, transaction: ParquetTransaction) -> None:
        transaction.count_up()
        write_state(self._folder, transaction.recorded)
        self._recorded = transaction.recorded
        finish_moves(self._folder, self._recorded)
        transaction.tidy()


def finish_moves(folder: Path, recorded: Recorded) -> None:
    """Bring new files to where readers look for them; what was done already stays so."""
    for table, name in recorded.moves.items():
        with suppress(FileNotFoundError):
            (folder / OWN / name).replace(folder / f"{table}{ENDING}")
    for table in recorded.dropped:
        (folder / f"{table}{ENDING}").unlink(missing_ok=True)
    settle_names(folder)


class ParquetTransaction(Claims):
    """One transaction of a session: new files are made beside, and named in the end."""

    def __init__(
        self,
        folder: Path,
        recorded: Recorded,
        tables: Tables,
        subscription_id: SubscriptionId,
    ) -> None:
        super().__init__(subscription_id)
        self._folder = folder
        self._tables = tables
        self._before = recorded
        self._made: list[str] = []
        self.has_changed = False
        self._is_held_anew = False
        self.recorded = Recorded(
            subscriptions={
                each: Place(cursor=place.cursor, chosen=place.chosen, revision=place.revision)
                for each, place in recorded.subscriptions.items()
            },
            datasets=list(recorded.datasets),
            commits=recorded.commits + 1,
        )

    def _owners(self, table: str) -> list[Owner]:
        return [
            (line.subscription_id, line.dataset_id, line.state)
            for line in self.recorded.datasets
            if line.table == table
        ]

    def _release(self, table: str) -> None:
        for line in self.recorded.datasets:
            if line.table == table:
                held = line.held()
                self.recorded.put(Line.of(line.subscription_id, replace(held, table=None)))

    def _other(self, table: str) -> str | None:
        return f"file {table}{ENDING}" if self._file(table).exists() else None

    def load(self, table: str, schema: Schema, file: Path, *, exactly: bool = False) -> None:
        """Make a snapshot the table's file, which has the schema's columns and no others."""
        del exactly
        new = self._new(table)
        self._tables.take(schema, file, new)
        self.recorded.moves[table] = new.name

    def apply(self, table: str, schema: Schema, file: Path) -> None:
        """Make a new file of the table's and what a changes file says."""
        new = self._new(table)
        self._tables.fold(schema, self._file(table), file, new)
        self.recorded.moves[table] = new.name

    def add_columns(self, table: str, columns: Sequence[AddedColumn]) -> None:
        """Nothing yet: a file gets its new columns with the version that brings them (S-16)."""

    def drop(self, table: str) -> None:
        """Let the file go, if it is there."""
        self.has_changed = True
        self.recorded.dropped.append(table)

    def count(self, table: str) -> int:
        """The number of its rows."""
        return self._tables.count(self._file(table))

    def record_ids(self, table: str, buckets: Collection[int]) -> list[str]:
        """The ids of its rows in these buckets."""
        return self._tables.record_ids(self._file(table), buckets)

    def buckets(self, table: str, schema: Schema) -> Buckets:
        """The content digest of the file as it stands."""
        return self._tables.buckets(self._file(table), schema)

    def save(self, held: Held) -> None:
        """Write the dataset's line anew."""
        self.has_changed = self._is_held_anew = True
        self.recorded.put(Line.of(self._subscription_id, held))

    def move(self, cursor: EventId) -> None:
        """Write the cursor."""
        self._place().cursor = cursor

    def choose(self, chosen: frozenset[DatasetId]) -> None:
        """Write which datasets this destination is for."""
        self._place().chosen = sorted(chosen)

    def count_up(self) -> None:
        """Begin a new revision, if anything of what is held has changed."""
        if self._is_held_anew:
            self._place().revision += 1

    def tidy(self) -> None:
        """Remove the files that it made, but for those that have become a table's."""
        for name in self._made:
            (self._folder / OWN / name).unlink(missing_ok=True)

    def _place(self) -> Place:
        self.has_changed = self._is_held_anew = True
        return self.recorded.subscriptions.setdefault(self._subscription_id, Place())

    def _new(self, table: str) -> Path:
        """The path of a file that is to become the table's; no name is ever used again."""
        self.has_changed = True
        name = f"{table}.{self.recorded.commits}.{len(self._made)}.new"
        self._made.append(name)
        return self._folder / OWN / name

    def _file(self, table: str) -> Path:
        """The file that has the table's content now, in this transaction."""
        for name in (self.recorded.moves.get(table), self._before.moves.get(table)):
            if name is not None and (self._folder / OWN / name).exists():
                return self._folder / OWN / name
        return self._folder / f"{table}{ENDING}"
