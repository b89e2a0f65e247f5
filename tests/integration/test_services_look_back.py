"""After a release: what was added may go on from what was removed before, and staff are told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from tests.fakes.child_builder import ChildBuilder
from tests.fakes.world import PERMITS, World, play
from tests.integration.test_services_matching import csv, id_map, ids
from tests.unit.matching.tables import permits

from ploti.model.admin import Proposal, ProposalState
from ploti.model.wire import Instant
from ploti.server.build.candidate import Broken, Looked, LookOrder
from ploti.server.ports.rows import JobKind, JobRow
from ploti.server.service import look_back
from ploti.server.service.propose_ids import list_proposals, reject_proposal
from ploti.server.service.replace_ids import approve_proposal
from ploti.server.service.run_jobs import run_job

Rows = list[dict[str, object]]
LATER = timedelta(minutes=11)


def renamed(rows: Rows, *places: int) -> Rows:
    """These rows with another key at some places."""
    return [
        {**row, "permit": f"X{place}"} if place in places else row for place, row in enumerate(rows)
    ]


async def looked(world: World) -> list[Proposal]:
    """The proposals once the look that a release planned is over."""
    world.clock.moment = Instant.of(world.clock.moment + LATER)
    now = world.clock.now()
    jobs = await world.write(lambda tx: tx.jobs.claim(now=now, until=now, token="lease_1", limit=9))
    for job in jobs:
        if job.kind is JobKind.LOOK_BACK:
            await run_job(world.parts, job)
    page = await world.read(lambda tx: list_proposals(tx, PERMITS, cursor=None, limit=9))
    return page.proposals


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., None]:
    return lambda story: play(tmp_path, story, builder=ChildBuilder())


def test_a_few_records_under_new_keys_are_proposed_after_their_release_r059(
    run: Callable[..., None],
) -> None:
    """Too few for the build to look beyond their keys."""

    async def story(world: World) -> None:
        await world.declare(key=["permit"])
        await world.subscribe()
        rows = permits(300)
        await world.push(csv(rows))
        before = await ids(world, 1, key="permit")
        await world.push(csv(renamed(rows, 3, 50, 200)))
        assert await world.read(lambda tx: tx.jobs.is_planned(JobKind.LOOK_BACK, PERMITS))
        (found,) = await looked(world)
        assert (found.version, found.records, found.state) == (2, 3, ProposalState.OPEN)
        assert found.examples[0].startswith('was {"permit":"2016-')
        assert '; is {"permit":"X' in found.examples[0]
        assert not await world.read(lambda tx: tx.jobs.is_planned(JobKind.LOOK_BACK, PERMITS))
        done = await approve_proposal(world.parts, found.id, by=world.staff, note="")
        assert done.version == 3
        now = await ids(world, 3, key="permit")
        assert {now[f"X{n}"] for n in (3, 50, 200)} == {
            before[str(rows[n]["permit"])] for n in (3, 50, 200)
        }
        assert len(await id_map(world, 3)) == 3
        assert [name for name in await world.kept() if "links" in name] == []

    run(story)


def test_one_that_was_away_for_a_version_is_found_and_looked_for_once(
    run: Callable[..., None],
) -> None:
    async def story(world: World) -> None:
        await world.declare(key=["permit"])
        rows = permits(300)
        await world.push(csv(rows))
        await world.push(csv(rows[:-2]))
        assert await looked(world) == []
        await world.push(csv(renamed(rows, 298)[:-1]))
        (found,) = await looked(world)
        assert (found.version, found.records) == (3, 1)
        now = world.clock.now()
        await world.write(
            lambda tx: reject_proposal(tx, found.id, by=world.staff, note="", now=now)
        )
        await world.push(csv([*renamed(rows, 298)[:-1], {**permits(310)[305], "permit": "Y"}]))
        assert [each.state for each in await looked(world)] == [ProposalState.REJECTED]
        assert [name for name in await world.kept() if "links" in name] == []

    run(story)


def test_one_that_lived_beside_it_or_is_back_is_none(run: Callable[..., None]) -> None:
    async def story(world: World) -> None:
        await world.declare(key=["permit"])
        rows = permits(300)
        await world.push(csv(rows))
        copy = {**rows[7], "permit": "copy"}
        await world.push(csv([*rows, copy]))
        await world.push(csv([*rows[:7], *rows[8:], copy]))
        assert await looked(world) == []

    run(story)


def test_what_keys_alone_are_to_tell_is_not_looked_at(run: Callable[..., None]) -> None:
    async def story(world: World) -> None:
        await world.declare(key=["permit"], continuation="off")
        rows = permits(300)
        await world.push(csv(rows))
        await world.push(csv(renamed(rows, 3)))
        assert not await world.read(lambda tx: tx.jobs.is_planned(JobKind.LOOK_BACK, PERMITS))
        await run_job(
            world.parts,
            JobRow(kind=JobKind.LOOK_BACK, subject=PERMITS, run_at=world.clock.now()),
        )
        assert await looked(world) == []

    run(story)


def test_a_very_large_version_is_not_looked_at(
    run: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(world: World) -> None:
        monkeypatch.setattr(look_back, "_MOST_ROWS", 299)
        await world.declare(key=["permit"])
        rows = permits(300)
        await world.push(csv(rows))
        await world.push(csv(renamed(rows, 3)))
        assert await looked(world) == []
        assert not await world.read(lambda tx: tx.jobs.is_planned(JobKind.LOOK_BACK, PERMITS))

    run(story)


def test_a_version_released_while_it_is_looked_is_looked_at_in_its_turn(
    run: Callable[..., None],
) -> None:
    async def story(world: World) -> None:
        await world.declare(key=["permit"])
        rows = permits(300)
        await world.push(csv(rows))
        await world.push(csv(renamed(rows, 3)))
        look = world.parts.builder.look

        async def slowly(order: LookOrder) -> Looked | Broken:
            if order.current.version == 2:
                await world.push(csv(renamed(rows, 3, 9)))
            return await look(order)

        world.parts.builder.look = slowly  # type: ignore[method-assign]
        (found,) = await looked(world)
        assert (found.version, found.records) == (2, 1)
        both = await looked(world)
        assert [(each.version, each.records) for each in both] == [(3, 1), (2, 1)]

    run(story)
