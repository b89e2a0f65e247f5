"""What must not grow with the number of datasets and subscriptions: a page, a claim, the overview.

`python -m tests.bench.bench_growth` prints the least CPU milliseconds of each, over SQLite, beside
few and many: one page of 100 events of one log, one look for webhooks with something due of which
one has, with its claim, and what staff watch.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

from tests.bench.bench_fan_out import EVENTS, WHO, page
from tests.fakes.releases import NOW, declare

from ploti.model.admin import Disk
from ploti.model.event import EventType
from ploti.model.ids import DatasetId, SubscriptionId, WebhookId
from ploti.model.subscription import Selection
from ploti.model.webhook import WebhookState
from ploti.model.wire import Instant
from ploti.server.adapters.store import SqliteStore
from ploti.server.deliver.health import Health
from ploti.server.eventlog.drafts import Draft
from ploti.server.ports.rows import SubscriptionRow, WebhookRow
from ploti.server.ports.store import Transaction
from ploti.server.service.read_status import read_status

SIZES = ((10, 1), (10_000, 1), (10, 10_000), (10_000, 10_000))
ROUNDS = 30
FIRST = SubscriptionId("sub_0")
DISK = Disk(free_bytes=1 << 30, needed_bytes=1 << 20, checks_wait=False)


def fill(tx: Transaction, *, datasets: int, subscriptions: int) -> None:
    """Datasets, and subscriptions with a webhook each, of which the first alone has events."""
    for number in range(datasets):
        declare(tx, DatasetId(f"ds_{number}"))
    for number in range(subscriptions):
        subscription = SubscriptionId(f"sub_{number}")
        tx.subscriptions.add(
            SubscriptionRow(
                id=subscription,
                workspace_id=WHO.workspace_id,
                name="",
                selection=Selection(datasets=[DatasetId("ds_0")]),
                created_at=NOW,
            )
        )
        tx.webhooks.add(webhook(number, subscription))
    told = Draft(type=EventType.STALE, dataset_id=DatasetId("ds_0"), linked_version=None, data="{}")
    tx.log.append([told] * EVENTS, to=[FIRST], now=NOW)


def webhook(number: int, subscription: SubscriptionId) -> WebhookRow:
    return WebhookRow(
        id=WebhookId(f"wh_{number}"),
        workspace_id=WHO.workspace_id,
        subscription_id=subscription,
        member_id=WHO.member_id,
        url="https://receiver.example",
        events=None,
        secrets=[],
        created_at=NOW,
        state=WebhookState.ON,
        off_reason=None,
        off_at=None,
        cursor=0,
        rounds=0,
        replay_until=0,
        served_at=NOW,
        health=Health(),
    )


async def least(work: Callable[[], Awaitable[object]]) -> float:
    """The least CPU milliseconds of a few rounds, in all threads."""
    spent = []
    for _ in range(ROUNDS):
        began = time.process_time()
        await work()
        spent.append((time.process_time() - began) * 1000)
    return min(spent)


async def claim(store: SqliteStore) -> None:
    until = Instant.of(NOW + timedelta(minutes=1))
    ready = await store.read(lambda tx: tx.webhooks.ready(at=NOW, limit=64))
    ids = [lane.webhook_id for lane in ready]
    assert len(ids) == 1
    (claimed,) = await store.write(lambda tx: tx.webhooks.claim(ids, at=NOW, until=until))
    await store.write(lambda tx: tx.webhooks.give_back(claimed, webhook(0, FIRST)))


async def measure(*, datasets: int, subscriptions: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(str(Path(folder) / "ploti.db"))
        await store.write(lambda tx: fill(tx, datasets=datasets, subscriptions=subscriptions))
        costs = [
            await least(lambda: store.read(lambda tx: page(tx, FIRST))),
            await least(lambda: claim(store)),
            await least(lambda: store.read(lambda tx: read_status(tx, disk=DISK, now=NOW))),
        ]
        await store.close()
    told = " | ".join(f"{cost:.2f}" for cost in costs)
    print(f"| {datasets:,} | {subscriptions:,} | {told} |", flush=True)


def main() -> None:
    print("\n| datasets | subscriptions | page, ms | claim, ms | overview, ms |")
    print("|--:|--:|--:|--:|--:|")
    for datasets, subscriptions in SIZES:
        asyncio.run(measure(datasets=datasets, subscriptions=subscriptions))


if __name__ == "__main__":
    main()
