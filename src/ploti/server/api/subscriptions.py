"""Subscriptions, and the manifest of each."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterable

from litestar import Router, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Stream

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
from ploti.server.api.openapi import ANSWER, BODY, PROBLEMS
from ploti.server.api.params import PAGE, Cursor, Limit
from ploti.server.membership.principal import FEEDS
from ploti.server.service import change_subscription, read_subscriptions
from ploti.server.service import preview_selection as preview
from ploti.server.service.read_manifest import manifest_text

_BLOCK = 64 << 10
_QUICK = 1
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


@get("/{subscription:str}/manifest", opt={ANSWER: Manifest, **_ONE})
async def get_manifest(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    subscription: FromPath[SubscriptionId],
) -> Stream:
    """What the subscription delivers now, and the cursor from which to read on."""
    now = backend.clock.now()
    spool = await caller.read(
        lambda tx, who: _Spool(manifest_text(tx, who, subscription, base=backend.base, now=now))
    )
    size = {"content-length": str(spool.size)}
    return Stream(spool.text(), headers=size, media_type="application/json")


class _Spool:
    """A text kept packed, so that the database is done with before the client has read it.

    JSON of manifests packs to a tenth; `size` is in bytes as they are sent.
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.size = 0
        self._packed: list[bytes] = []
        block = bytearray()
        for piece in pieces:
            block += piece
            if len(block) >= _BLOCK:
                self._keep(block)
                block = bytearray()
        self._keep(block)

    async def text(self) -> AsyncIterator[bytes]:
        """The text in blocks, each unpacked when the client has taken the one before."""
        for packed in self._packed:
            yield zlib.decompress(packed)

    def _keep(self, block: bytearray) -> None:
        self.size += len(block)
        self._packed.append(zlib.compress(block, _QUICK))


ROUTER = Router(
    "/v1/feeds/subscriptions",
    route_handlers=[
        *(create_subscription, list_subscriptions, get_subscription, update_subscription),
        *(delete_subscription, get_manifest, preview_selection),
    ],
    opt={PERMISSION: FEEDS},
    tags=["subscriptions"],
)
