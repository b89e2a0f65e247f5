"""Subscriptions, and the manifest of each."""

from __future__ import annotations

from litestar import Router, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath

from ploti.errors import Code
from ploti.model.ids import SubscriptionId
from ploti.model.manifest import Manifest
from ploti.model.page import SubscriptionPage
from ploti.model.subscription import (
    NewSubscription,
    Preview,
    Selection,
    Subscription,
    SubscriptionPatch,
)
from ploti.server.api.auth import PERMISSION, Caller
from ploti.server.api.backend import Backend
from ploti.server.api.openapi import BODY, PROBLEMS
from ploti.server.api.params import PAGE, Cursor, Limit
from ploti.server.membership.principal import FEEDS
from ploti.server.service import change_subscription, read_manifest, read_subscriptions
from ploti.server.service import preview_selection as preview

_ONE = {PROBLEMS: (Code.NOT_FOUND,)}


@post("/", opt={BODY: NewSubscription})
async def create_subscription(
    caller: NamedDependency[Caller], *, backend: NamedDependency[Backend]
) -> Subscription:
    """Create a subscription of up to 1,000 entries a list; its log begins with an `added` for each.

    A path has 200 characters at most, and so has the name.
    """
    new = await caller.body(NewSubscription)
    fresh, now = backend.ids.subscription(), backend.clock.now()
    return await caller.change(
        lambda tx, who, plans: change_subscription.create_subscription(
            tx, who, new, id=fresh, plans=plans, now=now
        )
    )


@get("/")
async def list_subscriptions(
    caller: NamedDependency[Caller], *, cursor: Cursor = None, limit: Limit = PAGE
) -> SubscriptionPage:
    """The workspace's subscriptions, oldest first."""
    return await caller.read(
        lambda tx, who: read_subscriptions.list_subscriptions(tx, who, cursor=cursor, limit=limit)
    )


@post("/preview", status_code=200, opt={BODY: Selection})
async def preview_selection(caller: NamedDependency[Caller]) -> Preview:
    """What a selection would deliver, and why other datasets that it matches would not be."""
    wanted = await caller.body(Selection)
    return await caller.look(lambda tx, reader: preview.preview_selection(tx, reader, wanted))


@get("/{subscription:str}", opt=_ONE)
async def get_subscription(
    caller: NamedDependency[Caller], *, subscription: FromPath[SubscriptionId]
) -> Subscription:
    """A subscription."""
    return await caller.read(
        lambda tx, who: read_subscriptions.get_subscription(tx, who, subscription)
    )


@patch("/{subscription:str}", opt={BODY: SubscriptionPatch, **_ONE})
async def update_subscription(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    subscription: FromPath[SubscriptionId],
) -> Subscription:
    """Change a subscription by a JSON merge patch: what is left out stays."""
    wanted = await caller.body(SubscriptionPatch)
    now = backend.clock.now()
    return await caller.change(
        lambda tx, who, plans: change_subscription.update_subscription(
            tx, who, subscription, wanted, plans=plans, now=now
        )
    )


@delete("/{subscription:str}", opt=_ONE)
async def delete_subscription(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    subscription: FromPath[SubscriptionId],
) -> None:
    """Delete a subscription and its log."""
    now = backend.clock.now()
    await caller.write(
        lambda tx, who: change_subscription.delete_subscription(tx, who, subscription, now=now)
    )
    backend.waiters.ring()  # what waits on its log is told that it is gone


@get("/{subscription:str}/manifest", opt=_ONE)
async def get_manifest(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    subscription: FromPath[SubscriptionId],
) -> Manifest:
    """What the subscription delivers now, and the cursor from which to read on."""
    now = backend.clock.now()
    return await caller.read(
        lambda tx, who: read_manifest.get_manifest(
            tx, who, subscription, base=backend.base, now=now
        )
    )


ROUTER = Router(
    "/v1/feeds/subscriptions",
    route_handlers=[
        *(create_subscription, list_subscriptions, get_subscription, update_subscription),
        *(delete_subscription, get_manifest, preview_selection),
    ],
    opt={PERMISSION: FEEDS},
    tags=["subscriptions"],
)
