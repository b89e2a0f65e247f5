"""Webhooks: an address that gets a subscription's events, what was sent to it, and its answers."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

import msgspec

from ploti.model.event import Event, EventType, UnknownEvent, read_event
from ploti.model.ids import (
    DatasetId,
    DeliveryId,
    EventId,
    MemberId,
    SubscriptionId,
    WebhookId,
)
from ploti.model.wire import UNSET, Instant, Unset, Value, convert, decode

NOW = "now"
"""Where `resume` goes on: with what comes from this moment on."""


class WebhookState(StrEnum):
    """Whether a webhook gets events."""

    ON = "on"
    OFF = "off"


class OffReason(StrEnum):
    """Why a webhook is off."""

    GONE = "gone"
    FAILING = "failing"
    MEMBER_LEFT = "member_left"
    SUBSCRIPTION_DELETED = "subscription_deleted"


class NewWebhook(Value, kw_only=True):
    """The body that creates a webhook; without `events` it gets every type, later ones too (S-50).

    `subscription_id` is what every webhook needs so far.
    """

    url: str
    subscription_id: SubscriptionId | Unset = UNSET
    events: list[EventType] | Unset = UNSET


class WebhookPatch(Value, kw_only=True):
    """A JSON merge patch of a webhook: what is left out stays; `events` null is every type."""

    url: str | Unset = UNSET
    events: list[EventType] | Unset | None = UNSET


class LastDay(Value, kw_only=True):
    """How the attempts of the last 24 hours went; times in milliseconds."""

    attempts: int
    success_rate: float | None
    p95_ms: int | None


class Webhook(Value, kw_only=True):
    """A webhook of the workspace and of a member (R-158); `events` is null for every type.

    `events_behind` counts the log's events that it has not come to; `last_day` is only there where
    one webhook is asked for.
    """

    id: WebhookId
    url: str
    subscription_id: SubscriptionId
    events: list[EventType] | None
    created_at: Instant
    member_id: MemberId
    member_name: str
    state: WebhookState
    off_reason: OffReason | None
    off_at: Instant | None
    last_success_at: Instant | None
    failing_since: Instant | None
    events_behind: int
    last_day: LastDay | Unset = UNSET


class WebhookWithSecret(Webhook, kw_only=True):
    """A webhook just made or rotated, with the secret that is shown this once (R-150)."""

    secret: str


class Resume(Value, kw_only=True):
    """Where a webhook goes on: `now`, or after the event of a cursor."""

    from_: str = msgspec.field(name="from")


class DeliveryKind(StrEnum):
    """What made a delivery."""

    AUTO = "auto"
    MANUAL = "manual"
    TEST = "test"


class DeliveryState(StrEnum):
    """How far a delivery is."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Attempt(Value, kw_only=True):
    """One try of a delivery: an answer's status, or the error that there was instead.

    `location` is where a redirect pointed, which is not followed; `response` is the answer's
    beginning.
    """

    number: int
    started_at: Instant
    ms: int
    url: str
    address: str | None
    status: int | None
    error: str | None
    location: str | None
    response: str | None


class Delivery(Value, kw_only=True):
    """One event to one webhook; `id` is what the header `webhook-id` carries (R-157).

    A ping has no event and no dataset. `next_attempt_at` is null where nothing more is tried, and
    where an earlier event of the same dataset waits (S-53).
    """

    id: DeliveryId
    kind: DeliveryKind
    event_id: EventId | None
    dataset_id: DatasetId | None
    state: DeliveryState
    created_at: Instant
    ended_at: Instant | None
    next_attempt_at: Instant | None
    attempts: list[Attempt]


class Ping(Value, kw_only=True):
    """The body of a test: no event of any log, never applied (R-165)."""

    type: ClassVar[str] = "ping"

    id: str
    timestamp: Instant


Message = Event | UnknownEvent | Ping


def read_message(body: bytes) -> Message:
    """What a webhook received; raises msgspec.ValidationError or DecodeError where it is none."""
    plain = decode(body, dict[str, object])
    if plain.get("type") == Ping.type:
        return convert(plain, Ping)
    return read_event(plain)
