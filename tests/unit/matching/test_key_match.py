"""Stage 1: equal keys, returning records, and the proof that keys were not dealt anew."""

import pytest
from tests.unit.matching.tables import PERMIT, Tables, ask, matched, permits, shuffled

from ploti.server.build.matching.links import whole
from ploti.server.build.matching.match import match
from ploti.server.build.matching.proof import prove_by_changed
from ploti.server.build.matching.question import Proof, Stage

KEY = ["permit"]


def test_equal_keys_are_the_same_record_whatever_else_changed() -> None:
    old = permits(40)
    new, order = shuffled([{**row, "work": "changed", "value": 1} for row in old], seed=2)
    found = matched(old, new, types=PERMIT, key=KEY)
    assert found.links == dict(enumerate(order))
    assert found.report.links == {Stage.KEY: 40}


def test_a_null_in_a_key_is_a_value_like_another() -> None:
    types = {"street": "string", "number": "int64", "owner": "string"}
    old = [
        {"street": "Elm", "number": 1, "owner": "a"},
        {"street": "Elm", "number": None, "owner": "b"},
    ]
    new = [{**old[1], "owner": "c"}, {**old[0], "owner": "d"}]
    found = matched(old, new, types=types, key=["street", "number"])
    assert found.links == {0: 1, 1: 0}
    assert found.report.null_keys == 1


def test_keys_dealt_anew_are_not_matched_by_and_the_content_is_found_instead() -> None:
    old = permits(200)
    numbers = [row["permit"] for row in old]
    new = [{**row, "permit": n} for row, n in zip(old[::-1], numbers, strict=True)]
    found = matched(old, new, types=PERMIT, key=KEY)
    assert found.report.keys is not None
    assert found.report.keys.dealt_anew
    assert found.of(Stage.KEY) == {}
    assert found.links == {i: 199 - i for i in range(200)}


def test_a_key_of_which_every_row_changed_in_one_column_is_trusted() -> None:
    old = permits(200)
    new = [{**row, "value": 7} for row in old]
    report = matched(old, new, types=PERMIT, key=KEY).report
    sample = {"pairs": 200, "random_pairs": 200, "changed": 200}
    assert report.keys == Proof(columns=3, agreeing=200, random_agreeing=0, told=True, **sample)


def test_without_a_column_that_tells_rows_apart_nothing_is_said_against_a_key() -> None:
    old = [{"permit": str(i), "work": "x"} for i in range(50)]
    new = [{"permit": str(i), "work": "y"} for i in range(50)]
    types = {"permit": "string", "work": "string"}
    report = matched(old, new, types=types, key=KEY).report
    assert report.keys is not None
    assert not report.keys.dealt_anew
    assert report.links == {Stage.KEY: 50}


@pytest.mark.parametrize("now", [None, "N/A"])
def test_a_column_that_was_emptied_says_nothing_against_a_key(now: str | None) -> None:
    old: list[dict[str, object]] = [{"permit": str(i), "work": f"w{i}"} for i in range(50)]
    types = {"permit": "string", "work": "string"}
    report = matched(old, [{**row, "work": now} for row in old], types=types, key=KEY).report
    assert report.keys is not None
    assert not report.keys.dealt_anew
    assert report.links == {Stage.KEY: 50}
    anew = matched(old, [{**row, "work": f"{row['work']} b"} for row in old], types=types, key=KEY)
    assert anew.report.keys is not None
    assert anew.report.keys.dealt_anew


def test_a_key_is_trusted_where_one_column_that_tells_rows_apart_stands_and_all_else_changed() -> (
    None
):
    types = {"permit": "string", "name": "string", "a": "int64", "b": "int64", "c": "int64"}
    old: list[dict[str, object]] = [
        {"permit": str(i), "name": f"n{i}", "a": i, "b": 2 * i, "c": 3 * i} for i in range(100)
    ]
    new = [{**row, "a": 900 + i, "b": 1900 + i, "c": 2900 + i} for i, row in enumerate(old)]
    report = matched(old, new, types=types, key=KEY).report
    assert report.keys is not None
    assert not report.keys.dealt_anew
    assert report.links == {Stage.KEY: 100}
    other = [{**row, "name": f"m{i}"} for i, row in enumerate(new)]
    anew = matched(old, other, types=types, key=KEY).report
    assert anew.keys is not None
    assert anew.keys.dealt_anew


