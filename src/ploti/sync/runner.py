"""A run: the manifest first, then the log page by page; once, or for as long as it is let."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ploti.errors import (
    ConfigError,
    DestinationBusy,
    Expired,
    InternalError,
    InvalidInput,
    PlotiError,
    RateLimited,
    SyncError,
    TransportError,
    Unavailable,
)
from ploti.model.event import Event
from ploti.model.ids import DatasetId, EventId
from ploti.model.page import EventPage
from ploti.sync.destination import Destination
from ploti.sync.downloads import Downloads
from ploti.sync.feed import Feed
from ploti.sync.held import Held, State
from ploti.sync.ledger import Ledger, not_yet
from ploti.sync.plan import choose, group_events, is_idle, plan_dataset, plan_manifest
from ploti.sync.progress import Moment, Observer, Progress, ignore
from ploti.sync.result import Result, list_datasets
from ploti.sync.work import Options, Work

WAIT = 30
"""Seconds that the server may hold a request until something is new."""

_PASSING = (TransportError, Unavailable, RateLimited, InternalError, DestinationBusy)
"""What a run that follows waits out: a fault of the server's may be gone the next time."""

_STUCK = (State.NEEDS_LOAD, State.LEAVING)


class Pauses:
    """Pauses that double from the first to the longest, until something succeeds."""

    def __init__(self, first: float, longest: float) -> None:
        self._first, self._longest = first, longest
        self._next = first

    def take(self) -> float:
        """The pause to make now, in seconds."""
        pause, self._next = self._next, min(self._next * 2, self._longest)
        return pause

    def reset(self) -> None:
        """Begin with the first again."""
        self._next = self._first


