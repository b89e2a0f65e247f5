"""The columns of a table in every destination: the dataset's as they are now, and its owner's."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes import synced
from tests.fakes.feed import FakeFeed, make_schema
from tests.fakes.synced import Place

from ploti.errors import ExitStatus
from ploti.model.ids import DatasetId
from ploti.model.version import ResyncReason
from ploti.sync.verify import verify

PERMITS = DatasetId("ds_permits")
SCHEMA = make_schema(no="string", units="int64")
NARROWER = make_schema(no="string")
WIDER = make_schema(no="string", units="int64", floors="int64")
ROWS = {"rec_a": {"no": "a", "units": 1}, "rec_b": {"no": "b", "units": 2}}
BARE = {key: {"no": row["no"]} for key, row in ROWS.items()}


@pytest.fixture(params=["duckdb", "sqlite", "gpkg", "parquet", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_url"))
    return tmp_path / f"feeds.{request.param}"


@pytest.fixture
def feed(place: Place) -> FakeFeed:
    """A feed of one dataset, and a copy of it at the place."""
    feed = FakeFeed()
    feed.join(PERMITS)
    feed.release(PERMITS, SCHEMA, ROWS)
    synced.sync(feed, place)
    return feed


def columns(place: Place) -> list[str]:
    """The table's columns, but for those by which rows are known."""
    if isinstance(place, str):
        query = (
            "SELECT attname FROM pg_attribute WHERE attrelid = 'permits'::regclass"
            " AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
        )
    elif place.suffix in (".sqlite", ".gpkg"):
        query = "SELECT name FROM pragma_table_info('permits')"
    else:
        query = "SELECT column_name FROM (DESCRIBE permits)"
    return [str(name) for (name,) in synced.query(place, query) if "_ploti" not in str(name)]


def add_own(place: Place, name: str) -> None:
    synced.execute(place, f"ALTER TABLE permits ADD COLUMN {name} BIGINT")
    synced.execute(place, f"UPDATE permits SET {name} = 7")


def assert_current(feed: FakeFeed, place: Place) -> None:
    assert synced.sync(feed, place).exit_status is ExitStatus.DONE
    version = feed.datasets[PERMITS].versions[feed.datasets[PERMITS].current or 0]
    assert synced.read_table(place, version, "permits") == synced.expected(version)
    assert verify(feed, synced.destination(place)).exit_status is ExitStatus.DONE


def test_a_column_that_the_dataset_lost_is_gone_from_the_table(
    feed: FakeFeed, place: Place
) -> None:
    """S-16, R-140: it would go on with values that no version has."""
    feed.release(PERMITS, NARROWER, BARE)
    assert_current(feed, place)
    assert columns(place) == ["no"]


def test_a_column_that_was_lost_while_the_dataset_was_away_is_gone_too(
    feed: FakeFeed, place: Place
) -> None:
    feed.leave(PERMITS)
    synced.sync(feed, place)
    feed.release(PERMITS, NARROWER, BARE)
    feed.join(PERMITS)
    assert_current(feed, place)
    assert columns(place) == ["no"]


def test_a_column_of_ones_own_stays_until_a_major_change(feed: FakeFeed, place: Place) -> None:
    """But in a folder, where a version is a file."""
    stays = not (isinstance(place, Path) and place.suffix == ".parquet")
    add_own(place, "mine")
    feed.release(PERMITS, WIDER, ROWS | {"rec_a": {"no": "a", "units": 1, "floors": 3}})
    assert_current(feed, place)
    feed.release(PERMITS, WIDER, ROWS, reason=ResyncReason.PREVIOUS_UNAVAILABLE)
    assert_current(feed, place)
    assert ("mine" in columns(place)) is stays
    feed.release(PERMITS, SCHEMA, ROWS)
    assert_current(feed, place)
    assert columns(place) == ["no", "units"]


def test_a_column_of_ones_own_gives_way_to_the_datasets_of_its_name(
    feed: FakeFeed, place: Place
) -> None:
    """What it held stands in no version, so that it must not be left in records that stay."""
    if isinstance(place, Path) and place.suffix == ".parquet":
        return  # whose files are whole versions: who writes into one is told by verify alone
    add_own(place, "floors")
    feed.release(PERMITS, WIDER, ROWS | {"rec_a": {"no": "a", "units": 1, "floors": 3}})
    assert_current(feed, place)


def test_columns_that_are_equal_but_for_case_stop_their_dataset_and_say_what_to_do(
    feed: FakeFeed, place: Place
) -> None:
    """No source of ours has them: names are made different. Another server's may."""
    twins = make_schema(no="string", units="int64", Units="int64")
    feed.release(PERMITS, twins, {"rec_a": {"no": "a", "units": 1, "Units": 2}})
    result = synced.sync(feed, place)
    assert (result.exit_status, result.behind) == (ExitStatus.BEHIND, [PERMITS])
    (told,) = result.datasets
    assert "the columns units and Units are equal but for case" in str(told.reason)
    assert "read the dataset with `ploti.feeds.table`" in str(told.reason)
    version = feed.datasets[PERMITS].versions[1]
    assert synced.read_table(place, version, "permits") == synced.expected(version)
    feed.release(PERMITS, WIDER, ROWS)
    assert_current(feed, place)


def test_other_letters_than_ascii_are_told_apart_by_case(feed: FakeFeed, place: Place) -> None:
    feed.release(PERMITS, make_schema(é="string", É="string"), {"rec_a": {"é": "a", "É": "A"}})
    assert_current(feed, place)
