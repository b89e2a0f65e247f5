"""Stage 3: keys that are the old ones written otherwise."""

from collections.abc import Callable, Sequence

import pytest
from tests.unit.matching.tables import PERMIT, Matched, Record, matched, permits, shuffled

from ploti.server.build.matching.question import Stage

Change = Callable[[str], str]


def offset(key: str) -> str:
    return f"{key[:5]}{int(key[5:11]) + 70}{key[11:]}"


def rekeyed(change: Change, *, edited: int = 0) -> tuple[Matched, Sequence[int]]:
    """Match 300 permits to themselves under changed keys, some edited throughout but their work."""
    old = permits(300)
    new: list[Record] = [{**row, "permit": change(str(row["permit"]))} for row in old]
    for i in range(edited):
        new[i * 7] = {**new[i * 7], "address": f"moved {i}", "value": i}
    rows, order = shuffled(new, seed=5)
    return matched(old, rows, types=PERMIT, key=["permit"]), order


@pytest.mark.parametrize(
    ("change", "stage"),
    [
        (str.lower, Stage.KEY_FORM),
        (lambda k: k.replace("-", " / "), Stage.KEY_FORM),
        (lambda k: f"TX{k}", Stage.KEY_TEMPLATE),
        (lambda k: f"{k} 7", Stage.KEY_TEMPLATE),
        (lambda k: k.replace("-000", "-"), Stage.KEY_TEMPLATE),
        (lambda k: f"{k[12:]}-{k[5:11]}-{k[:4]}", Stage.KEY_TEMPLATE),
        (offset, Stage.KEY_TEMPLATE),
    ],
    ids=["case", "punctuation", "prefix", "suffix", "zeros", "order of parts", "offset"],
)
def test_r058_a_key_written_otherwise_keeps_every_id(change: Change, stage: Stage) -> None:
    found, order = rekeyed(change, edited=12)
    assert found.links == dict(enumerate(order))
    assert found.report.links[stage] == 300


def test_a_suffix_to_keys_of_unlike_parts_is_counted_from_the_right() -> None:
    old = [{**r, "permit": f"{'A' if i % 2 else ''}{i}"} for i, r in enumerate(permits(300))]
    new = [{**r, "permit": f"{r['permit']}-x"} for r in old]
    found = matched(old, new, types=PERMIT, key=["permit"])
    assert found.links == {i: i for i in range(300)}
    assert found.report.links == {Stage.KEY_TEMPLATE: 300}


def test_a_template_is_shown_with_three_examples() -> None:
    found, _ = rekeyed(lambda key: f"TX{key}")
    assert found.report.template is not None
    assert found.report.template.form == "'tx' 1 2 3, counted from the left"
    assert found.report.template.examples[0] == ("2016-000001 BP", "TX2016-000001 BP")
    assert len(found.report.template.examples) == 3
    assert found.evidence[0] == '{"template": "\'tx\' 1 2 3, counted from the left"}'


def test_keys_that_lost_what_told_them_apart_are_not_linked_by_it() -> None:
    old = permits(300)
    twice = [{**row, "permit": f"2017{str(row['permit'])[4:]}"} for row in permits(40, seed=9)]
    both = [*old, *twice]
    new, order = shuffled([{**r, "permit": str(r["permit"])[5:]} for r in both], seed=6)
    found = matched(both, new, types=PERMIT, key=["permit"])
    assert found.links == dict(enumerate(order))
    assert found.report.links == {Stage.KEY_TEMPLATE: 260, Stage.CONTENT: 80}


def test_letters_are_never_dropped_and_a_new_sequence_finds_nothing() -> None:
    numbers = iter(range(1, 999))
    found, order = rekeyed(lambda _: f"{(next(numbers) * 377) % 1009}-A")
    assert found.report.template is None
    assert found.report.links == {Stage.CONTENT: 300}
    assert found.links == dict(enumerate(order))


def test_keys_of_other_columns_that_look_alike_are_not_linked_by_their_looks() -> None:
    old = [{**r, "seq": str(i)} for i, r in enumerate(permits(200))]
    new = [{**r, "seq": str((i * 77) % 200)} for i, r in enumerate(permits(200))]
    types = {**PERMIT, "seq": "string"}
    rows = [{**r, "permit": str((i * 31) % 200)} for i, r in enumerate(new)]
    found = matched(old, rows, types=types, key=["permit"], key_before=["seq"])
    assert Stage.KEY_FORM not in found.report.links
    assert found.links == {i: i for i in range(200)}


def test_a_key_of_two_parts_may_become_one() -> None:
    old = [
        {**r, "year": str(r["permit"])[:4], "number": str(r["permit"])[5:11]} for r in permits(100)
    ]
    new = [{**r, "value": i % 7} for i, r in enumerate(permits(100))]
    types = {"year": "string", "number": "string", **PERMIT}
    found = matched(
        old,
        [{**r, "permit": str(r["permit"])[:11]} for r in new],
        types=types,
        key=["permit"],
        key_before=["year", "number"],
        old_only=["year", "number"],
    )
    assert found.report.links[Stage.KEY_FORM] == 100
    assert found.links == {i: i for i in range(100)}
