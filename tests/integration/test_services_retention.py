"""What is past retention goes, a little at a time, and nothing that a subscriber still needs."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest
from tests.fakes.plans import ALL_OPEN
from tests.fakes.world import PERMITS, World, play, table

from ploti.errors import Expired, InvalidInput
from ploti.model.ids import DatasetId
from ploti.model.version import Version
from ploti.model.wire import Instant
from ploti.server.build.candidate import FileRole
from ploti.server.ports.rows import JobKind
from ploti.server.service.check_source import end_left_attempts
from ploti.server.service.prune_old import prune
from ploti.server.service.read_catalogue import get_schema
from ploti.server.service.read_version import find_listing, get_version
from ploti.server.service.steer_dataset import remove_dataset
from ploti.server.worker.jobs import Jobs

Play = Callable[[Callable[[World], Awaitable[None]]], None]


@pytest.fixture
def run(tmp_path: Path) -> Play:
    return lambda story: play(tmp_path, story)


async def show(world: World, number: int, dataset: DatasetId = PERMITS) -> Version:
    now = world.clock.now()
    return await world.read(
        lambda tx: get_version(
            *(tx, world.reader, dataset, number), format="csv", blobs=world.blobs, now=now
        )
    )


def move(world: World, days: float) -> None:
    world.clock.moment = Instant.of(world.clock.moment + timedelta(days=days))


async def pass_days(world: World, days: int) -> None:
    """Days of a server that runs: each has its run of the retention."""
    for _ in range(days):
        move(world, 1)
        now = world.clock.now()
        assert await world.write(lambda tx, now=now: prune(tx, now=now)) is None


async def work(world: World) -> None:
    jobs = Jobs(world.parts)
    await jobs.look()
    await jobs.finish()


async def begin(world: World) -> None:
    await world.declare()
    await world.write(lambda tx: prune(tx, now=world.clock.now()))


def test_events_are_kept_for_90_days_and_then_a_cursor_expires_r125_r134_r135_s39(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        await begin(world)
        subscription = await world.subscribe()
        await world.push(table({"a": "deck"}))
        await pass_days(world, 45)
        await world.push(table({"a": "pool"}))
        await pass_days(world, 44)
        assert len(await world.events(subscription.id)) == 3
        await pass_days(world, 2)
        for cursor in (None, "evt_000000000000", "evt_000000000001"):
            with pytest.raises(Expired, match="manifest"):
                await world.events(subscription.id, after=cursor)
        assert [e["id"] for e in await world.events(subscription.id, after="evt_000000000002")] == [
            "evt_000000000003"
        ]
        await pass_days(world, 46)
        for cursor in (None, "evt_000000000000", "evt_000000000002"):
            with pytest.raises(Expired, match="manifest"):
                await world.events(subscription.id, after=cursor)
        with pytest.raises(InvalidInput, match="past this log's newest"):
            await world.events(subscription.id, after="evt_000000000004")
        assert await world.events(subscription.id, after="evt_000000000003") == []
        await world.push(table({"a": "shed"}))
        assert [e["id"] for e in await world.events(subscription.id, after="evt_000000000003")] == [
            "evt_000000000004"
        ]

    run(story)


def test_changes_are_kept_90_days_and_snapshots_since_they_stopped_being_current_r106_r126_r127_s44(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        await begin(world)
        await world.subscribe()
        await world.push(table({"a": "deck"}))
        await world.push(table({"a": "pool"}))
        await pass_days(world, 89)
        assert (await show(world, 2)).files.changes is not None
        await pass_days(world, 2)
        second = await show(world, 2)
        assert second.files.changes is None
        assert second.files.snapshot is not None
        with pytest.raises(Expired, match="past retention"):
            await world.read(lambda tx: find_listing(tx, world.reader, PERMITS, 2))
        with pytest.raises(Expired, match="load its current version"):
            await show(world, 1)
        schema = await world.read(lambda tx: get_schema(tx, world.reader, PERMITS, version=1))
        assert [column.name for column in schema.columns] == ["id", "kind"]
        await world.push(table({"a": "shed"}))
        await pass_days(world, 89)
        assert (await show(world, 2)).files.snapshot is not None
        await pass_days(world, 2)
        with pytest.raises(Expired):
            await show(world, 2)
        assert (await show(world, 3)).files.snapshot is not None

    run(story)


def test_the_current_snapshot_stays_while_the_dataset_is_not_deliverable_s45(run: Play) -> None:
    async def story(world: World) -> None:
        await begin(world)
        await world.push(table({"a": "deck"}))
        await world.write(
            lambda tx: remove_dataset(tx, PERMITS, plans=ALL_OPEN, now=world.clock.now())
        )
        await pass_days(world, 100)
        files = await world.read(lambda tx: tx.versions.files(PERMITS, 1))
        assert FileRole.SNAPSHOT in {file.role for file in files}

    run(story)


def test_the_last_snapshot_of_every_major_schema_version_stays_r127(run: Play) -> None:
    async def story(world: World) -> None:
        await begin(world)
        await world.subscribe()
        await world.push(table({"a": "deck"}))
        await world.push(table({"a": "pool"}))
        held = await world.push(table({"a": "pool"}, columns="id,sort"))
        assert held.hold is not None
        await world.release(held.hold.id)
        await pass_days(world, 92)
        with pytest.raises(Expired):
            await show(world, 1)
        assert (await show(world, 2)).files.snapshot is not None

    run(story)


def test_files_go_an_hour_after_the_last_link_to_them_has_expired(run: Play) -> None:
    async def story(world: World) -> None:
        await begin(world)
        await world.push(table({"a": "deck"}))
        await world.push(table({"a": "pool"}))
        await pass_days(world, 88)
        while len(await world.read(lambda tx: tx.versions.files(PERMITS, 1))) > 1:
            await pass_days(world, 1)
        name = "datasets/ds_permits/1/snapshot.csv"
        move(world, 0.08)
        await work(world)
        assert name in await world.kept()
        move(world, 0.01)
        await work(world)
        assert name not in await world.kept()
        assert "datasets/ds_permits/1/schema.json" in await world.kept()
        assert "datasets/ds_permits/2/snapshot.csv" in await world.kept()

    run(story)


def test_a_clock_that_jumps_removes_nothing_and_two_days_worth_at_the_most_after(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        await begin(world)
        subscription = await world.subscribe()
        await world.push(table({"a": "deck"}))
        move(world, 1000)
        stopped = await world.write(lambda tx: prune(tx, now=world.clock.now()))
        assert stopped is not None
        assert "since the last run" in stopped
        await pass_days(world, 44)
        assert len(await world.events(subscription.id)) == 2
        await pass_days(world, 2)
        with pytest.raises(Expired):
            await world.events(subscription.id)
        move(world, -500)
        back = await world.write(lambda tx: prune(tx, now=world.clock.now()))
        assert back is not None
        assert "went back" in back

    run(story)


def test_the_clock_may_not_be_behind_what_is_written(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        await world.subscribe()
        move(world, -1)
        stopped = await world.write(lambda tx: prune(tx, now=world.clock.now()))
        assert stopped is not None
        assert "an event was written" in stopped

    run(story)


def test_a_server_runs_it_from_its_first_start_and_plans_the_next_day(run: Play) -> None:
    async def story(world: World) -> None:
        await end_left_attempts(world.parts)
        await work(world)
        last = await world.read(lambda tx: tx.retention.last_run())
        assert last is not None
        await end_left_attempts(world.parts)
        assert not await world.read(lambda tx: tx.jobs.is_any_due(now=world.clock.now()))
        assert await world.read(lambda tx: tx.jobs.is_planned(JobKind.PRUNE, ""))
        move(world, 1)
        await work(world)
        assert await world.read(lambda tx: tx.retention.last_run()) != last

    run(story)
