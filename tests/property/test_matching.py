"""Law 4: an id is never given twice, and the same tables in any order give the same links."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.matching.tables import PERMIT, Matched, Record, matched, permits, shuffled

from ploti.server.build.matching.question import Stage

MODEST = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])

NEW_KEYS: dict[str, Callable[[str], str | None]] = {
    "the same": lambda key: key,
    "lower case": str.lower,
    "a prefix": lambda key: f"TX {key}",
    "dealt anew": lambda key: f"2016-{int(key[5:11]) * 7 % 97:06d} BP",
    "coarse": lambda key: key[:10],
    "none": lambda _: None,
}


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Record], list[Record], tuple[str, ...]]:
    """A table, the same with rows edited, lost, doubled and added, and the key that they share."""
    rows = draw(st.integers(0, 90))
    chance = random.Random(draw(st.integers(0, 2**32)))
    rekey = NEW_KEYS[draw(st.sampled_from(sorted(NEW_KEYS)))]
    edits, losses, doubles = (draw(st.sampled_from([0.0, 0.05, 0.5])) for _ in range(3))
    old: list[Record] = list(permits(rows, seed=chance.randrange(5)))
    old += [row for row in old if chance.random() < doubles]
    new: list[Record] = []
    for row in old:
        if chance.random() >= losses:
            new += [_edited(row, chance, share=edits, rekey=rekey)]
    new += permits(draw(st.integers(0, 30)), seed=7)
    new += [row for row in new if chance.random() < doubles / 2]
    return old, new, draw(st.sampled_from([(), ("permit",), ("permit", "address")]))


def _edited(
    row: Record, chance: random.Random, *, share: float, rekey: Callable[[str], str | None]
) -> Record:
    changed = {**row, "permit": rekey(str(row["permit"]))}
    if chance.random() < share:
        column = chance.choice(["address", "work", "value", "lat"])
        changed[column] = None if chance.random() < 0.3 else _other(row, column)
    return changed


def _other(row: Record, column: str) -> object:
    value = row[column]
    return f"{value} b" if isinstance(value, str) else value + 1


def carried(found: Matched, new: Sequence[Record]) -> dict[int, tuple[object, ...]]:
    """What each record of the base holds now."""
    return {old: tuple(new[place].values()) for place, old in found.links.items()}


@MODEST
@given(histories())
def test_every_link_is_one_to_one_and_equal_single_keys_are_linked(
    history: tuple[list[Record], list[Record], tuple[str, ...]],
) -> None:
    old, new, key = history
    found = matched(old, new, types=PERMIT, key=key)
    assert len(set(found.links.values())) == len(found.links)
    assert set(found.links) <= set(range(len(new)))
    assert set(found.links.values()) <= set(range(len(old)))
    assert sum(found.report.links.values()) == len(found.links)
    by_key = {**found.of(Stage.KEY), **found.of(Stage.REPEATED_KEY)}
    for place, record in by_key.items():
        assert [new[place][c] for c in key] == [old[record][c] for c in key]


@MODEST
@given(histories(), st.integers(0, 2**32), st.sampled_from([1, 2]))
def test_rows_in_another_order_and_other_threads_give_the_same_links(
    history: tuple[list[Record], list[Record], tuple[str, ...]], seed: int, threads: int
) -> None:
    old, new, key = history
    found = matched(old, new, types=PERMIT, key=key)
    again, _ = shuffled(new, seed=seed)
    other = matched(old, again, types=PERMIT, key=key, threads=threads)
    assert carried(other, again) == carried(found, new)
    assert other.report == found.report