def test_most_pairs_must_disagree_and_no_less_than_at_random() -> None:
    proof = {"columns": 3, "pairs": 100, "random_pairs": 100}
    assert Proof(**proof, agreeing=3, random_agreeing=1).dealt_anew
    assert not Proof(**proof, agreeing=50, random_agreeing=60).dealt_anew
    assert not Proof(**proof, agreeing=30, random_agreeing=1).dealt_anew
    few = {**proof, "pairs": 19}
    assert not Proof(**few, agreeing=0, random_agreeing=1).dealt_anew


def numbered(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{**row, "permit": str(i)} for i, row in enumerate(rows)]


def test_a_row_that_came_in_the_middle_of_a_count_of_rows_deals_the_keys_anew() -> None:
    rows = permits(201)
    old, new = numbered([*rows[:150], *rows[151:]]), numbered(rows)
    found = matched(old, new, types=PERMIT, key=KEY)
    assert found.report.keys is not None
    assert (found.report.keys.changed, found.report.keys.moved) == (50, 49)
    assert found.report.keys.dealt_anew
    assert found.links == {i: i - (i > 150) for i in range(201) if i != 150}


def test_values_that_all_move_together_under_their_keys_deal_nothing_anew() -> None:
    old = [{"permit": str(i), "work": f"station {i}", "value": i} for i in range(100)]
    new = [{**row, "value": (i * 7) % 100} for i, row in enumerate(old)]
    types = {"permit": "string", "work": "string", "value": "int64"}
    report = matched(old, new, types=types, key=KEY).report
    assert report.keys is not None
    assert not report.keys.dealt_anew


def returned(gone: list[dict[str, object]], *back: dict[str, object]) -> list[str | None]:
    """The ids that these rows of the key `back` have again, of records that had this key."""
    old = permits(30)
    tables = Tables()
    new = [*old, *({**row, "permit": "back"} for row in back)]
    removed = [{"permit": "back", **record} for record in gone]
    match(tables.run, ask(tables, old, new, types=PERMIT, key=KEY, gone=removed))
    found = tables.run("SELECT position, record_id FROM match_links WHERE stage = 'returned'")
    ids = {whole(position): str(record_id) for position, record_id in found}
    return [ids.get(place) for place in range(30, len(new))]


def gone(name: str, row: dict[str, object] | None = None) -> dict[str, object]:
    return {**(row or {}), "_ploti_record_id": name, "permit": "back"}


def test_a_key_that_comes_back_gives_its_record_its_id_again() -> None:
    row = permits(31)[30]
    assert returned([gone("rec_a")], row) == ["rec_a"]
    assert returned([gone("rec_a")], row, row) == ["rec_a", None]


def test_of_records_that_lost_one_key_those_return_that_are_equal_then_the_most_alike() -> None:
    a, b, c = permits(33)[30:]
    removed = [gone("rec_a", a), gone("rec_b", b), gone("rec_c", c)]
    assert returned(removed, b) == ["rec_b"]
    assert returned(removed, c, a, b) == ["rec_c", "rec_a", "rec_b"]
    edited = {**b, "value": 5}
    assert returned(removed, edited, a) == ["rec_b", "rec_a"]
    assert returned([gone("rec_a", a), gone("rec_b", a)], a) == ["rec_a"]


def test_the_id_of_a_record_that_is_in_the_base_is_not_given_back() -> None:
    assert returned([gone("rec_000000010000000003")], permits(31)[30]) == [None]


def by_changed(old: list[dict[str, object]], new: list[dict[str, object]]) -> Proof | None:
    """The proof by the changed rows, of tables whose rows stand at equal places."""
    changed = [i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
    places = ", ".join(f"({place})" for place in changed)
    tables = Tables()
    question = ask(tables, old, new, types=PERMIT, key=KEY)
    positions = f"SELECT position FROM (VALUES {places}) AS v(position)"
    return prove_by_changed(tables.run, question, positions=positions)


def test_of_keys_that_mostly_stand_the_changed_rows_alone_are_looked_at() -> None:
    rows = permits(300)
    shifted = [*rows[:200], *({**rows[200 + i], **rest(rows[199 + i])} for i in range(100))]
    found = by_changed(rows, shifted)
    assert found is not None
    assert (found.changed, found.moved) == (100, 100)
    assert found.dealt_anew
    edited = [*rows[:200], *({**row, "value": 7} for row in rows[200:])]
    found = by_changed(rows, edited)
    assert found == Proof(changed=100)
    assert not found.dealt_anew


def test_changed_rows_that_no_column_tells_apart_prove_nothing() -> None:
    rows = [{**row, "work": "x", "street": "y"} for row in permits(100)]
    alike = [{name: row[name] if name in KEY else None for name in row} for row in rows]
    assert by_changed(alike, [*alike[:50], *({**r, "work": "z"} for r in alike[50:])]) is None


def rest(row: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if name not in KEY}
