"""The current version built again, and what its subscribers are told."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.fakes.builds import Builds, declare
from tests.fakes.world import PERMITS, World, many, play, table

from ploti.errors import Conflict, NotFound, SourceError
from ploti.model.admin import Outcome, OutcomeKind
from ploti.model.version import Counts
from ploti.server.adapters.builder.limits import Limits
from ploti.server.adapters.builder.process import ProcessBuilder
from ploti.server.build.candidate import BuildOrder, Candidate, FileRole, Unchanged
from ploti.server.service.read_catalogue import get_dataset, list_versions
from ploti.server.service.read_version import get_digest, get_version
from ploti.server.service.rebuild_version import rebuild_version
from ploti.server.service.restore_version import restore_version

Play = Callable[[Callable[[World], Awaitable[None]]], None]


@pytest.fixture
def run(tmp_path: Path) -> Play:
    return lambda story: play(tmp_path, story)


async def rebuild(world: World) -> Outcome:
    return await rebuild_version(world.parts, PERMITS)


def test_a_rebuild_is_a_version_to_load_even_where_nothing_differs_r061_r063_s20_s23(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = await world.subscribe()
        await world.push(table({"a": "deck"}))
        checked = (await world.read(lambda tx: tx.datasets.get(PERMITS))).last_checked_at  # type: ignore[union-attr]
        outcome = await rebuild(world)
        assert (outcome.outcome, outcome.version) == (OutcomeKind.RELEASED, 2)
        assert await world.told(subscription.id) == [
            ("added", None),
            ("resync_required", 1, "first_version"),
            ("resync_required", 2, "previous_unavailable"),
        ]
        now = world.clock.now()
        shown = await world.read(
            lambda tx: get_version(
                *(tx, world.reader, PERMITS, 2), format="csv", blobs=world.blobs, now=now
            )
        )
        assert (shown.previous_version, shown.resync_required) == (1, True)
        assert shown.files.changes is None
        listed = await world.read(
            lambda tx: list_versions(tx, world.reader, PERMITS, after=None, limit=9)
        )
        assert [each.version for each in listed.versions] == [1, 2]
        assert await world.read(lambda tx: tx.versions.files(PERMITS, 1))
        dataset = await world.read(lambda tx: get_dataset(tx, world.reader, PERMITS))
        assert dataset.last_checked_at == checked
        assert (await world.push(table({"a": "deck"}))).outcome is OutcomeKind.UNCHANGED
        assert (await world.push(table({"a": "pool"}))).version == 3
        assert (await world.told(subscription.id))[-1] == ("updated", 3)

    run(story)


def test_what_is_sent_first_after_the_order_is_loaded_r062_s19(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = await world.subscribe()
        await world.push(many(100))
        await world.declare(holds={"min_row_ratio": 1})
        held = await world.push(many(99))
        assert held.outcome is OutcomeKind.HELD
        assert held.hold is not None
        builder = world.builder.build
        world.builder.build = fail  # type: ignore[method-assign, assignment]
        assert (await rebuild(world)).outcome is OutcomeKind.FAILED
        world.builder.build = builder  # type: ignore[method-assign]
        await world.release(held.hold.id)
        assert (await world.told(subscription.id))[-1] == (
            *("resync_required", 2, "previous_unavailable"),
        )
        await world.push(many(100))
        assert (await world.told(subscription.id))[-1] == ("updated", 3)

    run(story)


async def fail(order: BuildOrder, **_: object) -> Candidate:
    raise SourceError("The reader is still wrong")


def test_there_must_be_something_to_build_again(run: Play) -> None:
    async def story(world: World) -> None:
        with pytest.raises(NotFound):
            await rebuild(world)
        await world.declare()
        with pytest.raises(NotFound, match="no released version"):
            await rebuild(world)
        await world.push(table({"a": "deck"}))
        await world.write(lambda tx: tx.states.drop(PERMITS, next(iter(tx.states.of(PERMITS)))))
        with pytest.raises(Conflict, match="not kept"):
            await rebuild(world)

    run(story)


@pytest.fixture
def builder(tmp_path: Path) -> Iterator[ProcessBuilder]:
    limits = Limits(memory=2 << 30, seconds=300, file_size=1 << 30)
    entry = ("-m", "ploti.server.app.child")
    with closing(ProcessBuilder(tmp_path / "work", entry=entry, limits=limits)) as found:
        yield found


def test_a_restored_version_has_the_older_ones_records_under_a_new_number_s19_s20_s21_s23(
    tmp_path: Path, builder: ProcessBuilder
) -> None:
    async def story(world: World) -> None:
        await world.declare(check_every="24h")
        subscription = await world.subscribe()
        await world.push(table({"a": "deck", "b": "pool"}))
        await world.push(table({"a": "shed", "c": "barn"}))
        with pytest.raises(Conflict, match="is current"):
            await restore_version(world.parts, PERMITS, 2)
        with pytest.raises(NotFound):
            await restore_version(world.parts, PERMITS, 9)
        outcome = await restore_version(world.parts, PERMITS, 1)
        assert (outcome.outcome, outcome.version) == (OutcomeKind.RELEASED, 3)
        assert outcome.counts == Counts(added=1, changed=1, removed=1)
        assert (await world.told(subscription.id))[-1] == (
            *("resync_required", 3, "previous_unavailable"),
        )
        first, third = [
            await world.read(
                lambda tx, number=number: get_digest(tx, world.reader, PERMITS, number)
            )
            for number in (1, 3)
        ]
        assert first == third
        dataset = await world.read(lambda tx: get_dataset(tx, world.reader, PERMITS))
        assert dataset.next_check_by is None
        rebuilt = await rebuild(world)
        assert (rebuilt.outcome, rebuilt.version) == (OutcomeKind.RELEASED, 4)
        assert rebuilt.counts == Counts(added=0, changed=0, removed=0)
        assert (await world.told(subscription.id))[-1] == (
            *("resync_required", 4, "previous_unavailable"),
        )
        again = await world.push(table({"a": "shed", "c": "barn"}))
        assert (again.outcome, again.version) == (OutcomeKind.RELEASED, 5)
        assert (await world.told(subscription.id))[-1] == ("updated", 5)
        back = await restore_version(world.parts, PERMITS, 1)
        assert back.outcome is OutcomeKind.RELEASED

    play(tmp_path, story, builder=builder)


def test_restoring_another_schema_is_reviewed_like_any_version_s22(
    tmp_path: Path, builder: ProcessBuilder
) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = await world.subscribe()
        await world.push(table({"a": "deck"}))
        await world.push(table({"a": "deck"}, columns="id,sort"))
        [hold] = await world.holds()
        await world.release(hold.id)
        held = await restore_version(world.parts, PERMITS, 1)
        assert held.outcome is OutcomeKind.HELD
        assert held.hold is not None
        await world.release(held.hold.id)
        assert [event[0] for event in (await world.told(subscription.id))[-3:]] == [
            *("delayed", "schema_changed", "resync_required")
        ]
        assert (await world.told(subscription.id))[-1] == ("resync_required", 3, "schema_changed")

    play(tmp_path, story, builder=builder)


def test_a_real_build_again_gives_the_same_snapshot_under_the_next_number(tmp_path: Path) -> None:
    builds = Builds(tmp_path, declare(key=["id"]))
    state = b"id,kind\n1,a\n2,b\n"
    first = builds.build(state)
    rows = builds.rows(first)
    assert isinstance(builds.build(state), Unchanged)
    again = builds.build(state, always=True)
    assert isinstance(again, Candidate)
    assert builds.rows(again) == rows
    assert {file.role for file in again.files} == {FileRole.SNAPSHOT, FileRole.SCHEMA}
