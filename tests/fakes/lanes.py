"""Deliveries over a real database and real sockets, with a clock that tests move."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from tests.fakes.plans import ALL_OPEN
from tests.fakes.releases import NOW, declare, release

from ploti.model.event import EventType
from ploti.model.ids import DatasetId, SubscriptionId, WebhookId
from ploti.model.subscription import NewSubscription
from ploti.model.webhook import Delivery, NewWebhook, Resume, Webhook, WebhookWithSecret
from ploti.model.wire import UNSET, Instant
from ploti.server.adapters.ids import RandomIds
from ploti.server.adapters.meters import PrometheusMeters
from ploti.server.adapters.poster import Limits, WebhookPoster
from ploti.server.adapters.sealer import Sealer
from ploti.server.adapters.store import SqliteStore
from ploti.server.ports.outside import Poster
from ploti.server.ports.rows import Claim, DeliveryRow
from ploti.server.ports.store import Transaction
from ploti.server.service.authenticate import authenticate
from ploti.server.service.change_subscription import create_subscription
from ploti.server.service.change_webhook import create_webhook, resume_webhook
from ploti.server.service.deliver_due import (
    Delivering,
    Lane,
    claim_lanes,
    deliver_due,
    load_lanes,
)
from ploti.server.service.read_webhooks import find_webhook, get_webhook, list_deliveries
from ploti.server.service.record_outcomes import Outcomes
from ploti.server.service.send_ping import send_ping
from ploti.server.service.set_up import set_up

T = TypeVar("T")
BASE = "https://api.example"
A, B, C = DatasetId("ds_a"), DatasetId("ds_b"), DatasetId("ds_c")
LOOPBACK = ["127.0.0.0/8"]


class StandingClock:
    """A clock that only a test moves."""

    def __init__(self) -> None:
        self.moment = NOW

    def now(self) -> Instant:
        return self.moment

    def forward(self, **much: float) -> None:
        self.moment = Instant.of(self.moment + timedelta(**much))


class FixedChance(RandomIds):
    """Real ids, and chance as a test sets it."""

    share = 0.0

    def chance(self) -> float:
        return self.share


class Lanes:
    """The use cases of deliveries; `url` is where webhooks send to unless a test says another."""

    def __init__(self, folder: Path, *, poster: Poster | None = None) -> None:
        self.clock, self.ids = StandingClock(), FixedChance()
        self.store = SqliteStore(str(folder / "ploti.db"))
        self.poster = WebhookPoster(
            allow_networks=LOOPBACK, user_agent="ploti/0", limits=Limits(total=10, body=2)
        )
        self.parts = Delivering(
            store=self.store,
            poster=poster or self.poster,
            sealer=Sealer([b"k" * 32]),
            clock=self.clock,
            ids=self.ids,
            meters=PrometheusMeters(),
            base=BASE,
        )

    async def open(self) -> None:
        keys = await self.store.write(lambda tx: set_up(tx, ids=self.ids, now=NOW))
        if keys is not None:
            self.subscriber = await self.store.read(
                lambda tx: authenticate(tx, keys.subscriber, now=NOW)
            )

    async def close(self) -> None:
        await self.store.close()
        await self.poster.close()

    async def subscribe(self, *datasets: DatasetId) -> SubscriptionId:
        """A subscription to these datasets, which are declared where they are not."""

        def work(tx: Transaction) -> SubscriptionId:
            for dataset in datasets:
                declare(tx, dataset)
            new = NewSubscription(datasets=[*datasets])
            made = create_subscription(
                *(tx, self.subscriber, new),
                id=self.ids.subscription(),
                plans=ALL_OPEN,
                now=self.clock.now(),
            )
            return made.id

        return await self.store.write(work)

    async def hook(
        self,
        url: str,
        subscription: SubscriptionId,
        *,
        events: Iterable[EventType] | None = None,
    ) -> WebhookWithSecret:
        new = NewWebhook(
            url=url,
            subscription_id=subscription,
            events=UNSET if events is None else [*events],
        )
        return await self.store.write(
            lambda tx: create_webhook(
                tx,
                self.subscriber,
                new,
                ids=self.ids,
                sealer=self.parts.sealer,
                now=self.clock.now(),
            )
        )

    async def release(self, *datasets: DatasetId) -> None:
        for dataset in datasets:
            await self.store.write(lambda tx, each=dataset: release(tx, each))

    async def turn(self) -> int:
        """One turn of every lane with something due; how many there were."""
        claims = await claim_lanes(self.parts, free=64, free_for_slow=64, busy=())
        outcomes = Outcomes(self.store)
        lanes = await load_lanes(self.parts, [claim for claim, _ in claims])

        async def take(claim: Claim, lane: Lane) -> None:
            await outcomes.record(await deliver_due(self.parts, claim, lane))

        await asyncio.gather(*(take(*each) for each in lanes))
        return len(claims)

    async def drain(self) -> None:
        """Turns until nothing is due at this moment."""
        while await self.turn():
            pass

    async def play_out(self, **most: float) -> None:
        """Move the clock from due time to due time until nothing waits, or for so long."""
        until = self.clock.moment + timedelta(**(most or {"days": 30}))
        while True:
            await self.drain()
            moments = [row.next_at for row in await self.rows() if row.next_at is not None]
            if not moments or min(moments) > until:
                return
            self.clock.moment = min(moments)

    async def rows(self) -> list[DeliveryRow]:
        """What waits anywhere."""

        def work(tx: Transaction) -> list[DeliveryRow]:
            hooks = tx.webhooks.page(workspace=self.subscriber.workspace_id, after=None, limit=5000)
            found = [tx.deliveries.page(hook.id, before=None, limit=5000) for hook in hooks]
            return [row for rows in found for row in rows]

        return await self.store.read(work)

    async def show(self, webhook: WebhookId) -> Webhook:
        return await self.store.read(
            lambda tx: get_webhook(tx, self.subscriber, webhook, now=self.clock.now())
        )

    async def deliveries(self, webhook: WebhookId) -> list[Delivery]:
        """What was sent to a webhook, oldest first."""
        page = await self.store.read(
            lambda tx: list_deliveries(tx, self.subscriber, webhook, cursor=None, limit=500)
        )
        return page.deliveries[::-1]

    async def resume(self, webhook: WebhookId, start: str) -> Webhook:
        now = self.clock.now()
        return await self.store.write(
            lambda tx: resume_webhook(tx, self.subscriber, webhook, Resume(from_=start), now=now)
        )

    async def ping(self, webhook: WebhookId) -> Delivery:
        found = await self.store.read(lambda tx: find_webhook(tx, self.subscriber, webhook))
        return await send_ping(self.parts, found)


def play(
    folder: Path, story: Callable[[Lanes], Awaitable[T]], *, poster: Poster | None = None
) -> T:
    """Run a story over a new database, or over the one that a folder holds."""

    async def run() -> T:
        lanes = Lanes(folder, poster=poster)
        await lanes.open()
        try:
            return await story(lanes)
        finally:
            await lanes.close()

    return asyncio.run(run())
