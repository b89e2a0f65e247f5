"""How far behind each dataset of a destination is, and why: nothing is changed by looking."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from ploti.errors import (
    ExitStatus,
    Expired,
    InvalidInput,
    NotDeliverable,
    NotFound,
    NotSubscribed,
    OutsideCoverage,
)
from ploti.model.event import HoldReason
from ploti.model.ids import DatasetId, EventId
from ploti.model.manifest import ManifestEntry
from ploti.model.version import VersionSummary
from ploti.model.wire import Instant, Value
from ploti.sync.destination import Destination
from ploti.sync.feed import Feed
from ploti.sync.held import Held, Holdings, State


class Standing(StrEnum):
    """What can be said of a dataset in one word."""

    CURRENT = "current"
    ON_HOLD = "on_hold"
    """Current, and the next version waits for review at the server."""

    WAITING = "waiting"
    """Delivered, but without a version yet."""

    BEHIND = "behind"
    """`ploti feeds sync` brings it up to date by the log."""

    EXPIRED = "expired"
    """Behind, and the log has forgotten the way: sync loads it from the manifest."""

    FAILED = "failed"
    """It could not go on; sync tries again."""

    LEFT = "left"
    """It left the subscription; its table, if kept, stays as it was."""

    LEFT_OUT = "left_out"
    """It is not chosen for this destination."""


_UP_TO_DATE = (
    Standing.CURRENT,
    Standing.ON_HOLD,
    Standing.WAITING,
    Standing.LEFT,
    Standing.LEFT_OUT,
)


class DatasetStatus(Value, kw_only=True):
    """One dataset; `held` and `current` are versions, here and at the server.

    `missing` is the number of released versions that the copy has not, `missing_since` when the
    first of them was released; both None where the server does not list them. `columns` has those
    that the destination calls by another name than the dataset, with that name.
    """

    dataset_id: DatasetId
    table: str | None
    standing: Standing
    held: int | None
    current: int | None
    hold: HoldReason | None
    missing: int | None
    missing_since: Instant | None
    columns: dict[str, str]
    detail: str


class Status(Value, kw_only=True):
    """All datasets of a destination, by id; `expired`: the cursor is of no use any more."""

    destination: str
    cursor: EventId | None
    expired: bool
    datasets: list[DatasetStatus]

    @property
    def exit_status(self) -> ExitStatus:
        """3 where a dataset is not up to date, else 0."""
        behind = any(each.standing not in _UP_TO_DATE for each in self.datasets)
        return ExitStatus.BEHIND if behind else ExitStatus.DONE


def read_status(feed: Feed, destination: Destination) -> Status:
    """Compare what is held with what the server has.

    Raises:
        SyncError: There is no destination yet.
        PlotiError: The server cannot be asked.
    """
    with destination.reading() as session:
        holdings = session.holdings()
        tables = [held.table for held in holdings.datasets.values() if held.table is not None]
        columns = {table: dict(session.names(table)) for table in tables}
    manifest = {entry.dataset_id: entry for entry in feed.manifest().datasets}
    expired = _is_expired(feed, holdings.cursor)
    ids = sorted(manifest.keys() | holdings.datasets.keys())
    datasets = [
        _read_one(feed, holdings, each, entry=manifest.get(each), expired=expired, columns=columns)
        for each in ids
    ]
    return Status(
        destination=destination.name,
        cursor=holdings.cursor,
        expired=expired,
        datasets=datasets,
    )


def _is_expired(feed: Feed, cursor: EventId | None) -> bool:
    if cursor is None:
        return False
    try:
        feed.events(cursor, limit=1)
    except (Expired, InvalidInput):
        return True
    return False


def _read_one(
    feed: Feed,
    holdings: Holdings,
    dataset_id: DatasetId,
    *,
    entry: ManifestEntry | None,
    expired: bool,
    columns: Mapping[str, dict[str, str]],
) -> DatasetStatus:
    held = holdings.datasets.get(dataset_id) or Held(dataset_id=dataset_id)
    hold = _hold_reason(feed, dataset_id) if entry else None
    standing, detail = judge(
        held, entry, takes=holdings.takes(dataset_id), expired=expired, hold=hold
    )
    missing = [] if standing in _UP_TO_DATE else _missing(feed, held)
    return DatasetStatus(
        dataset_id=dataset_id,
        table=held.table,
        standing=standing,
        held=held.version,
        current=entry.version if entry else None,
        hold=hold,
        missing=None if missing is None else len(missing),
        missing_since=missing[0].published_at if missing else None,
        columns=columns.get(held.table or "", {}),
        detail=detail + _say_missing(missing),
    )


def _missing(feed: Feed, held: Held) -> list[VersionSummary] | None:
    """The released versions that come after the one held."""
    try:
        return feed.versions(held.dataset_id, after=held.version or 0)
    except (NotDeliverable, NotFound, NotSubscribed, OutsideCoverage):
        return None


def _say_missing(missing: list[VersionSummary] | None) -> str:
    if not missing:
        return ""
    versions = "1 version" if len(missing) == 1 else f"{len(missing)} versions"
    return f"; {versions} behind since {missing[0].published_at}"


def _hold_reason(feed: Feed, dataset_id: DatasetId) -> HoldReason | None:
    try:
        hold = feed.dataset(dataset_id).hold
    except (NotDeliverable, NotFound, OutsideCoverage):
        return None
    return hold.reason if hold else None


def judge(
    held: Held,
    entry: ManifestEntry | None,
    *,
    takes: bool,
    expired: bool,
    hold: HoldReason | None,
) -> tuple[Standing, str]:
    """Where a dataset stands, and what to say of it; `entry` is the manifest's line for it."""
    if held.state is State.REMOVED and entry is None:
        kept = f"table {held.table} stays as it was" if held.table else "its table is gone"
        return Standing.LEFT, f"left on {held.left_at}: {held.reason}; {kept}"
    if not takes or held.state is State.LEFT_OUT:
        return Standing.LEFT_OUT, "not chosen with --dataset"
    if held.state in (State.NEEDS_LOAD, State.LEAVING):
        return Standing.FAILED, held.reason or "it could not go on"
    if entry is None:
        return Standing.BEHIND, "it is not delivered any more: sync marks its table"
    if entry.version is None:
        return Standing.WAITING, "no version released yet"
    if (held.state, held.version) == (State.HELD, entry.version):
        if hold is not None:
            return Standing.ON_HOLD, f"the next version waits for review: {hold}"
        return Standing.CURRENT, "up to date"
    if expired:
        return Standing.EXPIRED, "its events are past retention: sync loads the current version"
    if held.version is None:
        return Standing.BEHIND, "not loaded yet"
    return Standing.BEHIND, f"the copy has version {held.version}, {entry.version} is current"
