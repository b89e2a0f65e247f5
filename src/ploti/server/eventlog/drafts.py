"""Which bodies a release, a hold, a joining or a leaving writes, and in which order."""

from __future__ import annotations

from ploti.model import wire
from ploti.model.event import (
    Added,
    Delayed,
    EventType,
    FeedData,
    HoldReason,
    Removed,
    RemovedReason,
    ResyncRequired,
    SchemaChanged,
    Stale,
    StaleReason,
    Updated,
)
from ploti.model.ids import DatasetId
from ploti.model.schema import SchemaChange
from ploti.model.version import Counts, ResyncReason
from ploti.model.wire import Instant, Value


class Draft(Value, kw_only=True):
    """A body to append: `data` without links, and the version that links will lead to."""

    type: EventType
    dataset_id: DatasetId
    linked_version: int | None
    data: str


class Release(Value, kw_only=True):
    """A version as its release announces it; `reason` is None for one to apply as changes."""

    dataset_id: DatasetId
    version: int
    previous_version: int | None
    schema_version: str
    schema_change: SchemaChange | None
    counts: Counts | None
    reason: ResyncReason | None


class Waiting(Value, kw_only=True):
    """A version on hold: why, and since when it was built."""

    reason: HoldReason
    since: Instant


class Standing(Value, kw_only=True):
    """How a dataset stands: what is current, and what waits for review."""

    dataset_id: DatasetId
    version: int | None
    schema_version: str | None
    waiting: Waiting | None


def released(release: Release) -> list[Draft]:
    """The version's own event, after `schema_changed` where it changes the schema (S-12)."""
    own = _draft(_version_event(release), linked=release.version)
    if release.schema_change is None:
        return [own]
    change = SchemaChanged(
        dataset_id=release.dataset_id,
        version=release.version,
        schema_version=release.schema_version,
        schema_change=release.schema_change,
    )
    return [_draft(change), own]


def held(standing: Standing) -> list[Draft]:
    """`delayed` for the version on hold; nothing where none is (R-046 to R-050, S-05)."""
    if standing.waiting is None:
        return []
    delayed = Delayed(
        dataset_id=standing.dataset_id,
        version=standing.version,
        reason=standing.waiting.reason,
        since=standing.waiting.since,
    )
    return [_draft(delayed)]


def joined(standing: Standing) -> list[Draft]:
    """`added` with what is current, then `delayed` where a version waits (R-050, S-03, S-06)."""
    added = Added(
        dataset_id=standing.dataset_id,
        version=standing.version,
        schema_version=standing.schema_version,
    )
    return [_draft(added, linked=standing.version), *held(standing)]


def overdue(dataset_id: DatasetId, last_checked_at: Instant | None) -> list[Draft]:
    """`stale` for a source whose check is a day late (R-043, R-044)."""
    stale = Stale(
        dataset_id=dataset_id, reason=StaleReason.CHECK_OVERDUE, last_checked_at=last_checked_at
    )
    return [_draft(stale)]


def left(dataset_id: DatasetId, reason: RemovedReason) -> list[Draft]:
    """`removed`, which is sent also while a version waits (S-07)."""
    return [_draft(Removed(dataset_id=dataset_id, reason=reason))]


def _version_event(release: Release) -> Updated | ResyncRequired:
    if release.reason is not None:
        return ResyncRequired(
            dataset_id=release.dataset_id,
            version=release.version,
            schema_version=release.schema_version,
            reason=release.reason,
        )
    if release.previous_version is None or release.counts is None:
        raise ValueError(f"version {release.version} has no changes to apply and no reason to load")
    return Updated(
        dataset_id=release.dataset_id,
        version=release.version,
        previous_version=release.previous_version,
        schema_version=release.schema_version,
        counts=release.counts,
    )


def _draft(data: FeedData, *, linked: int | None = None) -> Draft:
    return Draft(
        type=data.type,
        dataset_id=data.dataset_id,
        linked_version=linked,
        data=wire.encode(data).decode(),
    )
