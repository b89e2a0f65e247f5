"""The law of the log under many writers that are killed, and what its locks are there for.

`make law SECONDS=300` runs it for minutes.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
from sqlalchemy import select
from tests.fakes.log_deeds import (
    DATASETS,
    KEPT,
    WHO,
    Work,
    all_events,
    check_logs,
    page,
    subscribe,
)
from tests.fakes.log_writer import SEALED_WITH, delivering, open_store
from tests.fakes.plans import ALL_OPEN
from tests.fakes.releases import NOW, declare, release

from ploti.model.ids import START, DatasetId, SubscriptionId
from ploti.model.subscription import NewSubscription
from ploti.model.webhook import NewWebhook
from ploti.server.adapters.clock import SystemClock
from ploti.server.adapters.ids import RandomIds
from ploti.server.adapters.sealer import Sealer
from ploti.server.adapters.store import PostgresStore, SqlStore
from ploti.server.adapters.store.datasets import SqlDatasets
from ploti.server.adapters.store.log import SqlLog
from ploti.server.adapters.store.runs import numbers
from ploti.server.adapters.store.subscriptions import SqlMemberships
from ploti.server.adapters.store.tables import dataset, feed_log, feed_run
from ploti.server.eventlog.drafts import Standing
from ploti.server.ports.rows import MemberRow
from ploti.server.ports.store import Transaction
from ploti.server.service.change_subscription import create_subscription
from ploti.server.service.change_webhook import create_webhook
from ploti.server.worker.deliveries import DeliveryWorker

ROOT = Path(__file__).parents[2]
SECONDS = float(os.environ.get("LAW_SECONDS", "4"))
URL = "http://kept"


class Writers:
    """Processes that write; one that is killed has another in its place."""

    def __init__(self, where: str, sent: Path, *, writers: int, random: Random) -> None:
        self._command = [sys.executable, "-m", "tests.fakes.log_writer", where, str(sent)]
        self._writers = str(writers)
        self._random = random
        self._running: list[subprocess.Popen[str]] = []
        self.begun = 0

    def begin(self) -> None:
        """Begin one more; returns once it writes."""
        self.begun += 1
        seed = str(self._random.randrange(1 << 30))
        process = subprocess.Popen(
            [*self._command, seed, self._writers], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        self._running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "writes\n"

    def kill_one(self) -> None:
        process = self._running.pop(self._random.randrange(len(self._running)))
        process.kill()
        process.communicate()

    def kill_all(self) -> None:
        while self._running:
            self.kill_one()


async def follow(store: SqlStore, done: asyncio.Event) -> list[dict[str, Any]]:
    """What a subscriber sees that reads all the time."""
    seen: list[dict[str, Any]] = []
    cursor: str = START
    while True:
        last_round = done.is_set()
        found = await store.read(lambda tx, cursor=cursor: page(tx, KEPT, cursor))
        seen += found["events"]
        if found["nextCursor"] == cursor:
            if last_round:
                return seen
            await asyncio.sleep(0.005)
        cursor = found["nextCursor"]


def prepare(tx: Transaction) -> None:
    tx.members.add(
        MemberRow(id=WHO.member_id, workspace_id=WHO.workspace_id, name="Ada", created_at=NOW)
    )
    for each in DATASETS:
        declare(tx, each)
    subscribe(KEPT, "us")(tx)
    new = NewWebhook(url=URL, subscription_id=KEPT)
    create_webhook(tx, WHO, new, ids=RandomIds(), sealer=Sealer([SEALED_WITH]), now=NOW)


async def deliver_the_rest(store: SqlStore, sent: Path) -> None:
    await store.write(lambda tx: tx.webhooks.end_leases())
    worker = DeliveryWorker(delivering(store, sent))
    run = asyncio.create_task(worker.run())
    (last,) = (await store.read(lambda tx: tx.log.last_numbers([KEPT]))).values()
    async with asyncio.timeout(120 + SECONDS):  # the longer it ran, the more there may be
        while max((number for number, _ in deliveries(sent)), default=0) < last:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    run.cancel()
    await asyncio.wait([run])
    await worker.finish()


def deliveries(sent: Path) -> list[tuple[int, str]]:
    """The number and the dataset of each event that was posted, in the order of the posts."""
    events = [json.loads(line.partition(b" ")[2]) for line in sent.read_bytes().splitlines()]
    return [(int(event["id"][4:]), event["data"]["datasetId"]) for event in events]


def check_delivered(sent: Path, seen: list[dict[str, Any]], *, from_: int) -> None:
    """Each event after the webhook's first was posted, of each dataset in its order."""
    first: dict[int, str] = {}
    for number, of in deliveries(sent):
        first.setdefault(number, of)
    assert set(first) == set(range(from_, len(seen) + 1))
    orders: defaultdict[str, list[int]] = defaultdict(list)
    for number, of in first.items():
        orders[of].append(number)
    assert all(numbers == sorted(numbers) for numbers in orders.values())


