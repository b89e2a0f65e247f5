"""The port to a destination: what a database must be able to do to be kept in step.

Everything that changes is one transaction, so that data, the version held and the cursor are
always those of one moment.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from ploti.errors import DestinationBusy, SyncError
from ploti.model.digest import Buckets
from ploti.model.ids import DatasetId, EventId
from ploti.model.schema import AddedColumn, Schema
from ploti.sync.costs import Weights
from ploti.sync.held import Held, Holdings

LOCK_TIMEOUT = 60.0
"""Seconds to wait for a destination that is in use, unless another number is given."""

LOOK_TIMEOUT = 5.0
"""Seconds that commands which only read wait for it."""


class TableError(SyncError):
    """One dataset's table cannot take what it is given; other tables are not concerned."""


class DestinationLost(DestinationBusy):
    """It cannot be reached, or was lost on the way; its last commit may have come through."""


class Tables(Protocol):
    """The tables of records in a transaction, each named without its schema.

    Operations raise TableError where the fault is the table's or the file's, and SyncError where it
    is the whole destination's (a full disk).
    """

    def load(self, table: str, schema: Schema, file: Path, *, exactly: bool = False) -> None:
        """Replace the table's rows by a snapshot's; where its columns are others, make it anew.

        Further columns are its owner's, and stay, but for `exactly`: they may be the dataset's of
        an earlier schema then.
        """
        ...

    def apply(self, table: str, schema: Schema, file: Path) -> None:
        """Delete and insert what a changes file says; doing it again changes nothing."""
        ...

    def add_columns(self, table: str, columns: Sequence[AddedColumn]) -> None:
        """Add columns, null in every row; one that is there already is emptied."""
        ...

    def drop(self, table: str) -> None:
        """Drop the table if it is there; what depends on it is never dropped with it."""
        ...

    def count(self, table: str) -> int:
        """The number of its rows."""
        ...

    def record_ids(self, table: str, buckets: Collection[int]) -> list[str]:
        """The ids of its rows that lie in these buckets of the digest, in any order."""
        ...

    def buckets(self, table: str, schema: Schema) -> Buckets:
        """The content digest of the table as it stands, by bucket."""
        ...


class Transaction(Tables, Protocol):
    """Changes that become visible together, at the end, or not at all."""

    def claim(self, table: str, dataset_id: DatasetId) -> None:
        """Make sure that a table of this name is the dataset's own, or that there is none."""
        ...

    def save(self, held: Held) -> None:
        """Record where a dataset stands."""
        ...

    def move(self, cursor: EventId) -> None:
        """Record the place in the log."""
        ...

    def choose(self, chosen: frozenset[DatasetId]) -> None:
        """Record which datasets this destination is for."""
        ...


class Session(Protocol):
    """The destination while it is open."""

    def holdings(self) -> Holdings:
        """What is held of the subscription."""
        ...

    def revision(self) -> int:
        """The revision of what is held; every transaction that changes it adds one."""
        ...

    def table_name(self, wanted: str) -> str:
        """The name itself, or the one to have instead where the destination cannot hold it."""
        ...

    def names(self, table: str) -> Mapping[str, str]:
        """The columns that the table has by another name than the dataset's, and that name."""
        ...

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Begin one; it is committed at the end of the block, or rolled back by an error."""
        ...


class Destination(Protocol):
    """A database that is kept in step with one subscription."""

    @property
    def name(self) -> str:
        """How to call it in messages."""
        ...

    @property
    def downloads(self) -> Path:
        """The folder for files on their way, on the destination's own disk where it has one."""
        ...

    @property
    def weights(self) -> Weights:
        """What changes cost it against a load, as measured."""
        ...

    @property
    def exists(self) -> bool:
        """Whether there is anything to open."""
        ...

    def lock(self) -> AbstractContextManager[None]:
        """Keep other clients out; raises DestinationBusy where one is in."""
        ...

    def session(self) -> AbstractContextManager[Session]:
        """Open it for writing, making it if need be; raises DestinationBusy if it stays in use."""
        ...

    def reading(self) -> AbstractContextManager[Session]:
        """Open what is there, for reading alone; raises SyncError where nothing is."""
        ...
