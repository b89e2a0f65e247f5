"""Tables of very many columns, in every destination that holds them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes import synced
from tests.fakes.feed import FakeFeed, make_schema

from ploti.errors import ExitStatus
from ploti.model.ids import DatasetId
from ploti.sync.verify import verify

WIDE, OTHER = DatasetId("ds_wide"), DatasetId("ds_other")


def wide(columns: int) -> FakeFeed:
    """A feed of a dataset with this many columns, and of another one."""
    schema = make_schema(**{f"c{each}": "string" for each in range(columns)})
    feed = FakeFeed()
    for each in (WIDE, OTHER):
        feed.join(each)
    feed.release(OTHER, make_schema(no="string"), {"rec_a": {"no": "1"}})
    feed.release(WIDE, schema, {"rec_a": dict.fromkeys(("c0", "c7"), "x"), "rec_b": {}})
    return feed


def change(feed: FakeFeed) -> None:
    schema = feed.datasets[WIDE].versions[1].schema
    feed.release(WIDE, schema, {"rec_a": dict.fromkeys(("c0", "c9"), "y"), "rec_b": {}})


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "gpkg", "parquet"])
def test_a_file_holds_a_table_of_very_many_columns(tmp_path: Path, kind: str) -> None:
    place = tmp_path / f"feeds.{kind}"
    assert_kept(wide(1_000), place)


def test_postgresql_holds_as_many_columns_as_it_has(postgres_url: str) -> None:
    """1,600 with the record id, of which a stage takes one more for changes."""
    assert_kept(wide(1_598), postgres_url)


def test_where_the_stage_has_no_room_every_version_is_loaded(postgres_url: str) -> None:
    feed = wide(1_599)
    for version in (1, 2):
        result = synced.sync(feed, postgres_url)
        assert (result.exit_status, result.applies) == (ExitStatus.DONE, 0), result
        assert synced.held(postgres_url)[WIDE] == (version, "held")
        change(feed)


def assert_kept(feed: FakeFeed, place: synced.Place) -> None:
    synced.sync(feed, place)
    change(feed)
    result = synced.sync(feed, place)
    assert (result.exit_status, result.applies) == (ExitStatus.DONE, 1), result
    assert verify(feed, synced.destination(place)).exit_status is ExitStatus.DONE


def test_a_table_that_postgresql_cannot_hold_stops_its_dataset_alone(postgres_url: str) -> None:
    feed = wide(1_600)
    result = synced.sync(feed, postgres_url)
    assert (result.exit_status, result.behind) == (ExitStatus.BEHIND, [WIDE])
    assert "at most 1600 columns" in str([each.reason for each in result.datasets])
    assert synced.held(postgres_url)[OTHER] == (1, "held")
