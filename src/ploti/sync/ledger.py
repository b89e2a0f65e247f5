"""What is held, in memory and in the destination alike, and the transactions that change both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType

from ploti.errors import SyncError
from ploti.model.ids import DatasetId, EventId
from ploti.sync.destination import Destination, DestinationLost, Session, Transaction
from ploti.sync.held import Held, Holdings
from ploti.sync.progress import Moment, Observer, Progress

Finish = Callable[[Held], EventId | None]
"""Told what is held next, gives the cursor to record with it, where that ends the work at hand."""


def not_yet(_held: Held) -> EventId | None:
    """The `Finish` of work that moves no cursor."""
    return None


class Ledger:
    """Reads what is held once, then keeps it; a transaction of another's in between is an error."""

    def __init__(self, destination: Destination, observe: Observer) -> None:
        self._destination = destination
        self._observe = observe
        self._datasets: dict[DatasetId, Held] = {}
        self._is_certain = False
        self.holdings = Holdings()
        self.settle()

    def settle(self) -> None:
        """Read what is held, if it was never read or a lost destination left it open."""
        if self._is_certain:
            return
        found = Holdings()
        if self._destination.exists:
            with self._destination.reading() as session:
                found = session.holdings()
        self._datasets.clear()
        self._datasets.update(found.datasets)
        self.holdings = replace(found, datasets=MappingProxyType(self._datasets))
        self._is_certain = True

    def held(self, dataset_id: DatasetId) -> Held:
        """Where a dataset stands; one never heard of waits for its first version."""
        return self._datasets.get(dataset_id) or Held(dataset_id=dataset_id)

    @contextmanager
    def session(self) -> Iterator[Session]:
        """The destination, open, and as this run left it."""
        try:
            with self._destination.session() as session:
                self._check_revision(session)
                self._observe(Progress(moment=Moment.OPENED, detail="the destination is open"))
                yield session
        except DestinationLost:
            self._is_certain = False
            raise
        cursor = self.holdings.cursor
        self._observe(Progress(moment=Moment.CLOSED, detail="free for readers", cursor=cursor))

    def _check_revision(self, session: Session) -> None:
        if session.revision() != self.holdings.revision:
            raise SyncError(
                f"{self._destination.name} was changed by something else during this run:"
                " start it again"
            )

    @contextmanager
    def change(self, session: Session, held: Held, finish: Finish) -> Iterator[Transaction]:
        """A transaction that ends with recording where a dataset stands, and the cursor if due."""
        cursor = finish(held)
        with session.transaction() as transaction:
            yield transaction
            self.tell(Moment.ROWS_WRITTEN, held, "written, not committed")
            transaction.save(held)
            if cursor is not None:
                transaction.move(cursor)
            self.tell(Moment.RECORDED, held, "recorded, not committed")
        self._take(held, cursor=cursor or self.holdings.cursor)
        self.tell(Moment.COMMITTED, held, _describe(held))

    def record(self, held: Held, finish: Finish = not_yet) -> None:
        """Record where a dataset stands, and nothing of its table."""
        with self.session() as session, self.change(session, held, finish):
            pass

    def move(self, cursor: EventId) -> None:
        """Record the cursor alone."""
        with self.session() as session:
            with session.transaction() as transaction:
                transaction.move(cursor)
            self._take(cursor=cursor)

    def choose(self, chosen: frozenset[DatasetId], changed: Sequence[Held]) -> None:
        """Record for which datasets the destination is, and where that leaves them."""
        with self.session() as session:
            with session.transaction() as transaction:
                transaction.choose(chosen)
                for held in changed:
                    transaction.save(held)
            self._take(*changed, cursor=self.holdings.cursor)
            self.holdings = replace(self.holdings, chosen=chosen)

    def tell(self, moment: Moment, held: Held, detail: str) -> None:
        """Tell the observer of a point that was passed with a dataset."""
        self._observe(
            Progress(
                moment=moment,
                detail=detail,
                dataset_id=held.dataset_id,
                version=held.version,
                cursor=self.holdings.cursor,
            )
        )

    def _take(self, *changed: Held, cursor: EventId | None) -> None:
        """Remember what a transaction has committed."""
        self._datasets.update({held.dataset_id: held for held in changed})
        revision = self.holdings.revision + 1
        self.holdings = replace(self.holdings, cursor=cursor, revision=revision)


def _describe(held: Held) -> str:
    version = f"version {held.version}" if held.version else "no version"
    return f"{version}, {held.state}" + (f" ({held.reason})" if held.reason else "")
