"""Checks that come due, and sources that are late, over a real database and real files."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.plans import ALL_OPEN
from tests.fakes.world import PERMITS, ROADS, World, play, table

from ploti.model.admin import AdminDataset, OutcomeKind, Status
from ploti.model.ids import DatasetId, HoldId
from ploti.model.wire import Instant
from ploti.server.ports.rows import JobKind
from ploti.server.service.check_source import end_left_attempts
from ploti.server.service.read_datasets import get_admin_dataset
from ploti.server.service.read_status import read_status
from ploti.server.service.steer_dataset import pause_dataset, remove_dataset, resume_dataset
from ploti.server.service.watch_disk import read_disk
from ploti.server.sources.source import Source
from ploti.server.worker import jobs
from ploti.server.worker.jobs import Jobs

Play = Callable[[Callable[[World], Awaitable[None]]], None]
SOURCE = {"kind": "http", "url": "https://data.example/permits.csv"}
STALE = ("stale", "check_overdue")


@pytest.fixture
def run(tmp_path: Path) -> Play:
    return lambda story: play(tmp_path, story)


async def work(world: World) -> None:
    """Do all that is due now, as the worker does, and wait for it."""
    worker = Jobs(world.parts)
    await worker.look()
    await worker.finish()


async def declare(world: World, *, every: str | None = "24h", **settings: Any) -> None:
    await world.declare(**({"source": SOURCE, "check_every": every} | settings))


async def show(world: World, dataset: DatasetId = PERMITS) -> AdminDataset:
    return await world.read(lambda tx: get_admin_dataset(tx, dataset))


async def status(world: World) -> Status:
    now = world.clock.now()
    disk = await read_disk(world.blobs, needed=0)
    return await world.read(lambda tx: read_status(tx, disk=disk, now=now))


def pass_hours(world: World, hours: float) -> None:
    world.clock.moment = Instant.of(world.clock.moment + timedelta(hours=hours))


def test_a_source_is_due_at_its_declaration_then_each_interval_s08(run: Play) -> None:
    async def story(world: World) -> None:
        await declare(world)
        before = await show(world)
        assert (before.last_checked_at, before.next_check_by) == (None, world.clock.moment)
        world.source.bytes = table({"a": "deck"}).encode()
        await work(world)
        first = await show(world)
        assert first.current is not None
        assert first.last_checked_at is not None
        assert first.next_check_by == first.last_checked_at + timedelta(hours=24)
        world.source.bytes = table({"a": "pool"}).encode()
        await work(world)
        assert (await show(world)).current == first.current
        pass_hours(world, 24)
        await work(world)
        assert (await show(world)).current != first.current

    run(story)


def test_stale_is_sent_once_for_each_missed_check_r043_r044_r045_s08(run: Play) -> None:
    async def story(world: World) -> None:
        await declare(world)
        subscription = await world.subscribe()
        world.source.bytes = table({"a": "deck"}).encode()
        await work(world)
        checked = (await show(world)).last_checked_at
        world.source.bytes = None
        for hours in (24, 23.9):
            pass_hours(world, hours)
            await work(world)
        assert STALE not in await world.told(subscription.id)
        for hours in (0.2, 1, 48):
            pass_hours(world, hours)
            await work(world)
        for source in ({}, SOURCE):  # each plans what is due anew
            await declare(world, source=source)
            await work(world)
        told = await world.told(subscription.id)
        assert told == [("added", None), ("resync_required", 1, "first_version"), STALE]
        data = (await world.events(subscription.id))[-1]["data"]
        assert data == {
            "datasetId": PERMITS,
            "reason": "check_overdue",
            "lastCheckedAt": str(checked),
        }
        world.source.bytes = table({"a": "deck"}).encode()
        pass_hours(world, 24)
        await work(world)
        world.source.bytes = None
        for _ in range(3):
            pass_hours(world, 24)
            await work(world)
        assert (await world.told(subscription.id)).count(STALE) == 2

    run(story)


def test_without_an_interval_nothing_is_ever_stale_and_a_push_counts_as_a_check_s08(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        await declare(world, every=None)
        subscription = await world.subscribe()
        pass_hours(world, 1000)
        await work(world)
        assert await world.told(subscription.id) == [("added", None)]
        assert (await show(world)).next_check_by is None
        await declare(world, every="24h", source={})
        for _ in range(3):
            pass_hours(world, 40)
            await world.push(table({"a": str(world.clock.moment)}))
            await work(world)
        assert STALE not in await world.told(subscription.id)
        pass_hours(world, 49)
        await work(world)
        assert (await world.told(subscription.id))[-1] == STALE

    run(story)


@pytest.mark.parametrize("end", [World.release, World.discard])
def test_stale_waits_for_the_end_of_a_hold_r079_s07(
    run: Play, end: Callable[[World, HoldId], Awaitable[object]]
) -> None:
    async def story(world: World) -> None:
        await declare(world)
        subscription = await world.subscribe()
        world.source.bytes = table({"a": "deck"}).encode()
        await work(world)
        await world.push(table({"a": "deck"}, columns="id,sort"))
        [hold] = await world.holds()
        world.source.bytes = None
        pass_hours(world, 49)
        await work(world)
        assert (await world.told(subscription.id))[-1][0] == "delayed"
        await end(world, hold.id)
        await work(world)
        assert (await world.told(subscription.id))[-1] == STALE

    run(story)


def test_a_check_that_fails_is_tried_again_and_shown_since_when(run: Play) -> None:
    async def story(world: World) -> None:
        await declare(world)
        world.source.bytes = None
        await work(world)
        [failing] = (await status(world)).failing
        assert (failing.dataset_id, failing.failures) == (PERMITS, 1)
        assert "503" in failing.detail
        pass_hours(world, 0.05)
        await work(world)
        assert (await status(world)).failing == [failing]
        pass_hours(world, 0.05)
        await work(world)
        [again] = (await status(world)).failing
        assert (again.since, again.failures) == (failing.since, 2)
        world.source.bytes = table({"a": "deck"}).encode()
        assert (await world.check()).outcome is OutcomeKind.RELEASED
        assert (await status(world)).failing == []

    run(story)


def test_a_paused_dataset_is_not_checked_nor_stale_until_it_is_resumed(run: Play) -> None:
    async def story(world: World) -> None:
        await declare(world)
        subscription = await world.subscribe()
        world.source.bytes = table({"a": "deck"}).encode()
        await work(world)
        await world.write(lambda tx: pause_dataset(tx, PERMITS, now=world.clock.now()))
        await declare(world, title="Another title")
        assert (await show(world)).declaration["paused"] is True
        pass_hours(world, 1000)
        await work(world)
        assert (await show(world)).next_check_by is None
        await world.write(lambda tx: resume_dataset(tx, PERMITS, now=world.clock.now()))
        assert (await show(world)).next_check_by == world.clock.moment
        world.source.bytes = table({"a": "pool"}).encode()
        await work(world)
        assert [event[0] for event in await world.told(subscription.id)] == [
            *("added", "resync_required", "updated")
        ]

    run(story)


def test_a_removed_dataset_leaves_and_comes_back_by_its_declaration_r069(run: Play) -> None:
    async def story(world: World) -> None:
        await declare(world)
        subscription = await world.subscribe()
        world.source.bytes = table({"a": "deck"}).encode()
        await work(world)
        for _ in range(2):
            await world.write(
                lambda tx: remove_dataset(tx, PERMITS, plans=ALL_OPEN, now=world.clock.now())
            )
        pass_hours(world, 100)
        await work(world)
        assert not (await show(world)).deliverable
        assert (await status(world)).queues == []
        applied = await world.declare(source=SOURCE, check_every="24h")
        assert applied.changed == ["deliverable"]
        assert await world.told(subscription.id) == [
            ("added", None),
            ("resync_required", 1, "first_version"),
            ("removed", "no_longer_deliverable"),
            ("added", 1),
        ]

    run(story)


def test_a_source_that_hangs_holds_up_no_other(run: Play) -> None:
    async def story(world: World) -> None:
        roads = {"kind": "http", "url": "https://data.example/roads.csv"}
        await declare(world)
        await world.declare(ROADS, source=roads, check_every="24h")
        world.source.bytes = table({"a": "deck"}).encode()
        never, fetch = asyncio.Event(), world.source.fetch

        async def hang(source: Source, **asked: Any) -> Any:
            if source.url == SOURCE["url"]:
                await never.wait()
            return await fetch(source, **asked)

        world.source.fetch = hang  # type: ignore[method-assign]
        async with Jobs(world.parts, look_every=0).running():
            while (await show(world, ROADS)).current is None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            [check] = [queue for queue in (await status(world)).queues if queue.kind == "check"]
            assert (check.planned, check.running, check.due) == (2, 1, 0)
            assert PERMITS in {each.dataset_id for each in (await status(world)).building}

    run(story)


def test_a_check_cut_off_by_a_crash_is_done_again_at_the_next_start(tmp_path: Path) -> None:
    async def claim(world: World) -> None:
        await declare(world)
        now = world.clock.now()
        later = Instant.of(now + timedelta(hours=1))
        claimed = await world.write(
            lambda tx: tx.jobs.claim(now=now, until=later, token="lease_1", limit=9)
        )
        assert [job.kind for job in claimed] == [JobKind.CHECK]
        await work(world)
        assert (await show(world)).current is None

    async def restart(world: World) -> None:
        world.source.bytes = table({"a": "deck"}).encode()
        await end_left_attempts(world.parts)
        await work(world)
        assert (await show(world)).current is not None

    play(tmp_path, claim)
    play(tmp_path, restart)


def test_a_lease_is_renewed_by_its_own_token_alone(run: Play) -> None:
    async def story(world: World) -> None:
        await declare(world)
        now = world.clock.now()

        first = await world.write(
            lambda tx: tx.jobs.claim(now=now, until=now, token="lease_1", limit=9)
        )
        second = await world.write(
            lambda tx: tx.jobs.claim(now=now, until=now, token="lease_2", limit=9)
        )
        assert not await world.write(lambda tx: tx.jobs.renew(first[0], until=now))
        assert await world.write(lambda tx: tx.jobs.renew(second[0], until=now))
        await declare(world, every="1h")
        await world.write(lambda tx: pause_dataset(tx, PERMITS, now=now))
        assert not await world.write(lambda tx: tx.jobs.renew(second[0], until=now))

    run(story)


def test_a_lease_is_renewed_again_after_a_database_that_failed(
    run: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    renewed = asyncio.Event()

    def lengthen(*_: object) -> bool:
        tried.append("once more")
        if len(tried) < 3:
            raise OSError("the database is away")
        renewed.set()
        return True

    async def run_job(*_: object) -> None:
        async with asyncio.timeout(60):
            await renewed.wait()

    monkeypatch.setattr(jobs, "_RENEW_EVERY", 0.01)
    monkeypatch.setattr(jobs, "_RENEW_AGAIN", 0.01)
    monkeypatch.setattr(jobs, "_lengthen", lengthen)
    monkeypatch.setattr(jobs, "run_job", run_job)

    async def story(world: World) -> None:
        await declare(world)
        await work(world)
        assert renewed.is_set()

    run(story)
