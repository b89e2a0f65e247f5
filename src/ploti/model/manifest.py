"""A subscription's datasets with their current versions, and the cursor to read on from."""

from __future__ import annotations

from ploti.model.event import Links
from ploti.model.ids import DatasetId, EventId, SubscriptionId
from ploti.model.wire import UNSET, Instant, Unset, Value


class ManifestEntry(Value, kw_only=True):
    """One dataset of the manifest; before its first release all but the id is null."""

    dataset_id: DatasetId
    version: int | None
    schema_version: str | None
    row_count: int | None
    content_digest: str | None
    links: Links | Unset = UNSET


class Manifest(Value, kw_only=True):
    """One consistent moment: applying the events after `event_cursor` misses nothing (R-137)."""

    subscription_id: SubscriptionId
    event_cursor: EventId
    generated_at: Instant
    datasets: list[ManifestEntry]
