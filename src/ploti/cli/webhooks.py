"""`ploti webhooks`: addresses that events are sent to, and what became of each delivery."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter, validators

from ploti.cli.listen import listen
from ploti.cli.output import Json, print_fields, print_json, print_next, print_table
from ploti.client.connection import Client
from ploti.model.page import DeliveryPage, WebhookPage
from ploti.model.webhook import (
    Attempt,
    Delivery,
    DeliveryState,
    Webhook,
    WebhookState,
    WebhookWithSecret,
)

app = App(
    name="webhooks",
    help="Addresses that a subscription's events are sent to.",
    help_epilogue="Next: create URL --subscription-id SUB, then test WEBHOOK, deliveries WEBHOOK",
)
app.command(listen)

Id = Annotated[str, Parameter(help="A webhook's id: wh_…")]
DeliveryId = Annotated[str, Parameter(help="A delivery's id: msg_…")]
Events = Annotated[str | None, Parameter(help="Only these types, with commas between.")]


@app.command
def create(
    url: Annotated[str, Parameter(help="The https address that gets the events.")],
    /,
    *,
    subscription_id: Annotated[str, Parameter(help="The subscription whose events to send.")],
    events: Events = None,
    json: Json = False,
) -> None:
    """Have a subscription's events sent to an address; the secret is shown this once."""
    with Client() as client:
        made = client.webhooks.create(url, subscription_id=subscription_id, events=_types(events))
    _print_secret(made, json=json)


@app.command(name="list")
def list_webhooks(*, json: Json = False) -> None:
    """List your workspace's webhooks, oldest first."""
    with Client() as client:
        found = [*client.webhooks.list(limit=500)]
    if json:
        print_json(WebhookPage(webhooks=found, next_cursor=None))
        return
    print_table(
        ["id", "state", "subscription", "behind", "last success", "url"],
        [
            [
                *(each.id, _state(each), each.subscription_id),
                *(each.events_behind, each.last_success_at, each.url),
            ]
            for each in found
        ],
        empty="No webhooks. Make one with: ploti webhooks create URL --subscription-id SUB",
    )


@app.command
def show(webhook: Id, /, *, json: Json = False) -> None:
    """Show a webhook, and how the attempts of its last day went."""
    with Client() as client:
        found = client.webhooks.show(webhook)
    _print(found, json=json)


@app.command
def update(
    webhook: Id,
    /,
    *,
    url: Annotated[str | None, Parameter(help="Another https address.")] = None,
    events: Events = None,
    all_events: Annotated[bool, Parameter(negative=(), help="Every type, later ones too.")] = False,
    json: Json = False,
) -> None:
    """Replace the address or the types; with another address what waits is sent at once."""
    with Client() as client:
        changed = client.webhooks.update(
            webhook, url=url, events=_types(events), all_events=all_events
        )
    _print(changed, json=json)


@app.command
def delete(webhook: Id, /, *, json: Json = False) -> None:
    """Delete a webhook, and what is known of its deliveries, for good."""
    with Client() as client:
        client.webhooks.delete(webhook)
    if json:
        print_json({"id": webhook, "deleted": True})
    else:
        print(f"{webhook} is deleted.")


@app.command(name="test")
def send_ping(webhook: Id, /, *, json: Json = False) -> int:
    """Send one signed ping now and say what came back; exit status 1 where that is no 2xx."""
    with Client() as client:
        sent = client.webhooks.test(webhook)
    _print_delivery(sent, json=json)
    return 0 if sent.state is DeliveryState.DELIVERED else 1


@app.command
def rotate(webhook: Id, /, *, json: Json = False) -> None:
    """Give a webhook a new secret, shown this once; both sign for 24 hours."""
    with Client() as client:
        rotated = client.webhooks.rotate(webhook)
    _print_secret(rotated, json=json)


@app.command
def resume(
    webhook: Id,
    /,
    *,
    start: Annotated[
        str, Parameter(name="--from", help="now, or the event after which to go on: evt_…")
    ],
    json: Json = False,
) -> None:
    """Turn a webhook on again, or have it send again what follows an event."""
    with Client() as client:
        resumed = client.webhooks.resume(webhook, start=start)
    _print(resumed, json=json)


