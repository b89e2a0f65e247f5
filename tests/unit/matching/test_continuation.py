"""Stage 5: pairs that are clearly the same, clearly better than the next best, and the gate."""

import json
import random
from datetime import date, timedelta

import pytest
from tests.unit.matching.tables import PERMIT, Matched, Record, matched, permits, shuffled

from ploti.server.build.matching.question import Budget, Continuation, Gate, Stage

WITHOUT_KEY = {name: type_ for name, type_ in PERMIT.items() if name != "permit"}


def edited(rows: list[dict[str, object]], *, every: int) -> list[Record]:
    return [{**r, "value": 5, "work": "x"} if i % every == 0 else r for i, r in enumerate(rows)]


def keyless(old: list[Record], new: list[Record], **settings: object) -> Matched:
    return matched(old, new, types=WITHOUT_KEY, **settings)


def test_an_edited_record_without_a_key_keeps_its_id() -> None:
    old = permits(400)
    new, order = shuffled(edited(old, every=5), seed=8)
    found = keyless(old, new)
    assert found.links == dict(enumerate(order))
    assert found.report.links == {Stage.CONTENT: 320, Stage.CONTINUATION: 80}
    assert found.report.gate is not None
    assert found.report.gate.stands
    assert found.report.block == 400


def test_texts_and_numbers_written_otherwise_count_as_equal() -> None:
    old = permits(100)
    new = [
        {**r, "address": f" {str(r['address']).upper()}.", "lat": float(str(r["lat"])) + 1e-9}
        for r in old
    ]
    found = keyless(old, new)
    assert found.links == {i: i for i in range(100)}
    evidence = json.loads(str(found.evidence[0]))
    assert {column["column"] for column in evidence["equal"]} == set(WITHOUT_KEY)


def test_days_flags_and_shapes_tell_records_apart_too() -> None:
    types = {**WITHOUT_KEY, "issued": "date", "open": "boolean", "geometry": "geometry"}
    old = [
        {**r, "issued": date(2016, 1, 1) + timedelta(i), "open": i % 2 == 0, "geometry": b"%d" % i}
        for i, r in enumerate(permits(100))
    ]
    new = [{**r, "address": None} for r in old]
    found = matched(old, new, types=types)
    assert found.of(Stage.CONTINUATION) == {i: i for i in range(100)}
    evidence = json.loads(str(found.evidence[0]))
    assert {"issued", "open", "geometry"} < {column["column"] for column in evidence["equal"]}


def test_the_evidence_names_the_columns_with_their_bits() -> None:
    old = permits(400)
    new = [{**r, "value": None} if i < 40 else r for i, r in enumerate(old)]
    evidence = json.loads(str(keyless(old, new).evidence[3]))
    assert [column["column"] for column in evidence["missing"]] == ["value"]
    assert {column["column"] for column in evidence["equal"]} == {"address", "work", "lat", "lon"}
    bits = [c["bits"] for kind in ("equal", "missing") for c in evidence[kind]]
    assert evidence["score"] == pytest.approx(sum(bits), abs=0.05)
    assert 0.5 <= evidence["share"] <= 1
    assert evidence["oldSecond"] is None


def test_where_nothing_continues_nothing_is_linked() -> None:
    found = keyless(permits(300, seed=1), permits(300, seed=2))
    assert found.links == {}


def test_a_link_hardly_better_than_a_sibling_is_not_made() -> None:
    houses = permits(100)
    old = [{**row, "work": f"unit {n}"} for row in houses for n in (1, 2)]
    new = [{**row, "work": f"unit {n}"} for row in houses for n in (2, 3)]
    found = keyless(old, new)
    assert found.report.links == {Stage.CONTENT: 100}
    assert found.report.gate is not None
    assert found.report.gate.sibling_share == 1.0


def unlike(count: int, *, columns: str, seed: int) -> list[Record]:
    draw = random.Random(seed)
    return [{name: f"{draw.getrandbits(60):x}" for name in columns} for _ in range(count)]


def test_a_row_of_which_too_little_is_the_same_continues_nothing() -> None:
    columns = "abcdef"
    old = unlike(400, columns=columns, seed=1)
    other = unlike(400, columns=columns, seed=2)
    for kept, linked in (("abc", []), ("abcd", list(range(20)))):
        new = [
            {name: (row if name in kept else strange)[name] for name in columns}
            for row, strange in zip(old[:20], other, strict=False)
        ]
        found = matched(old, [*new, *old[20:]], types=dict.fromkeys(columns, "string"))
        assert sorted(found.of(Stage.CONTINUATION)) == linked


def test_a_record_that_splits_keeps_its_id_for_the_clearly_closer_part() -> None:
    old = permits(100)
    split = old[0]
    parts = [{**split, "value": 1}, {**split, "value": 2, "work": "y", "lat": 1.0, "lon": 2.0}]
    assert keyless(old, [*old[1:], *parts]).links[99] == 0


def test_a_record_that_splits_into_equal_parts_gives_its_id_to_neither() -> None:
    old = permits(100)
    parts = [{**old[0], "value": 1}, {**old[0], "value": 2}]
    found = keyless(old, [*old[1:], *parts])
    assert 0 not in found.links.values()


def test_of_records_that_merge_into_one_the_clearly_closer_gives_it_its_id() -> None:
    old = permits(100)
    other = {**old[0], "value": 2, "work": "y", "lat": 1.0, "lon": 2.0}
    found = keyless([*old, other], [*old[1:], {**old[0], "value": 1}])
    assert found.links[99] == 0


