"""Changed records out of a subscription's log, for those who apply them by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, assert_never, cast

import pyarrow as pa
import pyarrow.parquet as pq

from ploti.errors import (
    Expired,
    NotDeliverable,
    NotFound,
    NotSubscribed,
    OutsideCoverage,
    SyncError,
)
from ploti.model.columns import CHANGE, RECORD_ID
from ploti.model.event import (
    Added,
    Delayed,
    Event,
    Removed,
    ResyncRequired,
    SchemaChanged,
    Stale,
    Updated,
)
from ploti.model.ids import DatasetId, EventId
from ploti.sync.feed import Feed, FileError, Role

_BATCH = 10_000
_LEFT = (NotSubscribed, OutsideCoverage, NotDeliverable, NotFound)


@dataclass(frozen=True, slots=True, kw_only=True)
class Emptied:
    """Forget all records kept of a dataset; those that it has now, if any, follow as `added`.

    `version` is the one that follows, None where the dataset left or has no version yet. `cursor`
    is what to store once this, and all before it, is applied.
    """

    dataset_id: DatasetId
    version: int | None
    reason: str
    cursor: EventId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One record of a version: to keep under its id (`added`, `changed`), or to delete (`removed`).

    `record` has the columns by name: text, int, float, Decimal, bool, date, datetime (aware for an
    instant), JSON as text, geometry as WKB; it is None for a record that is removed. `cursor` is
    what to store once this, and all before it, is applied: it moves with the last record of an
    event, so that a crash repeats an event and loses none.
    """

    dataset_id: DatasetId
    version: int
    change: Literal["added", "changed", "removed"]
    record_id: str
    record: dict[str, object] | None
    cursor: EventId | None


Item = Emptied | Changed


def changed_records(feed: Feed, cursor: EventId | None) -> Iterator[Item]:
    """All that changed after a cursor, up to the end of the log; without one all there is.

    Every item is safe to apply twice. Where a version is to be loaded, or its changes cannot be had
    any more, the dataset is emptied and its current records follow.

    Raises:
        Expired: The cursor is past retention: forget all records, and begin without one.
        SyncError: A file is damaged, or cannot be written here.
        ApiError: The server refuses.
        TransportError: The server cannot be reached.
    """
    with TemporaryDirectory(prefix="ploti-changes-") as folder:
        yield from _Reading(feed, Path(folder)).run(cursor)


class _Reading:
    """One reading of the log; `held` are the versions that were given out in it."""

    def __init__(self, feed: Feed, folder: Path) -> None:
        self._feed = feed
        self._folder = folder
        self._held: dict[DatasetId, int | None] = {}
        self._left: set[DatasetId] = set()

    def run(self, cursor: EventId | None) -> Iterator[Item]:
        if cursor is None:
            manifest = self._feed.manifest()
            cursor = manifest.event_cursor
            loads = (
                self._unless_left(
                    entry.dataset_id, self._load(entry.dataset_id, entry.version, "manifest")
                )
                for entry in manifest.datasets
                if entry.version is not None
            )
            yield from _marked(chain.from_iterable(loads), None, cursor)
        while True:
            page = self._feed.events(cursor)
            for event in page.events:
                if isinstance(event, Event):
                    yield from _marked(self._act(event), cursor, event.id)
                cursor = event.id
            if page.next_cursor == cursor and not page.events:
                return
            cursor = page.next_cursor

    def _act(self, event: Event) -> Iterator[Item]:
        dataset_id = event.data.dataset_id
        if isinstance(event.data, Removed):
            self._left.discard(dataset_id)
            self._held.pop(dataset_id, None)
            yield _emptied(dataset_id, None, event.data.reason)
        elif dataset_id not in self._left:
            yield from self._unless_left(dataset_id, self._act_on_version(event))

    def _unless_left(self, dataset_id: DatasetId, items: Iterator[Item]) -> Iterator[Item]:
        """The items, none more once it has left meanwhile; its `removed` follows (R-141)."""
        try:
            yield from items
        except _LEFT:
            self._left.add(dataset_id)

    def _act_on_version(self, event: Event) -> Iterator[Item]:
        data = event.data
        match data:
            case Added(version=None):
                yield _emptied(data.dataset_id, None, "added")
            case Added() | ResyncRequired():
                number = data.version or 0
                if number > (self._held.get(data.dataset_id) or 0) or isinstance(data, Added):
                    reason = "added" if isinstance(data, Added) else data.reason
                    yield from self._load(data.dataset_id, number, reason)
            case Updated():
                yield from self._update(data)
            case SchemaChanged() | Stale() | Delayed() | Removed():
                return
            case _ as never:
                assert_never(never)

    def _update(self, data: Updated) -> Iterator[Item]:
        held = self._held.get(data.dataset_id)
        if held is not None and data.version <= held:
            return
        if held in (None, data.previous_version):  # who reads on from a cursor holds it
            try:
                file = self._fetch(data.dataset_id, data.version, "changes")
            except (FileError, Expired):
                file = None
            if file is not None:
                self._held[data.dataset_id] = data.version
                yield from _read(file, data.dataset_id, data.version)
                return
        current = self._feed.dataset(data.dataset_id).current
        if current is not None:
            yield from self._load(data.dataset_id, current.version, "previous_unavailable")

    def _load(self, dataset_id: DatasetId, number: int, reason: str) -> Iterator[Item]:
        try:
            file = self._fetch(dataset_id, number, "snapshot")
        except (FileError, Expired):
            current = self._feed.dataset(dataset_id).current
            if current is None or current.version == number:
                raise
            number = current.version
            file = self._fetch(dataset_id, number, "snapshot")
        self._held[dataset_id] = number
        yield _emptied(dataset_id, number, reason)
        yield from _read(file, dataset_id, number)

    def _fetch(self, dataset_id: DatasetId, number: int, role: Role) -> Path:
        """The file, which the next one replaces."""
        for old in self._folder.iterdir():
            old.unlink()
        return self._feed.fetch(dataset_id, number, role, self._folder / f"{number}.{role}")


def _emptied(dataset_id: DatasetId, version: int | None, reason: str) -> Emptied:
    return Emptied(dataset_id=dataset_id, version=version, reason=str(reason), cursor=None)


def _read(file: Path, dataset_id: DatasetId, version: int) -> Iterator[Changed]:
    """The rows of a changes file; those of a snapshot are all `added`."""
    try:
        with pq.ParquetFile(file, pre_buffer=False) as source:
            for batch in source.iter_batches(_BATCH):
                for row in batch.to_pylist():
                    yield _row(row, dataset_id, version)
    except pa.ArrowException as error:
        raise SyncError(f"version {version} of {dataset_id} cannot be read: {error}") from error


def _row(row: dict[str, object], dataset_id: DatasetId, version: int) -> Changed:
    change = cast("Literal['added', 'changed', 'removed']", row.get(CHANGE, "added"))
    record = {name: value for name, value in row.items() if not name.startswith("_ploti_")}
    return Changed(
        dataset_id=dataset_id,
        version=version,
        change=change,
        record_id=str(row[RECORD_ID]),
        record=None if change == "removed" else record,
        cursor=None,
    )


def _marked(items: Iterable[Item], before: EventId | None, after: EventId) -> Iterator[Item]:
    """The items with the cursor that may be stored with each: the last one moves it."""
    waiting: Item | None = None
    for item in items:
        if waiting is not None:
            yield replace(waiting, cursor=before)
        waiting = item
    if waiting is not None:
        yield replace(waiting, cursor=after)
