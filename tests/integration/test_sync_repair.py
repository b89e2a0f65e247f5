"""`verify --repair`: what was done to a table by hand is undone, and nothing else is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes import synced
from tests.fakes.feed import FakeFeed, make_schema
from tests.fakes.synced import Place

from ploti.errors import DestinationBusy, ExitStatus
from ploti.model.ids import DatasetId
from ploti.sync.progress import Moment, Progress
from ploti.sync.repair import MANY, repair
from ploti.sync.verify import verify

PERMITS = DatasetId("ds_permits")
PARCELS = DatasetId("ds_parcels")
SCHEMA = make_schema(no="string", units="int64", at="geometry")
POINT = bytes.fromhex("010100000000000000006054C00000000000403C40")
ROWS = {
    f"rec_{each:03}": {"no": str(each), "units": each, "at": POINT if each % 2 else None}
    for each in range(1_000)
}
TWICE = """
    INSERT INTO permits (_ploti_record_id, no, units)
    SELECT _ploti_record_id, no, units FROM permits WHERE no = '7'
"""


@pytest.fixture
def feed() -> FakeFeed:
    feed = FakeFeed()
    for each in (PARCELS, PERMITS):
        feed.join(each)
        feed.release(each, SCHEMA, ROWS)
    return feed


@pytest.fixture(params=["duckdb", "sqlite", "gpkg", "parquet", "postgresql"])
def place(request: pytest.FixtureRequest, feed: FakeFeed, tmp_path: Path) -> Place:
    place: Place = tmp_path / f"feeds.{request.param}"
    if request.param == "postgresql":
        place = str(request.getfixturevalue("postgres_url"))
    synced.sync(feed, place)
    feed.calls.clear()
    return place


def is_folder(place: Place) -> bool:
    return isinstance(place, Path) and place.suffix == ".parquet"


def lets_an_id_stand_twice(place: Place) -> bool:
    return is_folder(place) or (isinstance(place, Path) and place.suffix == ".duckdb")


def content(place: Place) -> object:
    """All that is there, to be compared with itself."""
    if isinstance(place, str):
        return synced.query(place, "SELECT xmin, ctid FROM permits"), synced.held(place)
    files = sorted(place.rglob("*")) if place.is_dir() else [place]
    return [(file, file.read_bytes()) for file in files if file.is_file()]


def assert_proved(feed: FakeFeed, place: Place) -> None:
    assert verify(feed, synced.destination(place)).exit_status is ExitStatus.DONE


@pytest.mark.parametrize(
    "by_hand",
    [
        "UPDATE permits SET units = 9999 WHERE no = '7'",
        "DELETE FROM permits WHERE no IN ('7', '8', '9')",
        "INSERT INTO permits (_ploti_record_id, no, units) VALUES ('rec_mine', 'x', 1)",
        "UPDATE permits SET _ploti_record_id = 'rec_mine' WHERE no = '7'",
        TWICE,
    ],
)
def test_the_rows_of_the_buckets_that_differ_are_replaced_and_no_others(
    feed: FakeFeed, place: Place, by_hand: str
) -> None:
    if by_hand == TWICE and not lets_an_id_stand_twice(place):
        by_hand = "DELETE FROM permits WHERE no = '7'"
    synced.execute(place, "ALTER TABLE permits ADD COLUMN extra VARCHAR")
    synced.execute(place, "UPDATE permits SET extra = 'mine' WHERE no = '500'")
    synced.execute(place, by_hand)
    found = repair(feed, synced.destination(place))
    assert found.exit_status is ExitStatus.DONE
    assert [(each.dataset_id, each.repaired) for each in found.datasets] == [
        (PARCELS, False),
        (PERMITS, True),
    ]
    if not is_folder(place):  # whose files are whole versions: a column of one's own goes
        assert synced.query(place, "SELECT extra FROM permits WHERE no = '500'") == [("mine",)]
    assert feed.downloads() == [("snapshot", PERMITS, "1")]
    assert_proved(feed, place)


@pytest.mark.parametrize(
    "by_hand",
    [
        "DROP TABLE permits",
        "DELETE FROM permits",
        "UPDATE permits SET units = units + 1",
        "ALTER TABLE permits DROP COLUMN units",
    ],
)
def test_what_cannot_be_mended_bucket_by_bucket_is_loaded_whole(
    feed: FakeFeed, place: Place, by_hand: str
) -> None:
    synced.execute(place, by_hand)
    assert repair(feed, synced.destination(place)).exit_status is ExitStatus.DONE
    assert_proved(feed, place)
    assert synced.held(place)[PERMITS] == (1, "held")


def test_a_row_without_an_id_is_found_and_taken_out(feed: FakeFeed, tmp_path: Path) -> None:
    file = tmp_path / "feeds.duckdb"
    synced.sync(feed, file)
    synced.execute(file, "INSERT INTO permits (no) VALUES ('a row without an id')")
    assert verify(feed, synced.destination(file)).exit_status is ExitStatus.DIFFERS
    assert repair(feed, synced.destination(file)).exit_status is ExitStatus.DONE
    assert_proved(feed, file)


def test_a_version_whose_snapshot_is_gone_is_replaced_by_the_current_one(
    feed: FakeFeed, place: Place
) -> None:
    feed.release(PERMITS, SCHEMA, {"rec_new": {"no": "n", "units": 1}})
    feed.forget_file(PERMITS, 1, "snapshot")
    synced.execute(place, "UPDATE permits SET units = 0 WHERE no = '7'")
    assert repair(feed, synced.destination(place)).exit_status is ExitStatus.DONE
    assert synced.held(place)[PERMITS] == (2, "held")
    assert_proved(feed, place)
    assert synced.sync(feed, place).exit_status is ExitStatus.DONE


def test_a_copy_that_is_equal_is_neither_fetched_for_nor_written(
    feed: FakeFeed, place: Place
) -> None:
    before = content(place)
    assert repair(feed, synced.destination(place)).differing == {}
    assert feed.downloads() == []
    assert content(place) == before


def test_a_repair_and_a_sync_exclude_each_other(feed: FakeFeed, place: Place) -> None:
    synced.execute(place, "UPDATE permits SET units = 0 WHERE no = '7'")

    def observe(progress: Progress) -> None:
        if progress.moment is Moment.FETCHED:
            repair(feed, synced.destination(place))

    feed.release(PERMITS, SCHEMA, ROWS | {"rec_new": {"no": "n"}})
    with pytest.raises(DestinationBusy):
        synced.sync(feed, place, observe=observe)


def test_a_snapshot_that_is_not_its_version_is_never_committed(
    feed: FakeFeed, place: Place
) -> None:
    """The copy stays as it was, and the difference is told."""
    wrong = ROWS | {"rec_007": {"no": "7", "units": 8}}
    versions = feed.datasets[PERMITS].versions
    versions[1] = replace(versions[1], rows=wrong)
    found = repair(feed, synced.destination(place))
    assert found.exit_status is ExitStatus.DIFFERS
    assert synced.query(place, "SELECT units FROM permits WHERE no = '7'") == [(7,)]


def test_a_quarter_of_the_buckets_is_many() -> None:
    assert MANY == 64