@app.command
def deliveries(
    webhook: Id,
    /,
    *,
    limit: Annotated[
        int, Parameter(help="So many at most.", validator=validators.Number(gte=1, lte=500))
    ] = 50,
    json: Json = False,
) -> None:
    """List what was sent to a webhook or waits, newest first, with the last answer."""
    with Client() as client:
        page = client.webhooks.deliveries(webhook, limit=limit)
    if json:
        print_json(DeliveryPage(deliveries=page.items, next_cursor=page.next_cursor))
        return
    print_table(
        ["id", "state", "event", "dataset", "attempts", "last answer", "next attempt"],
        [
            [
                *(each.id, each.state, each.event_id or each.kind, each.dataset_id),
                *(len(each.attempts), _last_answer(each), each.next_attempt_at),
            ]
            for each in page.items
        ],
        empty="Nothing was sent yet.",
    )
    for each in page.items:
        if each.state is DeliveryState.FAILED and each.event_id:
            print_next(f"ploti webhooks retry {webhook} {each.id}")
            break


@app.command
def retry(webhook: Id, delivery: DeliveryId, /, *, json: Json = False) -> None:
    """Send an event again, as a delivery with an id of its own; one that waits goes out now."""
    with Client() as client:
        sent = client.webhooks.retry(webhook, delivery)
    _print_delivery(sent, json=json)


@app.command
def skip(webhook: Id, delivery: DeliveryId, /, *, json: Json = False) -> None:
    """Give up a delivery that waits; the next one of its dataset follows."""
    with Client() as client:
        skipped = client.webhooks.skip(webhook, delivery)
    _print_delivery(skipped, json=json)


def _types(events: str | None) -> list[str] | None:
    return None if events is None else events.split(",")


def _state(webhook: Webhook) -> str:
    if webhook.state is WebhookState.OFF:
        return f"off ({webhook.off_reason})"
    return "failing" if webhook.failing_since else "on"


def _print(webhook: Webhook, *, json: bool) -> None:
    if json:
        print_json(webhook)
        return
    print_fields(_fields(webhook))
    if webhook.state is WebhookState.OFF:
        print_next(f"ploti webhooks resume {webhook.id} --from now")
    else:
        print_next(f"ploti webhooks deliveries {webhook.id}")


def _print_secret(webhook: WebhookWithSecret, *, json: bool) -> None:
    if json:
        print_json(webhook)
        return
    print_fields({**_fields(webhook), "secret": webhook.secret})
    print("The secret is shown this once: your receiver verifies with it.")
    print_next(f"ploti webhooks test {webhook.id}")


def _fields(webhook: Webhook) -> dict[str, object]:
    day = webhook.last_day or None
    return {
        "id": webhook.id,
        "state": _state(webhook),
        "off since": webhook.off_at,
        "url": webhook.url,
        "subscription": webhook.subscription_id,
        "events": webhook.events or "every type",
        "behind": webhook.events_behind,
        "last success": webhook.last_success_at,
        "failing since": webhook.failing_since,
        "last 24 h": day and f"{day.attempts:,} attempts{_rate(day.success_rate, day.p95_ms)}",
        "created": webhook.created_at,
        "by": webhook.member_name,
    }


def _rate(rate: float | None, p95: int | None) -> str:
    return "" if rate is None else f", {rate:.1%} good, 95% within {p95:,} ms"


def _print_delivery(delivery: Delivery, *, json: bool) -> None:
    if json:
        print_json(delivery)
        return
    print_fields(
        {
            "id": delivery.id,
            "state": delivery.state,
            "event": delivery.event_id,
            "dataset": delivery.dataset_id,
            "attempts": len(delivery.attempts),
            "last answer": _last_answer(delivery),
            "next attempt": delivery.next_attempt_at,
        }
    )


def _last_answer(delivery: Delivery) -> str | None:
    return _answer(delivery.attempts[-1]) if delivery.attempts else None


def _answer(attempt: Attempt) -> str:
    return f"{attempt.error or attempt.status} after {attempt.ms:,} ms"
