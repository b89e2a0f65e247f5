"""What the references say of reasons: each on its own, and which of several wins."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.child_builder import ChildBuilder
from tests.fakes.world import PERMITS, World, many, play, table
from tests.seeds.conftest import Play
from tests.seeds.telling import NARROWER, WIDER, choose, of_type, shrink, shrunk

from ploti.errors import SourceError
from ploti.model.admin import OutcomeKind
from ploti.model.event import HoldReason, RemovedReason, StaleReason
from ploti.model.version import ResyncReason
from ploti.model.wire import Instant
from ploti.server.build.candidate import BuildOrder, Candidate
from ploti.server.service.rebuild_version import rebuild_version


def test_there_are_just_the_reasons_of_the_reference_r051_r065_r071_r072() -> None:
    assert [*ResyncReason] == [
        *("record_ids_changed", "first_version", "previous_unavailable"),
        *("key_columns_changed", "schema_changed"),
    ]
    assert {*RemovedReason} == {
        *("left_coverage", "plan_changed", "subscription_changed", "no_longer_deliverable"),
    }
    assert {*StaleReason} == {"check_overdue"}
    assert {*HoldReason} == {"schema_review", "data_check", "processing"}


BEFORE = "id,kind,n\n" + "".join(f"k{n},deck,{n}\n" for n in range(40))


@pytest.mark.parametrize(
    ("state", "key", "reason"),
    [
        pytest.param(BEFORE.replace("kind", "sort"), "id", "schema_review", id="column removed"),
        pytest.param(BEFORE.replace("k9,deck,9", "k9,deck,x"), "id", "schema_review", id="retyped"),
        pytest.param(BEFORE, "n", "schema_review", id="key changed"),
        pytest.param("".join(BEFORE.splitlines(True)[:20]), "id", "data_check", id="few rows"),
        pytest.param(f"{BEFORE}k1,pool,41\n", "id", "data_check", id="key repeats"),
        pytest.param(f"{BEFORE},pool,41\n", "id", "data_check", id="key is null"),
        pytest.param(BEFORE.replace("\nk", "\nnew "), "id", "data_check", id="ids turn over"),
    ],
)
def test_each_cause_of_a_hold_holds_by_itself_r073_r074(
    tmp_path: Path, state: str, key: str, reason: str
) -> None:
    async def story(world: World) -> None:
        await world.declare(continuation="off")
        subscription = (await world.subscribe()).id
        await world.push(BEFORE)
        await world.declare(key=[key], continuation="off")
        outcome = await world.push(state)
        assert outcome.outcome is OutcomeKind.HELD, outcome
        assert (await world.told(subscription))[2:] == [("delayed", 1, reason)]

    play(tmp_path, story, builder=ChildBuilder())


async def _fails(order: BuildOrder, **_: object) -> Candidate:
    raise SourceError("The reader is still wrong")


async def order_again(world: World) -> None:
    """The current version is ordered anew, and its rebuild does not come to anything."""
    builder = world.builder.build
    world.builder.build = _fails  # type: ignore[method-assign, assignment]
    assert (await rebuild_version(world.parts, PERMITS)).outcome is OutcomeKind.FAILED
    world.builder.build = builder  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("settings", "state", "told"),
    [
        ({}, table({"a": "pool"}), [("resync_required", 2, "previous_unavailable")]),
        ({}, WIDER, [("schema_changed", 2), ("resync_required", 2, "schema_changed")]),
        (
            {"key": ["kind"]},
            table({"a": "deck"}),
            [("schema_changed", 2), ("resync_required", 2, "key_columns_changed")],
        ),
    ],
    ids=["nothing else", "a MINOR change", "the key"],
)
def test_what_comes_after_a_release_again_has_the_reason_that_goes_before_r038_r052_r055_r062_r063(
    run: Play, settings: dict[str, Any], state: str, told: list[tuple[object, ...]]
) -> None:
    """S-22. A MINOR change, which is `updated` on its own, is loaded here."""

    async def story(world: World) -> None:
        await world.declare()
        subscription = (await world.subscribe()).id
        await world.push(table({"a": "deck"}))
        await order_again(world)
        await world.declare(**settings)
        held = (await world.push(state)).hold
        if held is not None:
            await world.release(held.id)
        events = [each for each in await world.told(subscription) if each[0] != "delayed"]
        assert events[2:] == told
        await world.push(state.replace("a,", "b,"))
        assert (await world.told(subscription))[-1][0] == "updated"

    run(story)


def test_a_hold_and_its_discard_leave_the_next_one_a_version_to_load_r062_s19(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = (await world.subscribe()).id
        await world.push(many(40))
        await order_again(world)
        held = (await world.push(shrunk())).hold
        assert held is not None
        await world.discard(held.id)
        await world.push(many(41))
        assert (await world.told(subscription))[-2:] == [
            ("delayed", 1, "data_check"),
            ("resync_required", 3, "previous_unavailable"),
        ]

    run(story)


def test_a_released_hold_is_sent_as_the_updated_that_it_would_have_been_r081(run: Play) -> None:
    async def story(world: World) -> None:
        subscription, hold = await shrink(world)
        await world.release(hold.id)
        assert (await world.told(subscription))[2:] == [
            ("delayed", 1, "data_check"),
            ("updated", 2),
        ]

    run(story)


def test_since_is_when_the_version_was_built_however_late_it_is_told_r049_r050_s06(
    run: Play,
) -> None:
    """And what takes its place has a `since` of its own."""

    async def story(world: World) -> None:
        await world.declare()
        first = (await world.subscribe()).id
        await world.push(WIDER)
        began = world.clock.now()
        await world.push(NARROWER)
        ended = world.clock.now()
        world.clock.moment = Instant.of(ended + timedelta(days=2))
        late = (await world.subscribe()).id
        (told,) = of_type(await world.events(first), "delayed")
        (told_late,) = of_type(await world.events(late), "delayed")
        assert str(began) < told["data"]["since"] < str(ended)
        assert told_late["data"] == told["data"]
        assert told_late["timestamp"] > str(ended + timedelta(days=1))
        await world.push(NARROWER.replace("a,", "b,"))
        (_, replaced) = of_type(await world.events(first), "delayed")
        assert replaced["data"]["since"] > told_late["timestamp"]

    run(story)


def test_what_leaves_during_a_hold_is_told_at_once_r041_s07(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = (await world.subscribe()).id
        await world.push(WIDER)
        await world.push(NARROWER)
        await choose(world, subscription, topics=["none"], datasets=[])
        assert (await world.told(subscription))[2:] == [
            ("delayed", 1, "schema_review"),
            ("removed", "subscription_changed"),
        ]

    run(story)