def test_links_beyond_the_gate_become_proposals() -> None:
    old, strangers = permits(400, seed=1), permits(800, seed=2)
    new = [{**old[0], "value": 1}, *strangers]
    found = keyless(old, new)
    assert found.links == {}
    assert found.proposals == {0: 0}
    assert found.report.gate is not None
    assert not found.report.gate.stands


def test_the_gate_estimates_the_share_of_false_links() -> None:
    gate = Gate(links=100, old=200, new=300, rows=1_000, sibling_share=0.5)
    assert gate.estimate == pytest.approx(100 * 0.5 * 200 / (1_000 * 100))
    assert gate.stands
    assert not Gate(links=10, old=200, new=300, rows=1_000, sibling_share=0.5).stands
    assert Gate(links=0, old=9, new=9, rows=9, sibling_share=1.0).stands


def alike(count: int) -> list[Record]:
    """Rows of three values in which nothing is rare."""
    return [
        {"address": f"a{i % 5}", "work": f"w{i % 7}", "value": i % 9, "lat": 1.0, "lon": 1.0}
        for i in range(count)
    ]


def test_s26_rows_too_much_alike_for_the_budget_leave_the_matching_unfinished() -> None:
    old = [{**r, "lat": 1.0} for r in alike(300)]
    new = [{**r, "lat": 2.0} for r in alike(300)]
    tight = Budget(pairs=10, least_block=200)
    report = keyless(old, new, budget=tight).report
    assert report.over_budget is not None
    assert report.over_budget.startswith("more than 10 pairs of rows are alike")
    assert report.gate is None


def test_s26_without_the_limit_that_it_broke_it_is_finished() -> None:
    old = [{**r, "lat": 1.0} for r in alike(300)]
    new = [{**r, "lat": 2.0} for r in alike(300)]
    assert keyless(old, new, budget=Budget(pairs=None)).report.over_budget is None


def test_blocks_are_made_smaller_until_the_pairs_fit() -> None:
    old = [{**r, "address": f"{i % 25} Elm"} for i, r in enumerate(permits(400))]
    new = edited(old, every=2)
    report = keyless(old, new, budget=Budget(pairs=2_000)).report
    assert report.over_budget is None
    assert report.block is not None
    assert report.block < 400


def keyed_loss(lost: int, came: int, *, rows: int = 400, **settings: object) -> Matched:
    """Of so many rows some lost their key, and as many or others came under keys not seen."""
    old = permits(rows)
    new = [{**r, "permit": f"lost {i}"} for i, r in enumerate(old[:came])]
    return matched(old, [*new, *old[lost:]], types=PERMIT, key=["permit"], **settings)


def test_s25_a_keyed_version_looks_beyond_its_keys_where_twenty_went_and_twenty_came() -> None:
    assert keyed_loss(20, 20).report.links[Stage.CONTENT] == 20
    assert Stage.CONTENT not in keyed_loss(19, 19).report.links
    assert Stage.CONTENT not in keyed_loss(20, 19).report.links


def test_it_does_not_where_they_are_less_than_one_in_a_hundred() -> None:
    assert Stage.CONTENT not in keyed_loss(20, 20, rows=2_100).report.links


def test_it_does_not_where_the_declaration_leaves_it_to_the_keys_alone() -> None:
    off = keyed_loss(30, 30, continuation=Continuation.OFF)
    assert off.report.links == {Stage.KEY: 370}
    keyless_off = keyless(permits(30), permits(30), continuation=Continuation.OFF)
    assert keyless_off.report.links == {Stage.CONTENT: 30}


def test_keyed_records_under_new_keys_and_edited_are_found_by_score() -> None:
    old = permits(400)
    new = [
        {**r, "permit": f"new {(i * 37) % 401}", "value": 3} if i < 60 else r
        for i, r in enumerate(old)
    ]
    found = matched(old, new, types=PERMIT, key=["permit"])
    assert found.links == {i: i for i in range(400)}
    assert found.report.links == {Stage.KEY: 340, Stage.CONTINUATION: 60}


def test_a_source_may_name_its_columns_as_it_likes() -> None:
    names = ["record_id", "position", "r", "v0", "form", "content"]
    types = dict(zip(names, PERMIT.values(), strict=True))
    old = [dict(zip(names, row.values(), strict=True)) for row in permits(200)]
    new = [{**r, "v0": 5} if i % 4 == 0 else r for i, r in enumerate(old)]
    new = [{**r, "record_id": f"TX{r['record_id']}"} for r in new]
    others = [dict(zip(names, row.values(), strict=True)) for row in permits(4, seed=9)]
    twins = [{**r, "record_id": "one"} for r in others]
    for key in ((), ("record_id",), ("position",)):
        found = matched([*old, *twins], [*new, *twins], types=types, key=key)
        assert found.links == {i: i for i in range(204)}


def test_tables_of_nothing_but_a_key_and_empty_ones() -> None:
    alone = {"permit": "string"}
    rows = [{"permit": str(i)} for i in range(30)]
    moved = [{"permit": f"x{i}"} for i in range(30)]
    assert matched(rows, rows, types=alone, key=["permit"]).report.links == {Stage.KEY: 30}
    assert matched(rows, moved, types=alone, key=["permit"]).links == {}
    assert keyless([], permits(3)).links == {}
    assert keyless(permits(3), []).links == {}
