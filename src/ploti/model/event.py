"""The seven feed events, field by field in the order of the reference (R-027 to R-050)."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from ploti.model.ids import DatasetId, EventId, SubscriptionId
from ploti.model.schema import SchemaChange
from ploti.model.version import Counts, ResyncReason
from ploti.model.wire import UNSET, Instant, Unset, Value, convert


class EventType(StrEnum):
    """The types of feed events; all of them, and only they, begin with `feed.` (R-014)."""

    ADDED = "feed.dataset.added"
    UPDATED = "feed.dataset.updated"
    SCHEMA_CHANGED = "feed.dataset.schema_changed"
    RESYNC_REQUIRED = "feed.dataset.resync_required"
    REMOVED = "feed.dataset.removed"
    STALE = "feed.dataset.stale"
    DELAYED = "feed.dataset.delayed"


class RemovedReason(StrEnum):
    """Why a dataset left a subscription, in the order of precedence (S-33)."""

    NO_LONGER_DELIVERABLE = "no_longer_deliverable"
    SUBSCRIPTION_CHANGED = "subscription_changed"
    LEFT_COVERAGE = "left_coverage"
    PLAN_CHANGED = "plan_changed"


class StaleReason(StrEnum):
    """Why a dataset is stale: there is one reason (R-071)."""

    CHECK_OVERDUE = "check_overdue"


class HoldReason(StrEnum):
    """Why a version is held for review, in the order of precedence (domain, 'Holds')."""

    SCHEMA_REVIEW = "schema_review"
    DATA_CHECK = "data_check"
    PROCESSING = "processing"


class Links(Value, kw_only=True):
    """Absolute API addresses of a version and its schema (R-020)."""

    version: str
    schema: str


class EventData(Value, kw_only=True):
    """What an event says; `datasetId` comes first in each (S-01)."""

    type: ClassVar[EventType]

    dataset_id: DatasetId


class Added(EventData, kw_only=True):
    """A dataset joined the subscription; `version` is the one to load, null before the first."""

    type = EventType.ADDED

    version: int | None
    schema_version: str | None
    links: Links | Unset = UNSET


class Updated(EventData, kw_only=True):
    """A new version to apply as changes."""

    type = EventType.UPDATED

    version: int
    previous_version: int
    schema_version: str
    counts: Counts
    links: Links | Unset = UNSET


class SchemaChanged(EventData, kw_only=True):
    """The version of the event after this one changes the schema."""

    type = EventType.SCHEMA_CHANGED

    version: int
    schema_version: str
    schema_change: SchemaChange


class ResyncRequired(EventData, kw_only=True):
    """A new version to load from its snapshot."""

    type = EventType.RESYNC_REQUIRED

    version: int
    schema_version: str
    reason: ResyncReason
    links: Links | Unset = UNSET


class Removed(EventData, kw_only=True):
    """A dataset left the subscription."""

    type = EventType.REMOVED

    reason: RemovedReason


class Stale(EventData, kw_only=True):
    """The source is a day past its due check."""

    type = EventType.STALE

    reason: StaleReason
    last_checked_at: Instant | None


class Delayed(EventData, kw_only=True):
    """The next version is held for review; `version` stays current meanwhile."""

    type = EventType.DELAYED

    version: int | None
    reason: HoldReason
    since: Instant


FeedData = Added | Updated | SchemaChanged | ResyncRequired | Removed | Stale | Delayed

KINDS: dict[EventType, type[FeedData]] = {
    kind.type: kind
    for kind in (Added, Updated, SchemaChanged, ResyncRequired, Removed, Stale, Delayed)
}


class Event(Value, kw_only=True):
    """One event of a subscription's log, with its data typed by `type` (R-009, R-011)."""

    id: EventId
    type: EventType
    timestamp: Instant
    subscription_id: SubscriptionId
    data: FeedData


class UnknownEvent(Value, kw_only=True):
    """An event of a type that this release does not know: a reader skips it (S-50)."""

    id: EventId
    type: str
    timestamp: Instant
    subscription_id: SubscriptionId
    data: dict[str, object]


_KINDS_BY_NAME: dict[str, type[FeedData]] = {name.value: kind for name, kind in KINDS.items()}


class _Envelope(Value, kw_only=True):
    id: EventId
    type: str
    timestamp: Instant
    subscription_id: SubscriptionId
    data: dict[str, object]


def read_event(plain: object) -> Event | UnknownEvent:
    """An event out of its decoded JSON; raises msgspec.ValidationError where it is none."""
    envelope = convert(plain, _Envelope)
    kind = _KINDS_BY_NAME.get(envelope.type)
    if kind is None:
        return convert(plain, UnknownEvent)
    return Event(
        id=envelope.id,
        type=kind.type,
        timestamp=envelope.timestamp,
        subscription_id=envelope.subscription_id,
        data=convert(envelope.data, kind),
    )
