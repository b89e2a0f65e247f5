"""A dataset as subscribers see it in the catalogue."""

from __future__ import annotations

from ploti.model.event import HoldReason
from ploti.model.ids import DatasetId
from ploti.model.wire import UNSET, Instant, Unset, Value


class CurrentVersion(Value, kw_only=True):
    """The version that subscribers have now."""

    version: int
    schema_version: str
    published_at: Instant
    row_count: int


class HoldNotice(Value, kw_only=True):
    """A version waits for review: why, and since when it was built."""

    reason: HoldReason
    since: Instant


class Dataset(Value, kw_only=True):
    """A named table built from a source."""

    id: DatasetId
    title: str
    place: str
    topic: str
    license: str | None
    attribution: str | None
    key_columns: list[str]
    current: CurrentVersion | None
    last_checked_at: Instant | None
    next_check_by: Instant | None
    hold: HoldNotice | None
    subscribed: bool | Unset = UNSET
