"""`verify --repair`: what was done to a table by hand is undone, and nothing else is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes import synced
from tests.fakes.feed import FakeFeed, make_schema

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


@pytest.fixture(params=["duckdb", "sqlite", "gpkg"])
def file(request: pytest.FixtureRequest, feed: FakeFeed, tmp_path: Path) -> Path:
    file = tmp_path / f"feeds.{request.param}"
    synced.sync(feed, file)
    feed.calls.clear()
    return file


def assert_proved(feed: FakeFeed, file: Path) -> None:
    assert verify(feed, synced.destination(file)).exit_status is ExitStatus.DONE


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
    feed: FakeFeed, file: Path, by_hand: str
) -> None:
    if by_hand == TWICE and file.suffix != ".duckdb":
        by_hand = "DELETE FROM permits WHERE no = '7'"  # SQLite lets no id stand twice
    synced.execute(file, "ALTER TABLE permits ADD COLUMN extra VARCHAR")
    synced.execute(file, "UPDATE permits SET extra = 'mine' WHERE no = '500'")
    synced.execute(file, by_hand)
    found = repair(feed, synced.destination(file))
    assert found.exit_status is ExitStatus.DONE
    assert [(each.dataset_id, each.repaired) for each in found.datasets] == [
        (PARCELS, False),
        (PERMITS, True),
    ]
    assert synced.query(file, "SELECT extra FROM permits WHERE no = '500'") == [("mine",)]
    assert feed.downloads() == [("snapshot", PERMITS, "1")]
    assert_proved(feed, file)


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
    feed: FakeFeed, file: Path, by_hand: str
) -> None:
    synced.execute(file, by_hand)
    assert repair(feed, synced.destination(file)).exit_status is ExitStatus.DONE
    assert_proved(feed, file)
    assert synced.held(file)[PERMITS] == (1, "held")


def test_a_row_without_an_id_is_found_and_taken_out(feed: FakeFeed, tmp_path: Path) -> None:
    file = tmp_path / "feeds.duckdb"
    synced.sync(feed, file)
    synced.execute(file, "INSERT INTO permits (no) VALUES ('a row without an id')")
    assert verify(feed, synced.destination(file)).exit_status is ExitStatus.DIFFERS
    assert repair(feed, synced.destination(file)).exit_status is ExitStatus.DONE
    assert_proved(feed, file)


def test_a_version_whose_snapshot_is_gone_is_replaced_by_the_current_one(
    feed: FakeFeed, file: Path
) -> None:
    feed.release(PERMITS, SCHEMA, {"rec_new": {"no": "n", "units": 1}})
    feed.forget_file(PERMITS, 1, "snapshot")
    synced.execute(file, "UPDATE permits SET units = 0 WHERE no = '7'")
    assert repair(feed, synced.destination(file)).exit_status is ExitStatus.DONE
    assert synced.held(file)[PERMITS] == (2, "held")
    assert_proved(feed, file)
    assert synced.sync(feed, file).exit_status is ExitStatus.DONE


def test_a_copy_that_is_equal_is_neither_fetched_for_nor_written(
    feed: FakeFeed, file: Path
) -> None:
    before = file.read_bytes()
    assert repair(feed, synced.destination(file)).differing == {}
    assert feed.downloads() == []
    assert file.read_bytes() == before


def test_a_repair_and_a_sync_exclude_each_other(feed: FakeFeed, file: Path) -> None:
    synced.execute(file, "UPDATE permits SET units = 0 WHERE no = '7'")

    def observe(progress: Progress) -> None:
        if progress.moment is Moment.FETCHED:
            repair(feed, synced.destination(file))

    feed.release(PERMITS, SCHEMA, ROWS | {"rec_new": {"no": "n"}})
    with pytest.raises(DestinationBusy):
        synced.sync(feed, file, observe=observe)


def test_a_snapshot_that_is_not_its_version_is_never_committed(feed: FakeFeed, file: Path) -> None:
    """The copy stays as it was, and the difference is told."""
    wrong = ROWS | {"rec_007": {"no": "7", "units": 8}}
    versions = feed.datasets[PERMITS].versions
    versions[1] = replace(versions[1], rows=wrong)
    found = repair(feed, synced.destination(file))
    assert found.exit_status is ExitStatus.DIFFERS
    assert synced.query(file, "SELECT units FROM permits WHERE no = '7'") == [(7,)]


def test_a_quarter_of_the_buckets_is_many() -> None:
    assert MANY == 64