def count_strays(store: SqlStore) -> tuple[int, int]:
    """Runs of no log, and logs whose bodies do not rise or are not as many as counted."""
    with store._readers.begin() as connection:
        runs: defaultdict[int, list[int]] = defaultdict(list)
        in_order = select(feed_run).order_by(feed_run.c.log, feed_run.c.first_seq)
        for run in connection.execute(in_order):
            assert run.first_seq == len(runs[run.log]) + 1
            runs[run.log] += numbers(run.bodies)
        other = 0
        for log in connection.execute(select(feed_log)):
            settled = runs.pop(log.log, [])
            bodies = settled + numbers(log.newest)
            rise = all(before < after for before, after in pairwise(bodies))
            other += not rise or (len(settled), len(bodies)) != (log.settled_seq, log.last_seq)
    return len(runs), other


async def play(where: str, folder: Path, *, processes: int, writers: int) -> tuple[int, int]:
    """How many events a log came to, and how many writers were killed for it."""
    sent = folder / "sent"
    sent.touch()
    random = Random()
    store = open_store(where)
    running = Writers(where, sent, writers=writers, random=random)
    try:
        await store.write(prepare)
        begin = len(await store.read(lambda tx: all_events(tx, KEPT))) + 1
        done = asyncio.Event()
        reader = asyncio.create_task(follow(store, done))
        for _ in range(processes):
            await asyncio.to_thread(running.begin)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            await asyncio.sleep(random.uniform(0.2, 2.0))
            running.kill_one()
            await asyncio.to_thread(running.begin)
        running.kill_all()
        await deliver_the_rest(store, sent)
        done.set()
        seen = await reader
        await store.read(check_logs)
        assert seen == await store.read(lambda tx: all_events(tx, KEPT))
        assert count_strays(store) == (0, 0)
        check_delivered(sent, seen, from_=begin)
        return len(seen), running.begun
    finally:
        running.kill_all()
        await store.close()


@pytest.mark.parametrize(
    ("database", "processes", "writers"), [("sqlite", 1, 8), ("postgres", 2, 4)]
)
def test_r003_r076_logs_stay_whole_and_delivered_under_8_writers_that_are_killed(
    tmp_path: Path, request: pytest.FixtureRequest, database: str, processes: int, writers: int
) -> None:
    """SQLite's writers share a process, which alone may write; PostgreSQL's are of several."""
    where = str(tmp_path / "ploti.db")
    if database == "postgres":
        where = request.getfixturevalue("postgres_url")
    events, begun = asyncio.run(play(where, tmp_path, processes=processes, writers=writers))
    print(f"{database}: {events} events in the kept log, {begun} processes")
    assert events > len(DATASETS)
    assert begun > processes


class Step:
    """A named step of a transaction, at which the first that comes waits until it is let go."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._armed, self._reached, self._go = (threading.Event() for _ in range(3))

    def wait(self) -> None:
        """Called at the step."""
        if self._armed.is_set() and not self._reached.is_set():
            self._reached.set()
            assert self._go.wait(60)

    async def meet(self, store: SqlStore, first: Work, second: Work) -> None:
        """Bring `first` to the step; let `second` go as far as it can; then finish both."""
        self._armed.set()
        one = asyncio.create_task(store.write(first))
        assert await asyncio.to_thread(self._reached.wait, 60)
        other = asyncio.create_task(store.write(second))
        async with asyncio.timeout(60):
            while not other.done() and not self._is_waiting():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        self._go.set()
        await asyncio.gather(one, other)

    def _is_waiting(self) -> bool:
        """Whether a transaction waits for another one's lock."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            row = connection.execute(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock'"
            ).fetchone()
        return row is not None and row[0] > 0


def race(
    url: str, step: Step, *, before: Work, first: Work, second: Work, after: Work
) -> list[str]:
    """Two transactions meet at the step; what is wrong with the logs afterwards."""

    async def story() -> list[str]:
        store = PostgresStore(url, now=SystemClock().now)
        try:
            await store.write(before)
            await step.meet(store, first, second)
            await store.write(after)
            return await store.read(faults)
        finally:
            await store.close()

    return asyncio.run(story())


