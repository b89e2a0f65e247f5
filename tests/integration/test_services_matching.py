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
from tests.fakes.child_builder import ChildBuilder
from tests.fakes.world import PERMITS, World, play, table
from tests.unit.matching.tables import permits

from ploti.errors import Conflict, Expired, InvalidInput
from ploti.model.admin import HoldState, Outcome, OutcomeKind, ProposalKind, ProposalState
from ploti.model.event import HoldReason
from ploti.model.ids import ProposalId
from ploti.model.version import Counts, ResyncReason
from ploti.model.wire import Instant
from ploti.server.adapters.builder.limits import Limits
from ploti.server.adapters.builder.process import ProcessBuilder
from ploti.server.build.candidate import FileRole
from ploti.server.membership.principal import Reader
from ploti.server.service.match_again import match_held
from ploti.server.service.propose_ids import list_proposals, propose_replacement, reject_proposal
from ploti.server.service.prune_old import prune
from ploti.server.service.read_version import get_version
from ploti.server.service.rebuild_version import rebuild_version
from ploti.server.service.replace_ids import approve_proposal
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


def test_records_return_across_a_rebuild_and_a_restored_version_law4_r064(run: Play) -> None:
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


def test_a_newer_state_is_matched_to_the_version_whose_restoring_is_held_r064_s19_s21_s22(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        await world.declare(holds={"max_id_turnover": "off"})
        subscription = await world.subscribe()
        wide = "id,kind,sort"
        await world.push(table({"a": "deck", "b": "pool"}))
        first = await ids(world, 1)
        await world.push(table({"b": "pool,1"}, columns=wide))
        world.clock.moment = Instant.of(world.clock.moment + 100 * DAYS)
        await world.push(table({"a": "deck,1", "b": "pool,1", "c": "shed,1"}, columns=wide))
        third = await ids(world, 3)
        assert third["a"] != first["a"]
        held = await restore_version(world.parts, PERMITS, 1)
        assert held.outcome is OutcomeKind.HELD
        state = {"a": "barn,1", "b": "pool,1", "c": "shed,1", "d": "den,1"}
        newer = await world.push(table(state, columns=wide))
        assert newer.counts == Counts(added=2, changed=0, removed=1)
        now = await ids(world, 5)
        assert {"a": now["a"], "b": now["b"]} == first
        assert (now["c"], now["d"]) == (third["c"], "rec_000000050000000000")
        assert (await world.told(subscription.id))[-2:] == [
            *(("delayed", 3, "schema_review"), ("resync_required", 5, "previous_unavailable")),
        ]
        await world.push(table({**state, "b": "barn,1"}, columns=wide))
        assert (await world.told(subscription.id))[-1] == ("updated", 6)

    run(story)


def test_release_of_a_version_that_ran_over_its_budget_matches_it_s26_r072_r075(
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


async def replace_ids(world: World, *, column: str | None = None) -> Outcome:
    """Propose to replace the dataset's ids, and approve it."""
    now, new = world.clock.now(), ProposalId(world.ids.token("prop_"))
    proposal = await world.write(
        lambda tx: propose_replacement(
            tx, PERMITS, column=column, proposal_id=new, by=world.staff, now=now
        )
    )
    return await approve_proposal(world.parts, proposal.id, by=world.staff, note="as agreed")


async def id_map(world: World, number: int) -> dict[str, str]:
    """The id map of a version, as its files have it."""
    now = world.clock.now()
    reader = Reader(workspaces=[world.subscriber.workspace_id])
    version = await world.read(
        lambda tx: get_version(
            *(tx, reader, PERMITS, number), format="geoparquet", blobs=world.blobs, now=now
        )
    )
    assert version.reason is ResyncReason.RECORD_IDS_CHANGED
    assert version.files.id_map is not None
    files = await world.read(lambda tx: tx.versions.files(PERMITS, number))
    (listed,) = [f for f in files if f.role is FileRole.ID_MAP and f.format == "parquet"]
    assert version.files.id_map[0].rows == listed.rows
    async with world.blobs.local(listed.blob) as path:
        return dict(duckdb.read_parquet(path).fetchall())


def test_replaced_ids_are_a_version_to_load_with_a_map_r059_r060_r104_s24_s25(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare(check_every="24h")
        subscription = await world.subscribe()
        await world.push(table({"b": "deck", "a": "pool"}))
        await world.push(table({"b": "deck", "a": "pool", "c": "shed"}))
        before = await ids(world, 2)
        outcome = await replace_ids(world)
        assert (outcome.outcome, outcome.version) == (OutcomeKind.RELEASED, 3)
        assert outcome.counts == Counts(added=0, changed=0, removed=0)
        after = await ids(world, 3)
        assert sorted(after.values()) == [f"rec_00000003{n:010d}" for n in range(3)]
        assert await id_map(world, 3) == {before[key]: after[key] for key in before}
        assert (await world.told(subscription.id))[-1] == (
            *("resync_required", 3, "record_ids_changed"),
        )
        same = await world.push(table({"b": "deck", "a": "pool", "c": "shed"}))
        assert same.outcome is OutcomeKind.UNCHANGED
        await world.push(table({"b": "deck", "a": "barn", "d": "den"}))
        assert (await world.told(subscription.id))[-1] == ("updated", 4)
        now = await ids(world, 4)
        assert {key: now[key] for key in "ab"} == {key: after[key] for key in "ab"}
        await world.push(table({"a": "barn", "b": "deck", "c": "shed"}))
        assert (await ids(world, 5))["c"] == after["c"]

    run(story)


def test_ids_follow_a_column_that_tells_every_record_apart(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare(columns={"n": "int64"})
        await world.push(table({"a": "7,x", "b": "30,x", "c": "4,"}, columns="id,n,kind"))
        with pytest.raises(InvalidInput, match="no column"):
            await replace_ids(world, column="m")
        with pytest.raises(Conflict, match="1 records have no value in it, and 1 of its values"):
            await replace_ids(world, column="kind")
        await replace_ids(world, column="n")
        ordered = {key: int(id_[-10:]) for key, id_ in (await ids(world, 2)).items()}
        assert ordered == {"c": 0, "a": 1, "b": 2}

    run(story)


def test_what_was_replaced_stays_replaced_in_what_is_restored_s23(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare(holds={"max_id_turnover": "off"})
        subscription = await world.subscribe()
        await world.push(table({"a": "deck", "b": "pool", "c": "shed"}))
        first = await ids(world, 1)
        await replace_ids(world)
        second = await ids(world, 2)
        await world.push(table({"a": "deck", "d": "barn"}))
        await replace_ids(world)
        fourth = await ids(world, 4)
        outcome = await restore_version(world.parts, PERMITS, 1)
        assert outcome.counts == Counts(added=2, changed=0, removed=1)
        now = await ids(world, 5)
        assert now == {"a": fourth["a"], "b": second["b"], "c": second["c"]}
        assert not set(now.values()) & set(first.values())
        assert (await world.told(subscription.id))[-1] == (
            *("resync_required", 5, "previous_unavailable"),
        )
        again = await rebuild_version(world.parts, PERMITS)
        assert (again.outcome, again.version) == (OutcomeKind.RELEASED, 6)
        assert await ids(world, 6) == now

    run(story)


def test_while_a_version_waits_no_ids_are_replaced_and_a_proposal_is_decided_once(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        await world.declare()
        await world.push(table({"a": "deck"}))
        await world.push(table({"a": "deck"}, columns="id,sort"))
        with pytest.raises(Conflict, match="release or discard hold_"):
            await replace_ids(world)
        (open_,) = (
            await world.read(lambda tx: list_proposals(tx, PERMITS, cursor=None, limit=9))
        ).proposals
        now = world.clock.now()
        done = await world.write(
            lambda tx: reject_proposal(tx, open_.id, by=world.staff, note="no", now=now)
        )
        assert (done.state, done.note) == (ProposalState.REJECTED, "no")
        with pytest.raises(Conflict, match="was rejected already"):
            await approve_proposal(world.parts, open_.id, by=world.staff, note="")

    run(story)


def test_what_the_matching_only_proposed_staff_approve_r059_r060_r206_s25(run: Play) -> None:
    """Rows of equal content under new keys, of which there are more than before, are not linked."""

    async def story(world: World) -> None:
        await world.declare(holds={"max_id_turnover": "off"})
        subscription = await world.subscribe()
        kept = {f"k{n}": f"kept {n}" for n in range(30)}
        gone = {f"old{n}": f"same {n % 20}" for n in range(40)}
        await world.push(table(kept | gone))
        before = await ids(world, 1)
        new = {f"new{n}": f"same {n % 20}" for n in range(60)}
        await world.push(table(kept | new))
        proposals = await world.read(lambda tx: list_proposals(tx, PERMITS, cursor=None, limit=9))
        (found,) = proposals.proposals
        assert (found.kind, found.state, found.records) == (
            *(ProposalKind.CONTINUE, ProposalState.OPEN, 40),
        )
        assert found.examples[0].startswith('was {"id":"old')
        assert '; is {"id":"new' in found.examples[0]
        second = await ids(world, 2)
        outcome = await approve_proposal(world.parts, found.id, by=world.staff, note="")
        assert outcome.version == 3
        third = await ids(world, 3)
        assert len(set(third.values()) & set(before.values())) == 70
        moved = await id_map(world, 3)
        assert moved == {second[k]: third[k] for k in second if second[k] != third[k]}
        assert len(moved) == 40
        assert (await world.told(subscription.id))[-1] == (
            *("resync_required", 3, "record_ids_changed"),
        )
        with pytest.raises(Conflict, match="was approved already"):
            await approve_proposal(world.parts, found.id, by=world.staff, note="")
        assert (await world.push(table(kept | new))).outcome is OutcomeKind.UNCHANGED

    run(story)


def test_an_id_that_came_back_meanwhile_is_not_given_to_another_record_law4(
    tmp_path: Path,
) -> None:
    async def story(world: World) -> None:
        await world.declare(holds={"max_id_turnover": "off"})
        await world.subscribe()
        kept = {f"k{n}": f"kept {n}" for n in range(30)}
        await world.push(table(kept | {f"old{n}": f"same {n % 20}" for n in range(40)}))
        before = await ids(world, 1)
        new = {f"new{n}": f"same {n % 20}" for n in range(60)}
        await world.push(table(kept | new))
        await world.push(table(kept | new | {"old7": "same 7"}))
        assert (await ids(world, 3))["old7"] == before["old7"]
        await world.push(table(kept | new))
        proposals = await world.read(lambda tx: list_proposals(tx, PERMITS, cursor=None, limit=9))
        (found,) = proposals.proposals
        await approve_proposal(world.parts, found.id, by=world.staff, note="")
        moved = await id_map(world, 5)
        assert len(moved) == 39
        assert before["old7"] not in moved.values()

    play(tmp_path, story, builder=ChildBuilder())


async def pass_days(world: World, days: int) -> None:
    """Days of a server that runs: each has its run of the retention."""
    for _ in range(days):
        world.clock.moment = Instant.of(world.clock.moment + DAYS)
        now = world.clock.now()
        assert await world.write(lambda tx, now=now: prune(tx, now=now)) is None


def test_id_maps_are_kept_90_days_and_without_one_nothing_before_it_is_restored_s44_s23(
    tmp_path: Path,
) -> None:
    async def story(world: World) -> None:
        await world.declare()
        await world.write(lambda tx: prune(tx, now=world.clock.now()))
        await world.subscribe()
        await world.push(table({"a": "deck"}))
        await world.push(table({"a": "deck"}, columns="id,sort"))
        (hold,) = await world.holds(HoldState.OPEN)
        await world.release(hold.id)
        await replace_ids(world)
        await pass_days(world, 89)
        assert len(await id_map(world, 3)) == 1
        await pass_days(world, 2)
        files = await world.read(lambda tx: tx.versions.files(PERMITS, 3))
        assert FileRole.ID_MAP not in {file.role for file in files}
        with pytest.raises(Expired, match="id map of version 3"):
            await restore_version(world.parts, PERMITS, 1)
        dataset = await world.read(lambda tx: tx.datasets.get(PERMITS))
        assert dataset is not None
        assert dataset.released_again is None

    play(tmp_path, story, builder=ChildBuilder())
