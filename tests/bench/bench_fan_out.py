"""One release appended to the logs of 10,000 subscriptions, and pages of 100 events read back."""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.fakes import postgres
from tests.fakes.releases import NOW, declare, release

from ploti.model.ids import DatasetId, KeyId, MemberId, SubscriptionId, WorkspaceId
from ploti.model.subscription import Selection
from ploti.server.adapters.clock import SystemClock
from ploti.server.adapters.store import PostgresStore, SqliteStore, SqlStore
from ploti.server.membership.principal import Principal
from ploti.server.ports.rows import SubscriptionRow
from ploti.server.ports.store import Transaction
from ploti.server.service.read_events import read_events

DATASET = DatasetId("ds_a")
LOGS = 10_000
ROUNDS = 10
EVENTS = 100
GOAL = 60
"""Milliseconds (testing.md, 'Benchmarks')."""
GOAL_OF_POSTGRES = 150
WHO = Principal(
    workspace_id=WorkspaceId("ws_1"),
    member_id=MemberId("mem_1"),
    key_id=KeyId("key_1"),
    permissions=frozenset({"feeds"}),
)


def log(number: int) -> SubscriptionId:
    return SubscriptionId(f"sub_{number * 7919 % 10_007:016x}")


def subscribe(tx: Transaction) -> None:
    for number in range(LOGS):
        tx.subscriptions.add(
            SubscriptionRow(
                id=log(number),
                workspace_id=WHO.workspace_id,
                name="",
                selection=Selection(datasets=[DATASET]),
                created_at=NOW,
            )
        )
    tx.memberships.join([(log(number), DATASET) for number in range(LOGS)])


def page(tx: Transaction, subscription: SubscriptionId | None = None) -> int:
    found = read_events(
        *(tx, WHO, subscription or log(5)),
        cursor=None,
        limit=100,
        types=frozenset(),
        base="https://api.example",
    )
    return len(found.text)


async def timed(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Milliseconds on the wall, and of CPU."""
    wall, cpu = time.perf_counter(), time.process_time()
    await work()
    return (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000


def told(times: list[tuple[float, float]]) -> str:
    wall, cpu = (sorted(each) for each in zip(*times, strict=True))
    middle = len(times) // 2
    return f"wall {wall[0]:.1f} ms best, {wall[middle]:.1f} median; CPU {cpu[middle]:.1f} median"


async def measure(store: SqlStore, *, goal: int) -> None:
    await store.write(lambda tx: declare(tx, DATASET))
    await store.write(subscribe)
    releases = [
        await timed(lambda: store.write(lambda tx: release(tx, DATASET))) for _ in range(EVENTS)
    ]
    print(f"{type(store).__name__}, release to {LOGS:,} logs (goal {goal} ms):")
    for first in (0, EVENTS - ROUNDS):
        print(f"  holding {first} events each: {told(releases[first : first + ROUNDS])}")
    pages = [await timed(lambda: store.read(page)) for _ in range(200)]
    size = await store.read(page)
    print(f"  page of 100 events ({size:,} bytes): {told(pages)}")
    await store.close()


async def on_sqlite() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ploti.db"
        await measure(SqliteStore(str(file)), goal=GOAL)
        print(f"  database: {file.stat().st_size / (LOGS * EVENTS):.0f} bytes an event")


async def on_postgres() -> None:
    with postgres.running() as cluster, cluster.database() as url:
        await measure(PostgresStore(url, now=SystemClock().now), goal=GOAL_OF_POSTGRES)


def main() -> None:
    asyncio.run(on_sqlite())
    asyncio.run(on_postgres())


if __name__ == "__main__":
    main()
