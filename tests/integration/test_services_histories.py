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
from tests.fakes.world import PERMITS, World, play

from ploti.model.admin import HoldState, OutcomeKind
from ploti.model.event import HoldReason
from ploti.model.version import Counts
from ploti.server.adapters.builder import Limits, ProcessBuilder

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
