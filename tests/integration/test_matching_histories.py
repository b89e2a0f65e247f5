"""The matching on real histories whose true key is known and hidden (issue 4, part 4).

Precision of at least 0.995 is asked of scored links, recall of at least 0.95 of all records that
continue.
"""

import itertools

import pytest
from tests.unit.matching.histories import Judged, State, halves, judge, states
from tests.unit.matching.tables import shuffled

from ploti.server.build.matching.question import Continuation, Stage

IDENTS = ["airport_ident", "le_ident", "he_ident"]


def test_r058_airports_renamed_overnight_keep_their_runways_ids() -> None:
    """Runways v12 to v13 renames `airport_ident` in 3,384 rows and changes nothing else there."""
    before, after = states("runways", "v12", "v13")
    judged = judge(before, after, truth="id")
    assert judged.wrong == 0
    assert judged.scored_right >= 3_350
    assert judged.recall >= 0.9993


def test_r058_they_keep_them_too_where_the_new_names_are_the_key() -> None:
    before, after = states("runways", "v12", "v13")
    judged = judge(before, after, truth="id", key=IDENTS)
    assert judged.wrong == 0
    assert judged.recall == 1.0
    assert judged.found.report.links[Stage.CONTENT] >= 3_384
    assert judged.found.report.keys is not None
    assert not judged.found.report.keys.dealt_anew


def test_list_of_bike_share_systems_over_ten_years_without_its_key() -> None:
    versions = states("gbfs_systems")
    steps = [judge(a, b, truth="System ID") for a, b in itertools.pairwise(versions)]

    def total(name: str) -> int:
        return sum(getattr(step, name) for step in steps)

    assert total("scored_right") >= 1_650
    assert total("scored_wrong") <= 0.005 * total("scored_right")
    assert total("right") / total("continuing") >= 0.985


def test_permits_of_a_small_town_without_their_key_lose_none() -> None:
    versions = states("spearfish_permits")
    for before, after in itertools.pairwise(versions):
        judged = judge(before, after, truth="permit_number")
        assert (judged.wrong, judged.recall) == (0, 1.0), after.label


def test_airports_under_a_new_code_are_found_by_content_unless_it_is_off() -> None:
    before, after = states("airportsdata", "v07", "v08")
    review = judge(before, after, truth="icao", key=["icao"]).found.report.links
    assert review[Stage.CONTENT] == 17
    off = judge(before, after, truth="icao", key=["icao"], continuation=Continuation.OFF)
    assert set(off.found.report.links) == {Stage.KEY}


def test_repeated_permit_numbers_keep_to_their_month() -> None:
    """In spearfish_permits year and month tell the rows of one number apart."""
    before, after = states("spearfish_permits", "v08", "v09")
    found = judge(before, after, truth="permit_number", key=["permit_number"]).found
    pairs = found.of(Stage.REPEATED_KEY)
    assert len(pairs) == 48
    for column in ("year", "month"):
        assert [after.rows[place][column] for place in pairs] == [
            before.rows[record][column] for record in pairs.values()
        ]


@pytest.mark.parametrize(
    ("name", "label", "truth"),
    [
        ("airportsdata", "v08", "icao"),
        ("gbfs_systems", "v14", "System ID"),
        ("spearfish_permits", "v09", "permit_number"),
    ],
)
def test_where_nothing_continues_no_scored_link_is_made(name: str, label: str, truth: str) -> None:
    (state,) = states(name, label)
    judged = judge(*halves(state, seed=5), truth=truth)
    assert Stage.CONTINUATION not in judged.found.report.links
    assert judged.found.report.gate is not None
    assert not judged.found.report.gate.stands


def test_the_order_of_rows_and_the_threads_decide_nothing() -> None:
    before, after = states("gbfs_systems", "v09", "v10")
    first = judge(before, after, truth="System ID")
    rows, order = shuffled(after.rows, seed=3)
    other = State(after.label, after.columns, rows)
    again = judge(before, other, truth="System ID", threads=2)

    def carried(judged: Judged, places: dict[int, int]) -> dict[int, tuple[object, ...]]:
        links = judged.found.links.items()
        seen = [column for column in after.columns if column != "System ID"]
        return {record: tuple(after.rows[places[p]][c] for c in seen) for p, record in links}

    same = {place: place for place in range(len(after.rows))}
    assert carried(again, dict(enumerate(order))) == carried(first, same)
    assert again.found.report == first.found.report
