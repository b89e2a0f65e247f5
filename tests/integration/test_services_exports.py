"""CSV of large versions: made by one job when it is asked for, then kept like other files."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest
from tests.fakes.world import PERMITS, World, play, table

from ploti.errors import Unavailable
from ploti.model.version import Version
from ploti.model.wire import Instant
from ploti.server.ports.rows import JobKind
from ploti.server.service.check_source import end_left_attempts
from ploti.server.service.export_version import export_version, plan_export
from ploti.server.service.read_version import get_version
from ploti.server.worker.jobs import Jobs

Play = Callable[[Callable[[World], Awaitable[None]]], None]
SECOND = f"{PERMITS}/2"


@pytest.fixture
def run(tmp_path: Path) -> Play:
    return lambda story: play(tmp_path, story)


async def large_versions(world: World) -> None:
    world.builder.large = True
    await world.declare()
    await world.subscribe()
    await world.push(table({"a": "deck", "b": "shed"}))
    await world.push(table({"a": "pool", "c": "shed"}))


async def ask(world: World, *, format: str = "csv") -> Version:
    return await world.read(
        lambda tx: get_version(
            *(tx, world.reader, PERMITS, 2),
            format=format,
            blobs=world.blobs,
            now=world.clock.now(),
        )
    )


async def order(world: World) -> None:
    now = world.clock.now()
    await world.write(lambda tx: plan_export(tx, PERMITS, 2, now=now))


async def work(world: World) -> None:
    jobs = Jobs(world.parts)
    await jobs.look()
    await jobs.finish()


async def is_planned(world: World) -> bool:
    return await world.read(lambda tx: tx.jobs.is_planned(JobKind.EXPORT, SECOND))


def test_a_large_versions_csv_is_made_by_one_job_and_kept(run: Play) -> None:
    async def story(world: World) -> None:
        await large_versions(world)
        with pytest.raises(Unavailable, match="The CSV of version 2 of ds_permits") as refused:
            await ask(world)
        assert refused.value.retry_after == 5
        world.builder.gate.clear()
        await order(world)
        first = Jobs(world.parts)
        await first.look()
        for _ in range(3):
            await order(world)
            await Jobs(world.parts).look()
        world.builder.gate.set()
        await first.finish()
        assert len(world.builder.exports) == 1
        files = (await ask(world)).files
        assert files.snapshot is not None
        assert files.changes is not None
        assert [file.format for file in (*files.snapshot, *files.changes)] == ["csv", "csv"]
        await order(world)
        assert not await is_planned(world)

    run(story)


def test_csv_made_later_is_not_swept_and_other_formats_need_no_wait(run: Play) -> None:
    async def story(world: World) -> None:
        await large_versions(world)
        assert (await ask(world, format="geoparquet")).files.snapshot
        await order(world)
        await work(world)
        await world.push(table({"a": "pool", "d": "shed"}))
        await end_left_attempts(world.parts)
        names = await world.blobs.names(f"datasets/{PERMITS}/2/")
        assert sorted(name.rpartition("/")[2] for name in names if name.endswith("csv")) == [
            "changes.csv",
            "snapshot.csv",
        ]

    run(story)


def test_csv_that_cannot_be_made_is_tried_again_in_a_while_not_at_each_ask(run: Play) -> None:
    async def story(world: World) -> None:
        await large_versions(world)
        world.builder.broken = "no room"
        await order(world)
        await work(world)
        await order(world)
        await work(world)
        assert len(world.builder.exports) == 1
        world.builder.broken = None
        world.clock.moment = Instant.of(world.clock.moment + timedelta(minutes=10))
        await work(world)
        assert (await ask(world)).files.snapshot

    run(story)


def test_what_a_killed_server_left_of_an_export_is_removed_and_made_anew(run: Play) -> None:
    async def story(world: World) -> None:
        await large_versions(world)
        await order(world)
        world.builder.gate.clear()
        world.builder.building.clear()
        task = asyncio.create_task(export_version(world.parts, SECOND))
        await world.builder.building.wait()
        attempts = await world.read(lambda tx: tx.overview.building())
        assert [each.version for each in attempts] == [2]
        task.cancel()
        await asyncio.wait([task])
        world.builder.gate.set()
        await end_left_attempts(world.parts)
        await work(world)
        assert (await ask(world)).files.snapshot
        assert await world.read(lambda tx: tx.builds.to_sweep()) == []

    run(story)


def test_a_version_whose_files_are_gone_ends_its_job(run: Play) -> None:
    async def story(world: World) -> None:
        await large_versions(world)
        await order(world)
        await world.write(lambda tx: tx.versions.drop_files(PERMITS, 2))
        await work(world)
        assert not await is_planned(world)
        assert world.builder.exports == []

    run(story)