class Run:
    """A destination kept in step with one subscription; `open_run` makes it."""

    def __init__(
        self,
        *,
        feed: Feed,
        destination: str,
        ledger: Ledger,
        work: Work,
        chosen: frozenset[DatasetId],
        observe: Observer,
        sleep: Callable[[float], None],
        clock: Callable[[], float],
    ) -> None:
        self._feed = feed
        self._destination = destination
        self._ledger = ledger
        self._work = work
        self._chosen = chosen
        self._observe = observe
        self._sleep = sleep
        self._clock = clock
        self._from_manifest = False
        self._retries = Pauses(60.0, 3600.0)
        self._retry_at = clock()

    def catch_up(self) -> Result:
        """Read the log to its end, then try each dataset that is stuck once.

        Raises:
            PlotiError: The run cannot go on. What is committed until then stays.
        """
        while not self._turn(wait=0):
            pass
        self._recover()
        return self.result()

    def follow(self) -> None:
        """Go on for ever, waiting out a server that is lost or fails and a destination in use."""
        pauses = Pauses(1.0, 60.0)
        while True:
            try:
                if self._turn(wait=WAIT) and self._clock() >= self._retry_at:
                    self._recover()
                pauses.reset()
            except _PASSING as error:
                pause = pauses.take()
                self._say(Moment.RETRYING, f"{error}; trying again in {pause:.0f} s")
                self._sleep(pause)

    def result(self) -> Result:
        """Where the destination stands now."""
        return Result(
            destination=self._destination,
            cursor=self._ledger.holdings.cursor,
            loads=self._work.loads,
            applies=self._work.applies,
            datasets=list_datasets(self._ledger.holdings),
            differing=sorted(self._work.differing),
        )

    def _turn(self, *, wait: int) -> bool:
        """Work one page of the log; whether that was its end."""
        self._ledger.settle()
        if self._chosen != self._ledger.holdings.chosen:
            self._choose()
        cursor = self._ledger.holdings.cursor
        if cursor is None:
            cursor = self._load_manifest()
        page = self._read_page(cursor, wait)
        if page is None:
            return False
        self._from_manifest = False
        self._say(Moment.PAGE_READ, f"{len(page.events)} events after {cursor}")
        self._work_page(page)
        return page.next_cursor == cursor

    def _choose(self) -> None:
        """Take up another choice of datasets; what is newly chosen is loaded in its time."""
        holdings = self._ledger.holdings
        delivered = {each.dataset_id for each in self._feed.manifest().datasets}
        unknown = sorted(self._chosen - delivered - holdings.datasets.keys())
        if unknown:
            raise ConfigError(
                f"The subscription does not deliver {', '.join(unknown)}: "
                "`ploti feeds subscriptions manifest` shows what it delivers"
            )
        later = () if holdings.cursor is None else delivered
        self._ledger.choose(self._chosen, choose(holdings, self._chosen, delivered=later))

    def _read_page(self, cursor: EventId, wait: int) -> EventPage | None:
        """The events after the cursor; None where the manifest had to be read instead."""
        try:
            return self._feed.events(cursor, wait=wait)
        except Expired as error:
            self._reload(error, f"the cursor {cursor} is past retention")
        except InvalidInput as error:
            self._reload(error, f"the server does not know the cursor {cursor} that it gave")
        return None

    def _reload(self, error: PlotiError, why: str) -> None:
        """Begin again from the manifest, once (R-121); a restored server is met so, too."""
        if self._from_manifest:
            raise SyncError(
                f"The log refuses the cursor that the manifest has just given: {error}"
            ) from error
        self._say(Moment.RELOADING, f"{why}: going on from the manifest")
        self._load_manifest()

    def _load_manifest(self) -> EventId:
        manifest = self._feed.manifest()
        self._from_manifest = True
        self._work.forget()
        self._say(Moment.MANIFEST_READ, f"{len(manifest.datasets)} datasets")
        steps = plan_manifest(self._ledger.holdings, manifest)
        for step in steps[:-1]:
            self._work.do([step], not_yet)
        for step in steps[-1:]:
            self._work.do([step], lambda _held: manifest.event_cursor)
        if self._ledger.holdings.cursor != manifest.event_cursor:
            self._ledger.move(manifest.event_cursor)
        return manifest.event_cursor

    def _work_page(self, page: EventPage) -> None:
        """Work a page dataset by dataset; the cursor moves with the last of the work (R-133)."""
        groups = group_events(page.events)
        busy = [each for each, events in groups.items() if not self._is_idle(each, events)]
        for dataset_id in busy:
            cursor = page.next_cursor if dataset_id == busy[-1] else None
            self._work_dataset(dataset_id, groups[dataset_id], cursor)
        if self._ledger.holdings.cursor != page.next_cursor:
            self._ledger.move(page.next_cursor)
        if any(self._ledger.held(each).state in _STUCK for each in groups):
            self._retry_at = self._clock()

    def _work_dataset(
        self, dataset_id: DatasetId, events: list[Event], cursor: EventId | None
    ) -> None:
        takes = self._ledger.holdings.takes(dataset_id)

        def finish(held: Held) -> EventId | None:
            return cursor if is_idle(held, events, takes=takes) else None

        while not self._is_idle(dataset_id, events):
            steps = plan_dataset(self._ledger.held(dataset_id), events, takes=takes)
            self._work.do(steps, finish)

    def _is_idle(self, dataset_id: DatasetId, events: list[Event]) -> bool:
        takes = self._ledger.holdings.takes(dataset_id)
        return is_idle(self._ledger.held(dataset_id), events, takes=takes)

    def _recover(self) -> None:
        """Try to load what is stuck; the log was read to its end, so nothing else explains it."""
        for held in list(self._ledger.holdings.datasets.values()):
            if held.state in _STUCK:
                self._work.recover(held)
        self._retry_at = self._clock() + self._retries.take()
        if not any(held.state in _STUCK for held in self._ledger.holdings.datasets.values()):
            self._retries.reset()

    def _say(self, moment: Moment, detail: str) -> None:
        cursor = self._ledger.holdings.cursor
        self._observe(Progress(moment=moment, detail=detail, cursor=cursor))


@contextmanager
def open_run(
    *,
    feed: Feed,
    destination: Destination,
    options: Options,
    chosen: frozenset[DatasetId] = frozenset(),
    observe: Observer = ignore,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Run]:
    """A run on a destination, locked against other clients meanwhile.

    Raises:
        DestinationBusy: Another client is at it, or it stays in use.
        ConfigError: A table's name is given that cannot be had.
    """
    downloads = Downloads(feed, destination.downloads)
    with destination.lock(), downloads.opened():
        ledger = Ledger(destination, observe)
        _check_table_name(options.table_name, chosen, ledger)
        yield Run(
            feed=feed,
            destination=destination.name,
            ledger=ledger,
            work=Work(
                feed=feed,
                ledger=ledger,
                downloads=downloads,
                options=options,
                weights=destination.weights,
            ),
            chosen=chosen,
            observe=observe,
            sleep=sleep,
            clock=clock,
        )


def _check_table_name(name: str | None, chosen: frozenset[DatasetId], ledger: Ledger) -> None:
    if name is None:
        return
    if len(chosen) != 1:
        raise ConfigError("--table-name names the table of one dataset: give one --dataset with it")
    (dataset_id,) = chosen
    table = ledger.held(dataset_id).table
    if table not in (None, name):
        raise ConfigError(
            f"{dataset_id} is kept in table {table} here: leave --table-name out, or sync into"
            " another destination"
        )
