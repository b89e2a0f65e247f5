"""How far a build is can be read while it runs, and is forgotten with it."""

import asyncio
from pathlib import Path

from tests.fakes.world import PERMITS, World, play, table

from ploti.cli.building import say_progress
from ploti.model.admin import BuildProgress, BuildStage, OutcomeKind
from ploti.server.service.read_datasets import get_admin_dataset, list_admin_datasets
from ploti.server.service.read_status import read_status
from ploti.server.service.watch_disk import read_disk

WRITING = BuildProgress(stage=BuildStage.WRITING, rows=1000, share=0.5)


def test_the_last_word_of_a_build_is_in_the_status_and_with_its_dataset(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        await world.declare()
        world.builder.progress = [BuildProgress(stage=BuildStage.READING), WRITING]
        world.builder.gate.clear()
        pushed = asyncio.create_task(world.push(table({"a": "1"})))
        async with asyncio.timeout(60):
            while (found := await building(world)) != WRITING:
                assert found is None
                await asyncio.sleep(0.05)
        now = world.clock.now()
        disk = await read_disk(world.blobs, needed=0)
        seen = await world.read(lambda tx: read_status(tx, disk=disk, now=now))
        assert [(each.dataset_id, each.progress) for each in seen.building] == [(PERMITS, WRITING)]
        page = await world.read(lambda tx: list_admin_datasets(tx, cursor=None, limit=10))
        assert page.datasets[0].building == seen.building[0]
        world.builder.gate.set()
        assert (await pushed).outcome is OutcomeKind.RELEASED
        shown = await world.read(lambda tx: get_admin_dataset(tx, PERMITS))
        assert shown.building is None

    play(tmp_path, story)


def test_how_much_of_a_source_is_fetched_is_told_before_its_build_begins(tmp_path: Path) -> None:
    fetching = BuildProgress(stage=BuildStage.FETCHING, bytes=5_000_000, share=0.25)

    async def story(world: World) -> None:
        await world.declare(source={"kind": "http", "url": "https://data.example/a.csv"})
        world.source.bytes = table({"a": "1"}).encode()
        world.source.told = [fetching]
        seen: list[BuildProgress | None] = []

        async def look() -> None:
            async with asyncio.timeout(60):
                while (found := await building(world)) != fetching:
                    assert found is None
                    await asyncio.sleep(0.05)
            seen.append(found)

        world.source.before = look
        assert (await world.check()).outcome is OutcomeKind.RELEASED
        assert seen == [fetching]
        assert say_progress(fetching) == "fetching 25%, 5,000,000 bytes"

    play(tmp_path, story)


async def building(world: World) -> BuildProgress | None:
    found = await world.read(lambda tx: get_admin_dataset(tx, PERMITS))
    return found.building.progress if found.building else None
