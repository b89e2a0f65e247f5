"""The net change between two versions: by changes files, by snapshots, and always the same."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import duckdb
import pytest
from tests.fakes.feed import FakeFeed, FakeVersion, Rows, make_schema

from ploti.errors import Expired, NotFound
from ploti.model.ids import DatasetId
from ploti.model.version import ResyncReason
from ploti.sync.differences import compared

D = DatasetId("ds_permits")
SCHEMA = make_schema(no="string", units="int64")
WIDER = make_schema(no="string", units="int64", floors="int64")


def rows(**units: int) -> dict[str, dict[str, object]]:
    return {f"rec_{name}": {"no": name, "units": each} for name, each in units.items()}


@pytest.fixture
def feed() -> FakeFeed:
    feed = FakeFeed()
    feed.join(D)
    return feed


def no_map() -> Mapping[str, str]:
    return {}


Net = dict[str, tuple[str, object]]


def net(feed: FakeFeed, start: int, end: int) -> tuple[str, Net]:
    with compared(feed, D, start, end, id_map=no_map) as found:
        told = {row.record_id: (row.change, row.record) for row in found.rows}
        assert found.counts.total == len(told)
        return found.by, told


def truth(first: FakeVersion, last: FakeVersion) -> Net:
    """By plain dictionaries."""

    def full(row: Mapping[str, object]) -> dict[str, object]:
        return {column.name: row.get(column.name) for column in last.schema.columns}

    old = {key: full(row) for key, row in first.rows.items()}
    new = {key: full(row) for key, row in last.rows.items()}
    found: Net = dict.fromkeys(old.keys() - new.keys(), ("removed", None))
    found |= {key: ("added", new[key]) for key in new.keys() - old.keys()}
    both = old.keys() & new.keys()
    return found | {key: ("changed", new[key]) for key in both if old[key] != new[key]}


def history(feed: FakeFeed, seed: int) -> list[FakeVersion]:
    """Versions in which records change, come, go, come back, and are what they were."""
    chance = random.Random(seed)
    state: Rows = {f"rec_{each}": {"units": each} for each in range(60)}
    made = [feed.release(D, SCHEMA, state)]
    for _ in range(5):
        state = {
            key: {"units": chance.choice([row.get("units"), 1, 2])}
            for key, row in state.items()
            if chance.random() > 0.1
        } | {f"rec_{chance.randrange(70)}": {"units": 1} for _ in range(4)}
        made.append(feed.release(D, SCHEMA, state))
    return made


@pytest.mark.parametrize("seed", range(4))
def test_both_ways_give_what_plain_dictionaries_give(feed: FakeFeed, seed: int) -> None:
    made = history(feed, seed)
    for start, end in ((1, 2), (1, 6), (2, 5)):
        expected = truth(made[start - 1], made[end - 1])
        found = [net(feed, start, end)]
        feed.datasets[D].versions[end] = _without_changes(feed, end)
        found.append(net(feed, start, end))
        feed.datasets[D].versions[end] = made[end - 1]
        assert [told for _, told in found] == [expected, expected]
        assert found[1][0] == "snapshots"
    by, _ = net(feed, 1, 2)
    assert by == "changes"


def _without_changes(feed: FakeFeed, number: int) -> FakeVersion:
    """The same version as one that is to be loaded."""
    version = feed.datasets[D].versions[number]
    return replace(version, changes=None, reason=ResyncReason.PREVIOUS_UNAVAILABLE)


def test_a_record_that_is_what_it_was_is_no_difference(feed: FakeFeed) -> None:
    many = {f"rec_{each}": {"no": str(each), "units": each} for each in range(50)}
    feed.release(D, SCHEMA, many)
    feed.release(D, SCHEMA, many | rows(a=1) | {"rec_7": {"no": "7", "units": 0}})
    feed.release(D, SCHEMA, many)
    assert net(feed, 1, 3) == ("changes", {})
    assert net(feed, 1, 2)[1].keys() == {"rec_a", "rec_7"}


def test_a_column_that_came_in_between_is_compared_with_nothing(feed: FakeFeed) -> None:
    feed.release(D, SCHEMA, rows(a=1, b=2, c=3))
    feed.release(D, WIDER, rows(a=1, b=2, c=3) | {"rec_a": {"no": "a", "units": 1, "floors": 2}})
    feed.release(D, WIDER, rows(b=2, c=3) | {"rec_a": {"no": "a", "units": 1, "floors": 3}})
    assert net(feed, 1, 3)[1] == {"rec_a": ("changed", {"no": "a", "units": 1, "floors": 3})}


def test_replaced_ids_are_followed(feed: FakeFeed) -> None:
    feed.release(D, SCHEMA, rows(a=1, b=2, c=3))
    new = {"rec_x": {"no": "a", "units": 1}, "rec_b": {"no": "b", "units": 9}}
    feed.release(D, SCHEMA, new, reason=ResyncReason.RECORD_IDS_CHANGED)
    with compared(feed, D, 1, 2, id_map=lambda: {"rec_a": "rec_x"}) as found:
        told = {row.record_id: row.change for row in found.rows}
    assert told == {"rec_b": "changed", "rec_c": "removed"}


def test_backwards_it_says_what_would_have_to_be_undone(feed: FakeFeed) -> None:
    feed.release(D, SCHEMA, rows(a=1, b=2))
    feed.release(D, SCHEMA, rows(b=3, c=3))
    assert net(feed, 2, 1) == (
        "snapshots",
        {
            "rec_a": ("added", {"no": "a", "units": 1}),
            "rec_b": ("changed", {"no": "b", "units": 2}),
            "rec_c": ("removed", None),
        },
    )


def test_values_are_those_of_the_json_listing(feed: FakeFeed) -> None:
    schema = make_schema(
        f="float64", d="decimal(12,2)", day="date", at="timestamp", local="datetime", j="json",
        shape="geometry",
    )  # fmt: skip
    point = bytes.fromhex("010100000000000000006054C00000000000403C40")
    noon = datetime(2026, 10, 18, 12, tzinfo=UTC)
    feed.release(D, schema, {})
    feed.release(
        D,
        schema,
        {
            "rec_a": {
                "f": float("-inf"),
                "d": Decimal("1.10"),
                "day": date(2026, 1, 2),
                "at": noon,
                "local": noon.replace(tzinfo=None, microsecond=5),
                "j": '{"a":[1]}',
                "shape": point,
            }
        },
    )
    _, told = net(feed, 1, 2)
    assert told["rec_a"][1] == {
        "f": "-Infinity",
        "d": Decimal("1.10"),
        "day": "2026-01-02",
        "at": "2026-10-18T12:00:00.000Z",
        "local": "2026-10-18T12:00:00.000005",
        "j": {"a": [1]},
        "shape": {"type": "Point", "coordinates": [-81.5, 28.25]},
    }
    # duckdb's connection of the whole process is its owner's: nothing of ours is under way there
    assert duckdb.sql("SELECT 1").fetchall() == [(1,)]


def test_what_is_not_kept_is_told(feed: FakeFeed) -> None:
    feed.release(D, SCHEMA, rows(a=1))
    feed.release(D, SCHEMA, rows(a=2), reason=ResyncReason.RECORD_IDS_CHANGED)
    feed.release(D, SCHEMA, rows(a=3))
    with pytest.raises(NotFound):
        net(feed, 1, 9)
    feed.forget_file(D, 2, "snapshot")
    with pytest.raises(Expired):
        net(feed, 2, 1)
