"""Webhooks, their tests, and what was sent to each."""

from __future__ import annotations

from litestar import Router, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath

from ploti.errors import Code
from ploti.model.ids import DeliveryId, WebhookId
from ploti.model.page import DeliveryPage, WebhookPage
from ploti.model.webhook import (
    Delivery,
    NewWebhook,
    Resume,
    Webhook,
    WebhookPatch,
    WebhookWithSecret,
)
from ploti.server.api.auth import PERMISSION, Caller
from ploti.server.api.backend import Backend
from ploti.server.api.openapi import BODY, PROBLEMS
from ploti.server.api.params import PAGE, Cursor, Limit
from ploti.server.membership.principal import WEBHOOKS
from ploti.server.service import change_webhook, read_webhooks
from ploti.server.service.send_ping import send_ping

_ONE = {PROBLEMS: (Code.NOT_FOUND,)}
_IN_A_STATE = {PROBLEMS: (Code.NOT_FOUND, Code.CONFLICT)}


@post("/", opt={BODY: NewWebhook, **_ONE})
async def create_webhook(
    caller: NamedDependency[Caller], *, backend: NamedDependency[Backend]
) -> WebhookWithSecret:
    """Create a webhook; the secret that signs is in this answer and in no other."""
    new = await caller.body(NewWebhook)
    await change_webhook.check_endpoint(backend.delivering.poster, new.url)
    ids, sealer, now = backend.ids, backend.delivering.sealer, backend.clock.now()
    return await caller.write(
        lambda tx, who: change_webhook.create_webhook(tx, who, new, ids=ids, sealer=sealer, now=now)
    )


@get("/")
async def list_webhooks(
    caller: NamedDependency[Caller], *, cursor: Cursor = None, limit: Limit = PAGE
) -> WebhookPage:
    """The workspace's webhooks, oldest first; none without the permission `feeds`."""
    return await caller.read(
        lambda tx, who: read_webhooks.list_webhooks(tx, who, cursor=cursor, limit=limit)
    )


@get("/{webhook:str}", opt=_ONE)
async def get_webhook(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    webhook: FromPath[WebhookId],
) -> Webhook:
    """A webhook, with how its last day went."""
    now = backend.clock.now()
    return await caller.read(lambda tx, who: read_webhooks.get_webhook(tx, who, webhook, now=now))


@patch("/{webhook:str}", opt={BODY: WebhookPatch, **_ONE})
async def update_webhook(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    webhook: FromPath[WebhookId],
) -> Webhook:
    """Change a webhook by a JSON merge patch; with another address what waits is due now."""
    wanted = await caller.body(WebhookPatch)
    await caller.read(lambda tx, who: read_webhooks.find_webhook(tx, who, webhook))
    await change_webhook.check_endpoint(backend.delivering.poster, wanted.url)
    now = backend.clock.now()
    return await caller.write(
        lambda tx, who: change_webhook.update_webhook(tx, who, webhook, wanted, now=now)
    )


@delete("/{webhook:str}", opt=_ONE)
async def delete_webhook(caller: NamedDependency[Caller], *, webhook: FromPath[WebhookId]) -> None:
    """Delete a webhook and what is known of its deliveries."""
    await caller.write(lambda tx, who: change_webhook.delete_webhook(tx, who, webhook))


@post("/{webhook:str}/test", status_code=200, opt=_ONE)
async def test_webhook(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    webhook: FromPath[WebhookId],
) -> Delivery:
    """Send one signed `ping` now, whatever the filter and the state; the answer says what came."""

    async def send() -> Delivery:
        found = await caller.read(lambda tx, who: read_webhooks.find_webhook(tx, who, webhook))
        return await send_ping(backend.delivering, found)

    return await caller.once(send)


@post("/{webhook:str}/rotate", status_code=200, opt=_ONE)
async def rotate_webhook(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    webhook: FromPath[WebhookId],
) -> WebhookWithSecret:
    """Give the webhook a new secret; both sign for 24 hours."""
    ids, sealer, now = backend.ids, backend.delivering.sealer, backend.clock.now()
    return await caller.write(
        lambda tx, who: change_webhook.rotate_secret(
            tx, who, webhook, ids=ids, sealer=sealer, now=now
        )
    )


@post(
    "/{webhook:str}/resume",
    status_code=200,
    opt={BODY: Resume, PROBLEMS: (Code.NOT_FOUND, Code.CONFLICT, Code.EXPIRED)},
)
async def resume_webhook(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    webhook: FromPath[WebhookId],
) -> Webhook:
    """Turn the webhook on, to send what comes from `now` on or what follows a cursor."""
    wanted, now = await caller.body(Resume), backend.clock.now()
    return await caller.write(
        lambda tx, who: change_webhook.resume_webhook(tx, who, webhook, wanted, now=now)
    )


@get("/{webhook:str}/deliveries", opt=_ONE)
async def list_deliveries(
    caller: NamedDependency[Caller],
    *,
    webhook: FromPath[WebhookId],
    cursor: Cursor = None,
    limit: Limit = PAGE,
) -> DeliveryPage:
    """What was sent to a webhook or waits, with every attempt, newest first."""
    return await caller.read(
        lambda tx, who: read_webhooks.list_deliveries(tx, who, webhook, cursor=cursor, limit=limit)
    )


@post(
    "/{webhook:str}/deliveries/{delivery:str}/retry",
    status_code=200,
    opt={PROBLEMS: (Code.NOT_FOUND, Code.CONFLICT, Code.EXPIRED)},
)
async def retry_delivery(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    webhook: FromPath[WebhookId],
    delivery: FromPath[DeliveryId],
) -> Delivery:
    """Send the event again, as a delivery with an id of its own; one that waits is due now."""
    now = backend.clock.now()
    return await caller.write(
        lambda tx, who: change_webhook.retry_delivery(tx, who, webhook, delivery, now=now)
    )


@post("/{webhook:str}/deliveries/{delivery:str}/skip", status_code=200, opt=_IN_A_STATE)
async def skip_delivery(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    webhook: FromPath[WebhookId],
    delivery: FromPath[DeliveryId],
) -> Delivery:
    """Give up a delivery that waits; the next one of its dataset follows."""
    now = backend.clock.now()
    return await caller.write(
        lambda tx, who: change_webhook.skip_delivery(tx, who, webhook, delivery, now=now)
    )


ROUTER = Router(
    "/v1/webhooks",
    route_handlers=[
        *(create_webhook, list_webhooks, get_webhook, update_webhook, delete_webhook),
        *(test_webhook, rotate_webhook, resume_webhook),
        *(list_deliveries, retry_delivery, skip_delivery),
    ],
    opt={PERMISSION: WEBHOOKS},
    tags=["webhooks"],
)
