"""Real histories through the use cases and the child: numbers, holds, events, counts."""

import json
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests.building import HISTORIES, history
from tests.fakes.chain import check_log
from tests.fakes.child_builder import ChildBuilder
from tests.fakes.world import PERMITS, World, play, stream

from ploti.model.admin import HoldState, Outcome, OutcomeKind
from ploti.model.event import HoldReason
from ploti.model.version import Counts
from ploti.server.adapters.builder.limits import Limits
from ploti.server.adapters.builder.process import ProcessBuilder
from ploti.server.service.check_source import push_state

pytestmark = pytest.mark.skipif(
    not HISTORIES.exists(), reason="the histories lie in ../shared/data, which is absent"
)


@pytest.fixture
def builder(tmp_path: Path) -> Iterator[ProcessBuilder]:
    limits = Limits(memory=2 << 30, seconds=300, file_size=1 << 30)
    entry = ("-m", "ploti.server.app.child")
    with closing(ProcessBuilder(tmp_path / "work", entry=entry, limits=limits)) as found:
        yield found


def true_counts(name: str, step: int) -> Counts:
    facts = json.loads((HISTORIES / f"{name}.facts.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = facts["diffs"][step]
    return Counts(
        added=found["added"],
        changed=found["changed_absent_column_as_blank"],
        removed=found["removed"],
    )


def states(name: str, folder: Path, first: int, last: int) -> list[str]:
    """The states v`first` to v`last` of a history."""
    return [
        state.read_text(encoding="utf-8")
        for state in islice(history(name, folder), first - 1, last)
    ]


def test_airports_v03_is_held_and_released_with_its_true_counts(
    tmp_path: Path, builder: ProcessBuilder
) -> None:
    async def story(world: World) -> None:
        await world.declare(key=["icao"], continuation="off")
        subscription = await world.subscribe()
        found = states("airportsdata", tmp_path, 1, 3)
        outcomes = [await world.push(state) for state in found]
        assert [outcome.outcome for outcome in outcomes] == [
            OutcomeKind.RELEASED,
            OutcomeKind.RELEASED,
            OutcomeKind.HELD,
        ]
        assert outcomes[1].counts == true_counts("airportsdata", 0)
        assert outcomes[2].counts == Counts(added=2130, changed=12396, removed=2875)
        (waiting,) = await world.holds(HoldState.OPEN)
        assert (waiting.reason, waiting.counts) == (HoldReason.SCHEMA_REVIEW, outcomes[2].counts)
        await world.release(waiting.id)
        assert await world.told(subscription.id) == [
            ("added", None),
            ("resync_required", 1, "first_version"),
            ("updated", 2),
            ("delayed", 2, "schema_review"),
            ("schema_changed", 3),
            ("resync_required", 3, "schema_changed"),
        ]

    play(tmp_path, story, builder=builder)


def test_runways_v10_is_held_as_emptied_and_v11_follows_from_v09(
    tmp_path: Path, builder: ProcessBuilder
) -> None:
    async def story(world: World) -> None:
        await world.declare(key=["id"])
        subscription = await world.subscribe()
        whole, emptied, mended = states("runways", tmp_path, 9, 11)
        assert (await world.push(whole)).outcome is OutcomeKind.RELEASED
        held = await world.push(emptied)
        assert held.hold is not None
        assert held.hold.reason is HoldReason.DATA_CHECK
        assert (await world.push(emptied)).outcome is OutcomeKind.UNCHANGED
        await world.discard(held.hold.id)
        assert (await world.push(emptied)).outcome is OutcomeKind.UNCHANGED
        outcome = await world.push(mended)
        assert (outcome.version, outcome.counts) == (3, Counts(added=0, changed=1, removed=0))
        assert check_log(await world.events(subscription.id)) == {PERMITS: 3}

    play(tmp_path, story, builder=builder)


R = ("released",)
KEY, FOUND = ("data_check", "key_fault"), ("data_check", "continuations")
MAJOR, SAME = ("schema_review", "schema_major"), ("unchanged",)
HELD_FOR = {
    "gbfs_systems": ({"key": ["System ID"]}, 5, [R, KEY, KEY, FOUND, MAJOR, MAJOR]),
    "spearfish_permits": (
        {"key": ["permit_number"]},
        *(1, [KEY, KEY, KEY, *(R, R, R, R, R, R), (*MAJOR, "likely_null_values")]),
    ),
    "world_countries_50m": ({"key": ["id"]}, 1, [KEY, SAME, R, R, KEY, R, SAME]),
}
"""Of a history what comes of its states from one on; a hold is released before the next."""


@pytest.mark.parametrize("name", HELD_FOR)
def test_each_state_of_a_history_is_held_for_what_is_wrong_with_it_and_nothing_else(
    tmp_path: Path, name: str
) -> None:
    """What a release accepted holds no later state, unless it is worse."""
    settings, first, expected = HELD_FOR[name]

    async def story(world: World) -> None:
        await world.declare(**settings)
        found = []
        for state in islice(history(name, tmp_path), first - 1, first - 1 + len(expected)):
            chunks = stream(state.read_bytes())
            outcome = await push_state(
                world.parts, PERMITS, name=state.name, chunks=chunks, dry_run=False
            )
            found.append(await told(world, outcome))
        assert found == expected

    play(tmp_path, story, builder=ChildBuilder())


async def told(world: World, outcome: Outcome) -> tuple[str, ...]:
    """An outcome; of a hold, which is released, its reason, and what it is held for with hints."""
    if outcome.hold is None:
        return (outcome.outcome,)
    (hold,) = await world.holds(HoldState.OPEN)
    await world.release(hold.id)
    reasons = {finding.reason: finding.kind for finding in hold.findings if finding.reason}
    hints = [each.kind for each in hold.findings if each.kind == "likely_null_values"]
    return (hold.reason, reasons[hold.reason], *hints)
