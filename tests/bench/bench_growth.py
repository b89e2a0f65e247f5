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
from pathlib import Path

from tests.bench.bench_fan_out import EVENTS, page
from tests.fakes import logs
from tests.fakes.log_writer import delivering
from tests.fakes.releases import NOW, declare

from ploti.model.admin import Disk
from ploti.model.ids import DatasetId, SubscriptionId
from ploti.server.adapters.store import SqliteStore
from ploti.server.ports.store import Transaction
from ploti.server.service.deliver_due import Delivering, claim_lanes
from ploti.server.service.read_status import read_status

SIZES = ((10, 1), (10_000, 1), (10, 10_000), (10_000, 10_000))
ROUNDS = 30
DATASET = DatasetId("ds_0")
FIRST = SubscriptionId("sub_0")
DISK = Disk(free_bytes=1 << 30, needed_bytes=1 << 20, checks_wait=False)


def fill(tx: Transaction, *, datasets: int, subscriptions: int) -> None:
    """Datasets, and subscriptions with a webhook each, of which the first alone has events."""
    for number in range(datasets):
        declare(tx, DatasetId(f"ds_{number}"))
    for number in range(subscriptions):
        tx.subscriptions.add(logs.subscription(number, DATASET, now=NOW))
        tx.webhooks.add(logs.webhook(number, now=NOW))
    tx.log.append([logs.stale(DATASET)] * EVENTS, to=[FIRST], now=NOW)
    for number in range(subscriptions):
        tx.webhooks.plan(logs.webhook(number, now=NOW), at=NOW)


async def least(work: Callable[[], Awaitable[object]]) -> float:
    """The least CPU milliseconds of a few rounds, in all threads."""
    spent = []
    for _ in range(ROUNDS):
        began = time.process_time()
        await work()
        spent.append((time.process_time() - began) * 1000)
    return min(spent)


async def claim(parts: Delivering) -> None:
    """A look and a claim; then the lane is as it was."""
    ((claimed, _),) = await claim_lanes(parts, free=64, free_for_slow=32, busy=())
    row = logs.webhook(0, now=NOW)

    def end(tx: Transaction) -> None:
        tx.webhooks.give_back(claimed, row)
        tx.webhooks.plan(row, at=NOW)

    await parts.store.write(end)


async def measure(*, datasets: int, subscriptions: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(str(Path(folder) / "ploti.db"))
        parts = delivering(store, Path(folder) / "sent")
        await store.write(lambda tx: fill(tx, datasets=datasets, subscriptions=subscriptions))
        costs = [
            await least(lambda: store.read(lambda tx: page(tx, FIRST))),
            await least(lambda: claim(parts)),
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
