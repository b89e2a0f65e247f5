"""The REST calls of webhooks: the request that each makes and the value its answer is read as."""

from __future__ import annotations

from collections.abc import Iterable

from ploti.client.calls import Call, ListCall, Listed, path, query, reads, reads_list
from ploti.errors import ConfigError
from ploti.model.event import EventType
from ploti.model.ids import SubscriptionId
from ploti.model.page import DeliveryPage, WebhookPage
from ploti.model.webhook import (
    Delivery,
    NewWebhook,
    Resume,
    Webhook,
    WebhookPatch,
    WebhookWithSecret,
)
from ploti.model.wire import UNSET, encode


def create_webhook(
    url: str, *, subscription_id: str, events: Iterable[str] | None = None
) -> Call[WebhookWithSecret]:
    """Have a subscription's events sent to an https address from now on.

    `events` are the types to send; left out, all, later ones too. Keep the answer's `secret`: it is
    shown this once, and `verify` needs it.
    """
    new = NewWebhook(
        url=url,
        subscription_id=SubscriptionId(subscription_id),
        events=UNSET if events is None else _types(events),
    )
    return Call(
        method="POST", path=path("webhooks"), body=encode(new), read=reads(WebhookWithSecret)
    )


def list_webhooks(
    *, cursor: str | None = None, limit: int | None = None
) -> ListCall[Webhook, str | None]:
    """The workspace's webhooks, oldest first."""
    return ListCall(
        method="GET",
        path=path("webhooks"),
        query=query(cursor=cursor, limit=limit),
        read=reads_list(WebhookPage, lambda page: Listed(page, page.webhooks, page.next_cursor)),
    )


def get_webhook(webhook_id: str) -> Call[Webhook]:
    """One webhook, with how the attempts of its last day went."""
    return Call(method="GET", path=path("webhooks", webhook_id), read=reads(Webhook))


def update_webhook(
    webhook_id: str,
    *,
    url: str | None = None,
    events: Iterable[str] | None = None,
    all_events: bool = False,
) -> Call[Webhook]:
    """Replace what is given; `all_events` is for every type, later ones too.

    With another address what waits is due now.
    """
    if all_events and events is not None:
        raise ConfigError("give either events, or all_events")
    types = UNSET if events is None else _types(events)
    patch = WebhookPatch(url=UNSET if url is None else url, events=None if all_events else types)
    return Call(
        method="PATCH",
        path=path("webhooks", webhook_id),
        body=encode(patch),
        read=reads(Webhook),
    )


def delete_webhook(webhook_id: str) -> Call[None]:
    """Delete a webhook, and what is known of its deliveries."""
    return Call(method="DELETE", path=path("webhooks", webhook_id), read=lambda _: None)


def test_webhook(webhook_id: str) -> Call[Delivery]:
    """Send one signed `ping` now; its answer stands in the delivery's one attempt."""
    return Call(method="POST", path=path("webhooks", webhook_id, "test"), read=reads(Delivery))


def rotate_webhook(webhook_id: str) -> Call[WebhookWithSecret]:
    """Give a webhook a new secret; both sign for 24 hours."""
    return Call(
        method="POST", path=path("webhooks", webhook_id, "rotate"), read=reads(WebhookWithSecret)
    )


def resume_webhook(webhook_id: str, *, start: str) -> Call[Webhook]:
    """Turn a webhook on, to send what follows the cursor `start`, or from `now` on.

    What waited is given up. Where it is on, it sends again from there.
    """
    return Call(
        method="POST",
        path=path("webhooks", webhook_id, "resume"),
        body=encode(Resume(from_=start)),
        read=reads(Webhook),
    )


def list_deliveries(
    webhook_id: str, *, cursor: str | None = None, limit: int | None = None
) -> ListCall[Delivery, str | None]:
    """What was sent to a webhook or waits, with every attempt, newest first; kept for 30 days."""
    return ListCall(
        method="GET",
        path=path("webhooks", webhook_id, "deliveries"),
        query=query(cursor=cursor, limit=limit),
        read=reads_list(DeliveryPage, lambda page: Listed(page, page.deliveries, page.next_cursor)),
    )


def retry_delivery(webhook_id: str, delivery_id: str) -> Call[Delivery]:
    """Send an event again as a delivery with an id of its own; one that waits is due now."""
    return _act(webhook_id, delivery_id, "retry")


def skip_delivery(webhook_id: str, delivery_id: str) -> Call[Delivery]:
    """Give up a delivery that waits; the next one of its dataset follows."""
    return _act(webhook_id, delivery_id, "skip")


def _act(webhook_id: str, delivery_id: str, act: str) -> Call[Delivery]:
    return Call(
        method="POST",
        path=path("webhooks", webhook_id, "deliveries", delivery_id, act),
        read=reads(Delivery),
    )


def _types(events: Iterable[str]) -> list[EventType]:
    names = [*events]
    unknown = [name for name in names if name not in set(EventType)]
    if unknown:
        raise ConfigError(f"'{unknown[0]}' is no event type; there are {', '.join(EventType)}")
    return [EventType(name) for name in names]
