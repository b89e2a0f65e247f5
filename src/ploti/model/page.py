"""Pages of lists, each kind with the name of its items and the cursor of the next page."""

from __future__ import annotations

from ploti.model.dataset import Dataset
from ploti.model.event import Event, UnknownEvent
from ploti.model.ids import EventId
from ploti.model.subscription import Subscription
from ploti.model.version import ChangeRow, VersionSummary
from ploti.model.webhook import Delivery, Webhook
from ploti.model.wire import Value


class EventPage(Value, kw_only=True):
    """Events after a cursor; the end is reached where `next_cursor` is the cursor given (S-40)."""

    events: list[Event | UnknownEvent]
    next_cursor: EventId


class DatasetPage(Value, kw_only=True):
    """Datasets by id; `next_cursor` is null at the end."""

    datasets: list[Dataset]
    next_cursor: str | None


class VersionPage(Value, kw_only=True):
    """Released versions, oldest first; `next_cursor` is the number to give as `after` (S-43)."""

    versions: list[VersionSummary]
    next_cursor: int | None


class SubscriptionPage(Value, kw_only=True):
    """The workspace's subscriptions, oldest first."""

    subscriptions: list[Subscription]
    next_cursor: str | None


class ChangePage(Value, kw_only=True):
    """Changed records of a version as JSON."""

    changes: list[ChangeRow]
    next_cursor: str | None


class WebhookPage(Value, kw_only=True):
    """The workspace's webhooks, oldest first."""

    webhooks: list[Webhook]
    next_cursor: str | None


class DeliveryPage(Value, kw_only=True):
    """What was sent to a webhook, newest first."""

    deliveries: list[Delivery]
    next_cursor: str | None