def faults(tx: Transaction) -> list[str]:
    """Chains that are broken, and datasets that a subscription to everything does not deliver."""
    found = []
    try:
        check_logs(tx)
    except AssertionError:
        found.append("a broken chain")
    everything = {each.dataset_id for each in tx.datasets.filings()}
    if any(tx.memberships.of(row.id) != everything for row in tx.subscriptions.every()):
        found.append("a dataset not delivered")
    return found


A, NEW = DATASETS[0], DatasetId("ds_new")
JOINER = SubscriptionId("sub_joiner")


def at(step: Step, monkeypatch: pytest.MonkeyPatch, kind: type, name: str) -> None:
    """Make this call of the store's a step: it waits there once it is done."""
    real: Callable[..., Any] = getattr(kind, name)

    def stepping(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        step.wait()
        return found

    monkeypatch.setattr(kind, name, stepping)


def without_dataset_lock(self: SqlDatasets, dataset_ids: set[DatasetId]) -> list[Standing]:
    """How datasets stand, and nothing keeps a release from passing them."""
    return self._standings(dataset.c.id.in_(sorted(dataset_ids)))


@pytest.mark.parametrize("is_locked", [True, False])
def test_without_the_datasets_lock_one_that_joins_beside_a_release_gets_a_broken_chain(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, *, is_locked: bool
) -> None:
    def before(tx: Transaction) -> None:
        declare(tx, A)
        release(tx, A)

    step = Step(postgres_url)
    if not is_locked:
        monkeypatch.setattr(SqlDatasets, "lock_standing", without_dataset_lock)
    at(step, monkeypatch, SqlDatasets, "lock_standing")
    found = race(
        *(postgres_url, step),
        before=before,
        first=subscribe(JOINER, "us"),
        second=lambda tx: release(tx, A),
        after=lambda tx: release(tx, A),
    )
    assert found == ([] if is_locked else ["a broken chain"])


@pytest.mark.parametrize("is_locked", [True, False])
def test_without_the_catalogues_lock_one_that_joins_beside_a_declaration_misses_the_dataset(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, *, is_locked: bool
) -> None:
    step = Step(postgres_url)
    if not is_locked:
        monkeypatch.setattr(
            SqlDatasets, "lock_catalogue", lambda self, *, exclusive: self.revision()
        )
    at(step, monkeypatch, SqlDatasets, "filings")
    found = race(
        *(postgres_url, step),
        before=lambda tx: declare(tx, A),
        first=subscribe(JOINER, "us"),
        second=lambda tx: declare(tx, NEW),
        after=lambda tx: release(tx, NEW),
    )
    assert found == ([] if is_locked else ["a dataset not delivered"])


def test_a_dataset_filed_anew_locks_the_logs_that_it_leaves_and_joins_in_one_order(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release to both waits for it; locked one after the other, each would wait for the other."""
    runs: list[str] = []
    step = Step(postgres_url)
    at(step, monkeypatch, SqlLog, "_lock")

    def subscribe_to(subscription: SubscriptionId, place: str, tx: Transaction) -> None:
        new = NewSubscription(places=[place], datasets=[A])
        create_subscription(tx, WHO, new, id=subscription, plans=ALL_OPEN, now=NOW)

    def before(tx: Transaction) -> None:
        declare(tx, A)
        declare(tx, NEW, place="us/fl")
        subscribe_to(SubscriptionId("sub_1"), "us/ga", tx)
        subscribe_to(SubscriptionId("sub_2"), "us/fl", tx)

    def file_anew(tx: Transaction) -> None:
        runs.append("filed")
        declare(tx, NEW, place="us/ga")

    def tell_both(tx: Transaction) -> None:
        runs.append("released")
        release(tx, A)

    async def story() -> None:
        store = PostgresStore(postgres_url, now=SystemClock().now)
        try:
            await store.write(before)
            await step.meet(store, file_anew, tell_both)
            await store.read(check_logs)
        finally:
            await store.close()

    asyncio.run(story())
    assert runs == ["filed", "released"]


def test_one_that_leaves_beside_a_release_hears_of_it_before_it_leaves_or_not_at_all(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Step(postgres_url)
    at(step, monkeypatch, SqlMemberships, "leave")

    def before(tx: Transaction) -> None:
        declare(tx, A)
        subscribe(JOINER, "us")(tx)

    def back(tx: Transaction) -> None:
        subscribe(JOINER, "us")(tx)
        release(tx, A)

    assert (
        race(
            *(postgres_url, step),
            before=before,
            first=subscribe(JOINER, "us/ga"),
            second=lambda tx: release(tx, A),
            after=back,
        )
        == []
    )
