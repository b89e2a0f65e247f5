"""Matching over versions, through the use cases: what returns, and what could not be matched."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from msgspec.structs import replace
from tests.fakes.world import PERMITS, World, play, table
from tests.unit.matching.tables import permits

from ploti.errors import Conflict
from ploti.model.admin import HoldState, OutcomeKind
from ploti.model.event import HoldReason
from ploti.model.version import Counts
from ploti.model.wire import Instant
from ploti.server.adapters.builder import Limits, ProcessBuilder
from ploti.server.build.candidate import FileRole
from ploti.server.service.match_again import match_held
from ploti.server.service.rebuild_version import rebuild_version
from ploti.server.service.restore_version import restore_version

Play = Callable[[Callable[[World], Awaitable[None]]], None]
LIMITS = Limits(memory=2 << 30, seconds=600, file_size=1 << 30)
DAYS = timedelta(days=1)


@pytest.fixture
def builder(tmp_path: Path) -> Iterator[ProcessBuilder]:
    entry = ("-m", "ploti.server.app.child")
    with closing(ProcessBuilder(tmp_path / "work", entry=entry, limits=LIMITS)) as found:
        yield found


@pytest.fixture
def run(tmp_path: Path, builder: ProcessBuilder) -> Play:
    return lambda story: play(tmp_path, story, builder=builder)


def csv(rows: list[dict[str, Any]]) -> str:
    lines = [rows[0].keys(), *(row.values() for row in rows)]
    return "".join(",".join(map(str, line)) + "\n" for line in lines)


async def ids(world: World, number: int, *, key: str = "id") -> dict[str, str]:
    """The record ids of a version by its keys."""
    files = await world.read(lambda tx: tx.versions.files(PERMITS, number))
    (snapshot,) = [
        file.blob
        for file in files
        if file.role is FileRole.SNAPSHOT and file.format.endswith("parquet")
    ]
    async with world.blobs.local(snapshot) as path:
        sql = f"SELECT \"{key}\", _ploti_record_id FROM read_parquet('{path}')"
        return dict(duckdb.sql(sql).fetchall())


def test_a_record_returns_within_90_days_and_not_after_law4(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare(holds={"max_id_turnover": "off"})
        await world.push(table({"a": "deck", "b": "pool", "c": "shed"}))
        first = await ids(world, 1)
        await world.push(table({"a": "deck", "c": "shed"}))
        world.clock.moment = Instant.of(world.clock.moment + 60 * DAYS)
        await world.push(table({"a": "deck"}))
        world.clock.moment = Instant.of(world.clock.moment + 29 * DAYS)
        built = await world.push(table({"a": "deck", "b": "barn"}))
        assert built.counts == Counts(added=1, changed=0, removed=0)
        assert (await ids(world, 4))["b"] == first["b"]
        world.clock.moment = Instant.of(world.clock.moment + 61 * DAYS)
        await world.push(table({"a": "deck", "b": "barn", "c": "shed"}))
        assert (await ids(world, 5))["c"] == "rec_000000050000000000"

    run(story)


def test_records_return_across_a_rebuild_and_a_restored_version_law4(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare(holds={"max_id_turnover": "off"})
        await world.push(table({"a": "deck", "b": "pool", "c": "shed"}))
        first = await ids(world, 1)
        await world.push(table({"a": "deck", "d": "barn"}))
        await rebuild_version(world.parts, PERMITS)
        await world.push(table({"a": "deck", "b": "pool", "d": "barn"}))
        assert (await ids(world, 4))["b"] == first["b"]
        added = (await ids(world, 4))["d"]
        await restore_version(world.parts, PERMITS, 1)
        assert await ids(world, 5) == first
        await world.push(table({"a": "deck", "d": "barn"}))
        assert await ids(world, 6) == {"a": first["a"], "d": added}

    run(story)


def test_lists_of_what_was_removed_are_kept_of_the_current_version_and_its_base(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        await world.declare(holds={"max_id_turnover": "off"})
        await world.push(table(dict.fromkeys("abcdef", "deck")))
        for kept in ("abcde", "abcd", "abc", "ab"):
            await world.push(table(dict.fromkeys(kept, "deck")))
        listed = [name.split("/")[2] for name in await world.blobs.names("datasets/")]
        gone = [
            name.split("/")[2]
            for name in await world.blobs.names("datasets/")
            if name.endswith("gone.parquet")
        ]
        assert sorted(gone) == ["4", "5"]
        assert set(listed) == {"1", "2", "3", "4", "5"}

    run(story)


def test_a_newer_state_is_matched_to_the_version_whose_restoring_is_held_s19_s21_s22(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        await world.declare(holds={"max_id_turnover": "off"})
        subscription = await world.subscribe()
        other = "id,kind,sort"
        await world.push(table({"a": "deck,1", "b": "pool,1"}, columns=other))
        first = await ids(world, 1)
        await world.push(table({"b": "pool"}))
        (hold,) = await world.holds(HoldState.OPEN)
        await world.release(hold.id)
        world.clock.moment = Instant.of(world.clock.moment + 100 * DAYS)
        await world.push(table({"a": "deck", "b": "pool", "c": "shed"}))
        third = await ids(world, 3)
        assert third["a"] != first["a"]
        held = await restore_version(world.parts, PERMITS, 1)
        assert held.outcome is OutcomeKind.HELD
        newer = await world.push(table({"a": "barn", "b": "pool", "c": "shed", "d": "den"}))
        assert newer.counts == Counts(added=2, changed=0, removed=1)
        now = await ids(world, 5)
        assert {"a": now["a"], "b": now["b"]} == first
        assert (now["c"], now["d"]) == (third["c"], "rec_000000050000000000")
        assert (await world.told(subscription.id))[-2:] == [
            *(("delayed", 3, "data_check"), ("resync_required", 5, "previous_unavailable")),
        ]
        await world.push(table({"a": "barn", "b": "pool", "c": "shed"}))
        assert (await world.told(subscription.id))[-1] == ("updated", 6)

    run(story)


def test_release_of_a_version_that_ran_over_its_budget_matches_it_s26_r075(
    tmp_path: Path, builder: ProcessBuilder
) -> None:
    """The first matching may take no time at all; the second has no limit of time."""

    async def story(world: World) -> None:
        await world.declare(key=["permit"], continuation="auto", holds={"max_id_turnover": "off"})
        subscription = await world.subscribe()
        await world.push(csv(permits(200)))
        before = await ids(world, 1, key="permit")
        builder._limits = replace(LIMITS, match_seconds=0.0)
        renamed = csv([{**row, "permit": f"Q{i * 7919}"} for i, row in enumerate(permits(200))])
        held = await world.push(renamed)
        assert held.hold is not None
        assert (held.outcome, held.hold.reason) == (OutcomeKind.HELD, HoldReason.PROCESSING)
        (hold,) = await world.holds()
        assert not hold.matched
        assert [finding.subject for finding in hold.findings if finding.reason] == ["seconds"]
        with pytest.raises(Conflict, match="not matched"):
            await world.release(hold.id)
        await match_held(world.parts, hold.id)
        await world.release(hold.id)
        after = await ids(world, 2, key="permit")
        assert [after[f"Q{i * 7919}"] for i in range(200)] == [
            before[row["permit"]] for row in permits(200)
        ]
        assert await world.told(subscription.id) == [
            *(("added", None), ("resync_required", 1, "first_version")),
            *(("delayed", 1, "processing"), ("updated", 2)),
        ]
        assert await world.read(lambda tx: tx.holds.accepted(PERMITS)) == []
        again = await world.push(csv(permits(200)))
        assert again.hold is not None
        assert again.hold.reason is HoldReason.PROCESSING

    play(tmp_path, story, builder=builder)
