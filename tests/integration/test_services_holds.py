"""Holds from their beginning to each of their ends."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.fakes.world import PERMITS, World, many, play, table

from ploti.errors import Conflict, NotFound
from ploti.model.admin import AcceptedFinding, HoldState, OutcomeKind
from ploti.model.event import HoldReason
from ploti.model.ids import HoldId
from ploti.server.service.match_again import match_held
from ploti.server.service.read_catalogue import get_dataset, get_schema, list_versions
from ploti.server.service.read_version import get_digest
from ploti.server.service.review_hold import get_hold, list_accepted, list_holds, withdraw_accepted
from ploti.server.service.sweep_blobs import sweep_blobs

Play = Callable[[Callable[[World], Awaitable[None]]], None]
FIRST = ("resync_required", 1, "first_version")
OTHER = "id,sort"


@pytest.fixture
def run(tmp_path: Path) -> Play:
    return lambda story: play(tmp_path, story)


def test_a_major_change_is_held_and_delayed_is_sent_once_r046_r048_r073(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = await world.subscribe()
        await world.push(table({"a": "deck"}))
        outcome = await world.push(table({"a": "deck"}, columns=OTHER))
        assert (outcome.outcome, outcome.version) == (OutcomeKind.HELD, 2)
        assert outcome.hold is not None
        assert outcome.hold.reason is HoldReason.SCHEMA_REVIEW
        delayed = (await world.events(subscription.id))[-1]
        (hold,) = await world.holds()
        assert delayed["data"] == {
            "datasetId": PERMITS,
            "version": 1,
            "reason": "schema_review",
            "since": str(hold.since),
        }
        assert (hold.id, hold.version, hold.current_version) == (outcome.hold.id, 2, 1)
        assert (hold.row_count, hold.current_row_count) == (1, 1)
        shown = await world.read(lambda tx: get_dataset(tx, world.reader, PERMITS))
        assert shown.hold is not None
        assert shown.current is not None
        assert (shown.hold.reason, shown.current.version) == (HoldReason.SCHEMA_REVIEW, 1)

    run(story)


def test_a_held_number_is_not_found_by_subscribers(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        await world.subscribe()
        await world.push(table({"a": "deck"}))
        await world.push(table({"a": "deck"}, columns=OTHER))
        who = world.reader
        with pytest.raises(NotFound):
            await world.read(lambda tx: get_digest(tx, who, PERMITS, 2))
        with pytest.raises(NotFound):
            await world.read(lambda tx: get_schema(tx, who, PERMITS, version=2))
        page = await world.read(lambda tx: list_versions(tx, who, PERMITS, after=None, limit=9))
        assert [version.version for version in page.versions] == [1]

    run(story)


def test_a_released_hold_is_sent_as_its_schema_change_and_resync_r081_r037(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = await world.subscribe()
        await world.push(table({"a": "deck"}))
        await world.push(table({"a": "deck"}, columns=OTHER))
        (waiting,) = await world.holds(HoldState.OPEN)
        hold = await world.release(waiting.id, "seen with the city")
        assert (hold.state, hold.note) == (HoldState.RELEASED, "seen with the city")
        assert hold.decided_by == world.staff.member_id
        assert await world.told(subscription.id) == [
            ("added", None),
            FIRST,
            ("delayed", 1, "schema_review"),
            ("schema_changed", 2),
            ("resync_required", 2, "schema_changed"),
        ]
        with pytest.raises(Conflict, match="ended already"):
            await world.discard(waiting.id)
        assert (await world.push(table({"a": "shed"}, columns=OTHER))).version == 3
        assert len(await world.blobs.names("states/")) == 1

    run(story)


def test_after_a_discard_the_next_version_follows_what_is_held_r082_r086_s28(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = await world.subscribe()
        await world.push(table({"a": "deck"}))
        await world.push(table({"a": "deck"}, columns=OTHER))
        (waiting,) = await world.holds()
        assert (await world.discard(waiting.id)).state is HoldState.DISCARDED
        await world.push(table({"a": "shed"}))
        assert (await world.told(subscription.id))[3:] == [("updated", 3)]
        data = (await world.events(subscription.id))[-1]["data"]
        assert (data["previousVersion"], data["schemaVersion"]) == (1, "1.0")
        names = await world.blobs.names("datasets/ds_permits/")
        assert {name.split("/")[2] for name in names} == {"1", "3"}

    run(story)


def test_the_state_on_hold_and_the_one_discarded_last_are_unchanged_s27(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = await world.subscribe()
        await world.push(table({"a": "deck", "b": "shed"}))
        broken, reordered = (
            table({"a": "deck", "b": "shed"}, columns=OTHER),
            table({"b": "shed", "a": "deck"}, columns=OTHER),
        )
        held = await world.push(broken)
        for again in (broken, reordered):
            outcome = await world.push(again)
            assert outcome.outcome is OutcomeKind.UNCHANGED
            assert outcome.hold == held.hold
        (waiting,) = await world.holds()
        await world.discard(waiting.id)
        for again in (broken, reordered):
            outcome = await world.push(again)
            assert (outcome.outcome, outcome.hold) == (OutcomeKind.UNCHANGED, None)
        assert len(await world.told(subscription.id)) == 3
        await world.push(table({"a": "pool", "b": "shed"}))
        assert (await world.push(broken)).outcome is OutcomeKind.HELD

    run(story)


def test_a_discarded_state_is_built_anew_once_the_declaration_changed_s27(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        await world.push(many(30))
        await world.push(many(10))
        (waiting,) = await world.holds()
        assert waiting.reason is HoldReason.DATA_CHECK
        await world.discard(waiting.id)
        assert (await world.push(many(10))).outcome is OutcomeKind.UNCHANGED
        await world.declare(holds="off")
        outcome = await world.push(many(10))
        assert (outcome.outcome, outcome.version) == (OutcomeKind.RELEASED, 3)

    run(story)


def test_a_newer_state_takes_the_place_of_the_held_one_r083_s06(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = await world.subscribe()
        await world.push(table({"a": "deck"}))
        await world.push(table({"a": "deck"}, columns=OTHER))
        await world.push(table({"a": "shed"}, columns=OTHER))
        new, old = await world.holds()
        assert (old.state, old.decided_by) == (HoldState.REPLACED, None)
        assert (new.state, new.version, new.current_version) == (HoldState.OPEN, 3, 1)
        assert (await world.told(subscription.id))[2:] == [("delayed", 1, "schema_review")] * 2
        outcome = await world.push(table({"a": "shed"}))
        assert (outcome.outcome, outcome.version) == (OutcomeKind.RELEASED, 4)
        assert [hold.state for hold in await world.holds()] == [HoldState.REPLACED] * 2
        names = await world.blobs.names("datasets/ds_permits/")
        assert {name.split("/")[2] for name in names} == {"1", "4"}

    run(story)


def test_a_check_equal_to_the_base_discards_what_is_held(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = await world.subscribe()
        await world.push(table({"a": "deck", "b": "shed"}))
        for back in (table({"a": "deck", "b": "shed"}), table({"b": "shed", "a": "deck"})):
            await world.push(table({"a": "deck"}, columns=OTHER))
            outcome = await world.push(back)
            assert (outcome.outcome, outcome.hold) == (OutcomeKind.UNCHANGED, None)
            assert "discarded" in outcome.detail
            await world.declare(holds={"min_row_ratio": 0.1})
        assert [hold.state for hold in await world.holds()] == [HoldState.DISCARDED] * 2
        assert len(await world.told(subscription.id)) == 4

    run(story)


def test_a_version_whose_records_cannot_be_matched_stays_held_r074_s05_s26(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = await world.subscribe()
        outcome = await world.push("id,kind\na,deck\na,shed\n")
        assert (outcome.outcome, outcome.counts) == (OutcomeKind.HELD, None)
        (waiting,) = await world.holds()
        assert (waiting.reason, waiting.matched) == (HoldReason.DATA_CHECK, False)
        assert waiting.findings[0].examples == ["a"]
        assert await world.told(subscription.id) == [
            ("added", None),
            ("delayed", None, "data_check"),
        ]
        with pytest.raises(Conflict, match="not matched"):
            await world.release(waiting.id)
        with pytest.raises(Conflict, match="stays on hold: its records could not be matched again"):
            await match_held(world.parts, waiting.id)
        assert await world.holds(HoldState.OPEN) == [waiting]
        await world.discard(waiting.id)
        await sweep_blobs(world.store, world.blobs)
        assert await world.kept() == set()
        assert (await world.push(table({"a": "deck"}))).version == 2
        assert (await world.told(subscription.id))[-1] == ("resync_required", 2, "first_version")

    run(story)


def test_the_key_may_be_declared_anew_and_the_next_version_is_held_for_it_r073(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare(key=["kind"])
        await world.push("id,kind\na,deck\na,shed\n")
        await world.declare(key=["id"])
        assert (await world.push(table({"a": "deck"}))).outcome is OutcomeKind.RELEASED
        await world.declare(key=["kind"])
        outcome = await world.push(table({"a": "deck"}))
        assert outcome.hold is not None
        assert outcome.hold.reason is HoldReason.SCHEMA_REVIEW

    run(story)


def test_a_subscription_that_joins_during_a_hold_gets_delayed_after_added_r050_s06(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        await world.declare()
        await world.push(table({"a": "deck"}))
        await world.push(table({"a": "deck"}, columns=OTHER))
        subscription = await world.subscribe()
        assert await world.told(subscription.id) == [
            ("added", 1),
            ("delayed", 1, "schema_review"),
        ]

    run(story)


def test_holds_are_listed_newest_first_in_pages_and_by_state(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        await world.push(table({"a": "deck"}))
        for kind in ("x", "y", "z"):
            await world.push(table({"a": kind}, columns=OTHER))
        seen, cursor = [], None
        while True:
            page = await world.read(
                lambda tx, cursor=cursor: list_holds(tx, cursor=cursor, limit=2, state=None)
            )
            seen += [hold.version for hold in page.holds]
            if page.next_cursor is None:
                break
            cursor = page.next_cursor
        assert seen == [4, 3, 2]
        assert [hold.version for hold in await world.holds(HoldState.REPLACED)] == [3, 2]
        with pytest.raises(NotFound):
            await world.read(lambda tx: get_hold(tx, HoldId("hold_none")))

    run(story)


async def accepted(world: World) -> list[AcceptedFinding]:
    page = await world.read(lambda tx: list_accepted(tx, PERMITS, cursor=None, limit=500))
    return page.findings


def test_what_a_release_accepted_holds_no_later_version_that_is_not_worse(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        await world.push(many(100))
        held = await world.push(many(60))
        assert held.hold is not None
        await world.release(held.hold.id, note="A county left.")
        (found,) = await accepted(world)
        assert (found.kind, found.measure, found.note) == ("few_rows", 60, "A county left.")
        assert (found.accepted_by, found.accepted_by_name) == (world.staff.member_id, "default")
        await world.push(many(80))
        again = await world.push(many(55))
        assert again.outcome is OutcomeKind.RELEASED
        await world.push(many(80))
        assert (await world.push(many(53))).outcome is OutcomeKind.HELD

    run(story)


def test_an_accepted_finding_that_is_withdrawn_holds_again(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        await world.push(many(100))
        held = await world.push(many(60))
        assert held.hold is not None
        await world.release(held.hold.id)
        [finding] = await accepted(world)
        await world.write(lambda tx: withdraw_accepted(tx, PERMITS, finding.id))
        with pytest.raises(NotFound, match="no accepted finding"):
            await world.write(lambda tx: withdraw_accepted(tx, PERMITS, finding.id))
        await world.push(many(100))
        assert (await world.push(many(60))).outcome is OutcomeKind.HELD

    run(story)


def test_a_hold_replaced_by_one_whose_findings_are_all_accepted_is_released_r083(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = await world.subscribe()
        await world.push(many(100))
        first = await world.push(many(60))
        assert first.hold is not None
        await world.release(first.hold.id)
        await world.push(many(100))
        assert (await world.push(many(30))).outcome is OutcomeKind.HELD
        assert (await world.push(many(62))).outcome is OutcomeKind.RELEASED
        assert [hold.state for hold in await world.holds()] == ["replaced", "released"]
        told = await world.told(subscription.id)
        assert told[-2:] == [("delayed", 3, "data_check"), ("updated", 5)]

    run(story)
