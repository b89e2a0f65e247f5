"""Stage 2: rows that share a key are told apart, one to one."""

import pytest
from tests.unit.matching.tables import PERMIT, matched, permits, shuffled

from ploti.server.build.matching import repeated_keys
from ploti.server.build.matching.question import Stage

KEY = ["permit"]
SMALL = {"permit": "string", "work": "string", "value": "int64"}


def row(permit: str, work: str | None, value: int | None) -> dict[str, object]:
    return {"permit": permit, "work": work, "value": value}


def test_equal_rows_of_a_key_come_first_then_the_most_alike() -> None:
    old = [row("A", "new roof", 10), row("A", "garage", 20), row("A", "pool", 30)]
    new = [row("A", "garage", 25), row("A", "pool", 30), row("A", "new roof", 11)]
    found = matched(old, new, types=SMALL, key=KEY)
    assert found.links == {0: 1, 1: 2, 2: 0}
    assert found.report.links == {Stage.REPEATED_KEY: 3}
    assert found.report.repeated_keys == 1


def test_a_key_that_is_new_twice_keeps_its_id_for_the_row_most_like_it() -> None:
    old = [row("A", "new roof", 10), row("B", "sign", 1)]
    new = [row("A", "garage", 99), row("A", "new roof", 12), row("B", "sign", 1)]
    assert matched(old, new, types=SMALL, key=KEY).links == {1: 0, 2: 1}


def test_equal_rows_are_counted_and_ids_given_in_order() -> None:
    old = [row("A", "sign", 1)] * 3
    assert matched(old, old[:2], types=SMALL, key=KEY).links == {0: 0, 1: 1}


def test_rows_of_a_key_whose_half_was_edited_are_all_found() -> None:
    old = [{**r, "permit": f"K{i // 3}"} for i, r in enumerate(permits(300))]
    edited = [{**r, "value": 5, "work": "x"} if i % 2 else r for i, r in enumerate(old)]
    new, order = shuffled(edited, seed=3)
    assert matched(old, new, types=PERMIT, key=KEY).links == dict(enumerate(order))


def test_null_keys_are_a_group_like_another() -> None:
    old = [{**r, "permit": None} for r in permits(5)]
    new, order = shuffled([{**r, "value": 1} for r in old], seed=4)
    found = matched(old, new, types=PERMIT, key=KEY)
    assert found.links == dict(enumerate(order))
    assert found.report.null_keys == 5


def test_a_key_of_too_many_rows_goes_by_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_keys, "MOST_PAIRS", 15)
    old = [row("A", f"w{i}", i) for i in range(4)]
    new = [row("A", f"w{i}", i + 100) for i in range(4)][::-1]
    assert matched(old, new, types=SMALL, key=KEY).links == {0: 3, 1: 2, 2: 1, 3: 0}


def test_a_key_is_all_that_rows_have() -> None:
    old = [{"permit": "A"}] * 2
    assert matched(old, old, types={"permit": "string"}, key=KEY).links == {0: 0, 1: 1}
