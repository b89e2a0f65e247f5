"""Checks and pushes end to end, over a real database and real files."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.fakes.world import PERMITS, World, play, stream, table

from ploti.errors import Conflict, NotFound, TooLarge
from ploti.model.admin import OutcomeKind
from ploti.model.ids import DatasetId
from ploti.server.ports.rows import AttemptId, AttemptRow
from ploti.server.service.check_source import end_left_attempts
from ploti.server.service.read_catalogue import get_dataset
from ploti.server.service.sweep_blobs import file_blob, source_blob, sweep_blobs

Play = Callable[[Callable[[World], Awaitable[None]]], None]
ONE_VERSION = {
    "states/ds_permits",
    "datasets/ds_permits/1/snapshot.parquet",
    "datasets/ds_permits/1/snapshot.csv",
    "datasets/ds_permits/1/schema.json",
}


@pytest.fixture
def run(tmp_path: Path) -> Play:
    return lambda story: play(tmp_path, story)


def test_a_first_version_is_sent_as_resync_with_first_version_r031_r054_s03(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = await world.subscribe()
        outcome = await world.push(table({"a": "deck", "b": "shed"}))
        assert (outcome.outcome, outcome.version) == (OutcomeKind.RELEASED, 1)
        assert outcome.counts is not None
        assert outcome.counts.added == 2
        assert await world.told(subscription.id) == [
            ("added", None),
            ("resync_required", 1, "first_version"),
        ]
        assert await world.kept() == ONE_VERSION

    run(story)


def test_a_later_version_is_sent_as_updated_with_counts_r032_r033(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = await world.subscribe()
        await world.push(table({"a": "deck", "b": "shed"}))
        await world.push(table({"a": "deck", "c": "pool"}))
        data = (await world.events(subscription.id))[-1]["data"]
        assert list(data) == [
            "datasetId",
            "version",
            "previousVersion",
            "schemaVersion",
            "counts",
            "links",
        ]
        assert (data["version"], data["previousVersion"]) == (2, 1)
        assert data["counts"] == {"added": 1, "changed": 0, "removed": 1}

    run(story)


def test_the_same_bytes_are_unchanged_without_a_build_s27(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        await world.push(table({"a": "deck"}))
        outcome = await world.push(table({"a": "deck"}))
        assert (outcome.outcome, outcome.version) == (OutcomeKind.UNCHANGED, 1)
        assert len(world.builder.orders) == 1
        assert await world.kept() == ONE_VERSION

    run(story)


def test_the_same_records_in_another_order_are_unchanged_and_use_no_number(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        await world.push(table({"a": "deck", "b": "shed"}))
        before = await world.read(lambda tx: get_dataset(tx, world.reader, PERMITS))
        outcome = await world.push(table({"b": "shed", "a": "deck"}))
        assert outcome.outcome is OutcomeKind.UNCHANGED
        after = await world.read(lambda tx: get_dataset(tx, world.reader, PERMITS))
        assert before.last_checked_at is not None
        assert after.last_checked_at is not None
        assert after.last_checked_at > before.last_checked_at
        assert (await world.push(table({"a": "pool"}))).version == 2

    run(story)


def test_a_state_that_cannot_be_read_fails_and_leaves_everything_as_it_was(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = await world.subscribe()
        await world.push(table({"a": "deck"}))
        before = await world.read(lambda tx: get_dataset(tx, world.reader, PERMITS))
        outcome = await world.push("id,kind\na\n")
        assert outcome.outcome is OutcomeKind.FAILED
        assert outcome.detail == "The rows are not of one length"
        assert await world.read(lambda tx: get_dataset(tx, world.reader, PERMITS)) == before
        assert len(await world.events(subscription.id)) == 2
        assert await world.kept() == ONE_VERSION

    run(story)


def test_a_minor_change_is_updated_after_its_schema_changed_r034_r056_s12_s13(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = await world.subscribe()
        await world.push(table({"a": "deck"}))
        await world.push(table({"a": "deck,"}, columns="id,kind,street"))
        changed, updated = (await world.events(subscription.id))[-2:]
        assert changed["type"] == "feed.dataset.schema_changed"
        assert list(changed["data"]) == ["datasetId", "version", "schemaVersion", "schemaChange"]
        assert changed["data"]["schemaVersion"] == updated["data"]["schemaVersion"] == "1.1"
        assert updated["type"] == "feed.dataset.updated"
        assert updated["data"]["counts"] == {"added": 0, "changed": 0, "removed": 0}
        assert int(updated["id"][4:]) == int(changed["id"][4:]) + 1

    run(story)


def test_a_dry_run_builds_and_leaves_nothing(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = await world.subscribe()
        outcome = await world.push(table({"a": "deck"}), dry_run=True)
        assert (outcome.outcome, outcome.version) == (OutcomeKind.RELEASED, 1)
        assert await world.kept() == set()
        assert await world.told(subscription.id) == [("added", None)]
        await world.push(table({"a": "deck", "b": "shed"}))
        held = await world.push(table({"a": "x"}, columns="id,sort"), dry_run=True)
        assert (held.outcome, held.version, held.hold) == (OutcomeKind.HELD, 2, None)
        assert await world.holds() == []
        assert await world.kept() == ONE_VERSION
        assert (await world.push(table({"a": "deck"}))).version == 2

    run(story)


def test_a_state_over_the_limit_is_refused_and_leaves_nothing(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        with pytest.raises(TooLarge):
            await world.push("x" * 1001)
        assert await world.kept() == set()

    run(story)


def test_a_push_to_a_dataset_that_was_never_declared_is_not_found(run: Play) -> None:
    async def story(world: World) -> None:
        with pytest.raises(NotFound, match="ds_nothing"):
            await world.push("id\n", DatasetId("ds_nothing"))
        assert await world.kept() == set()

    run(story)


def test_a_check_reads_the_source_and_a_failed_one_is_an_outcome(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare(source={"kind": "http", "url": "https://example.org/permits.csv"})
        world.source.bytes = None
        outcome = await world.check()
        assert outcome.outcome is OutcomeKind.FAILED
        assert "503" in outcome.detail
        world.source.bytes = table({"a": "deck"}).encode()
        assert (await world.check()).outcome is OutcomeKind.RELEASED
        assert (await world.check()).outcome is OutcomeKind.UNCHANGED

    run(story)


def test_a_dataset_without_a_source_cannot_be_checked(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        with pytest.raises(Conflict, match="push a state"):
            await world.check()

    run(story)


def test_bytes_of_a_source_that_was_declared_anew_meanwhile_are_not_taken(run: Play) -> None:
    async def story(world: World) -> None:
        async def declare_another() -> None:
            await world.declare(source={"kind": "http", "url": "https://example.org/other.csv"})

        await world.declare(source={"kind": "http", "url": "https://example.org/permits.csv"})
        world.source.bytes = table({"a": "deck"}).encode()
        world.source.before = declare_another
        outcome = await world.check()
        assert outcome.outcome is OutcomeKind.FAILED
        assert "check again" in outcome.detail
        assert await world.kept() == set()

    run(story)


def test_of_the_source_states_only_the_current_one_is_kept(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        for kind in ("deck", "shed", "pool"):
            await world.push(table({"a": kind}))
        assert len(await world.blobs.names("states/")) == 1

    run(story)


def test_two_pushes_to_one_dataset_take_turns(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        world.builder.gate.clear()
        first = asyncio.create_task(world.push(table({"a": "deck"})))
        await world.builder.building.wait()
        second = asyncio.create_task(world.push(table({"a": "shed"})))
        await asyncio.sleep(0.05)
        assert len(world.builder.orders) == 1
        world.builder.gate.set()
        assert [(await first).version, (await second).version] == [1, 2]
        assert [order.version for order in world.builder.orders] == [1, 2]

    run(story)


def test_a_build_is_done_again_when_a_review_moved_its_base(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = await world.subscribe()
        await world.push(table({"a": "deck"}))
        await world.push(table({"a": "deck"}, columns="id,sort"))
        (hold,) = await world.holds()
        world.builder.gate.clear()
        world.builder.building.clear()
        push = asyncio.create_task(world.push(table({"a": "shed"}, columns="id,sort")))
        await world.builder.building.wait()
        await world.release(hold.id)
        world.builder.gate.set()
        outcome = await push
        assert (outcome.outcome, outcome.version) == (OutcomeKind.RELEASED, 3)
        assert await world.told(subscription.id) == [
            ("added", None),
            ("resync_required", 1, "first_version"),
            ("delayed", 1, "schema_review"),
            ("schema_changed", 2),
            ("resync_required", 2, "schema_changed"),
            ("updated", 3),
        ]
        assert len(await world.blobs.names("states/")) == 1
        rows = await world.blobs.names("datasets/ds_permits/3/")
        assert len({name.split("/")[3] for name in rows}) == 1

    run(story)


def test_the_sweep_inside_a_build_removes_nothing_of_it(run: Play) -> None:
    """While it is built, and after each file that is kept before the version is there."""

    async def story(world: World) -> None:
        await world.declare()
        keep = world.blobs.adopt

        async def keep_and_sweep(name: str, path: str) -> None:
            await keep(name, path)
            await sweep_blobs(world.store, world.blobs)

        world.blobs.adopt = keep_and_sweep  # type: ignore[method-assign]
        world.builder.gate.clear()
        push = asyncio.create_task(world.push(table({"a": "deck"})))
        await world.builder.building.wait()
        await sweep_blobs(world.store, world.blobs)
        world.builder.gate.set()
        assert (await push).outcome is OutcomeKind.RELEASED
        kept = {*await world.blobs.names("states/"), *await world.blobs.names("datasets/")}
        files = await world.read(lambda tx: tx.versions.files(PERMITS, 1))
        states = await world.read(lambda tx: tx.states.of(PERMITS))
        assert kept == {*(file.blob for file in files), *(each.blob for each in states.values())}

    run(story)


def test_what_a_crash_left_is_removed_by_name_at_the_start(tmp_path: Path) -> None:
    async def crash_between_write_and_commit(world: World) -> None:
        await world.declare()
        await world.push(table({"a": "deck"}))
        attempt = AttemptRow(
            id=AttemptId("att_left"),
            dataset_id=PERMITS,
            version=2,
            source_blob=source_blob(PERMITS, AttemptId("att_left")),
            started_at=world.clock.now(),
        )
        await world.write(lambda tx: tx.builds.add(attempt))
        await world.blobs.receive(attempt.source_blob, stream(b"id\n"), limit=9)
        left = file_blob(attempt, "snapshot.parquet")
        await world.blobs.receive(left, stream(b"whole"), limit=9)

    async def restart(world: World) -> None:
        assert "datasets/ds_permits/2/snapshot.parquet" in await world.kept()
        await end_left_attempts(world.parts)
        assert await world.kept() == ONE_VERSION
        assert await world.read(lambda tx: tx.builds.to_sweep()) == []
        assert (await world.push(table({"a": "shed"}))).version == 2

    play(tmp_path, crash_between_write_and_commit)
    play(tmp_path, restart)


SOURCE = {"kind": "http", "url": "https://data.example/permits.csv"}


def test_a_source_is_asked_whether_the_state_it_is_known_by_still_stands(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare(source=SOURCE)
        world.source.bytes, world.source.etag = table({"a": "deck"}).encode(), "1"
        await world.check()
        outcome = await world.check()
        assert (outcome.outcome, outcome.version) == (OutcomeKind.UNCHANGED, 1)
        assert [known and known.etag for known in world.source.asked] == [None, "1"]
        assert await world.kept() == ONE_VERSION
        await world.check(full=True)
        assert world.source.asked[-1] is None
        world.source.bytes, world.source.etag = table({"a": "pool"}).encode(), "2"
        assert (await world.check()).version == 2
        assert [known and known.etag for known in world.source.asked[-1:]] == ["1"]

    run(story)


def test_what_was_said_of_a_state_counts_only_under_its_declaration_and_address(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare(source=SOURCE)
        world.source.bytes, world.source.etag = table({"a": "deck"}).encode(), "1"
        await world.check()
        for changed in (
            {"columns": {"kind": "string"}},
            {"source": SOURCE | {"url": "https://b/c"}},
        ):
            await world.declare(**({"source": SOURCE} | changed))
            await world.check()
            assert world.source.asked[-1] is None
            await world.check()
            assert world.source.asked[-1] is not None

    run(story)


def test_a_state_on_hold_or_discarded_that_still_stands_is_not_read_again_s27(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare(source=SOURCE)
        world.source.bytes, world.source.etag = table({"a": "deck"}).encode(), "1"
        await world.check()
        world.source.bytes, world.source.etag = table({"a": "x"}, columns="id,sort").encode(), "2"
        held = await world.check()
        assert held.hold is not None
        again = await world.check()
        assert (again.outcome, again.hold) == (OutcomeKind.UNCHANGED, held.hold)
        await world.discard(held.hold.id)
        assert (await world.check()).outcome is OutcomeKind.UNCHANGED
        assert [known and known.etag for known in world.source.asked] == [None, "1", "2", "2"]
        assert len(world.builder.orders) == 2

    run(story)


def test_other_bytes_with_the_same_records_are_known_from_then_on(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare(source=SOURCE)
        world.source.bytes = table({"a": "deck", "b": "pool"}).encode()
        await world.check()
        world.source.bytes = table({"b": "pool", "a": "deck"}).encode()
        for _ in range(2):
            assert (await world.check()).outcome is OutcomeKind.UNCHANGED
        assert len(world.builder.orders) == 2
        assert await world.kept() == ONE_VERSION

    run(story)
