"""`kill -9` of a real sync: whenever it comes, what is held is what the table has."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes import synced
from tests.fakes.feed import FakeFeed, make_schema
from tests.fakes.feed_server import FeedServer, serve
from tests.fakes.sync_child import KILLED, start

from ploti.model.ids import DatasetId
from ploti.model.version import ResyncReason
from ploti.sync.progress import Moment
from ploti.sync.verify import verify

PERMITS, PARCELS = DatasetId("ds_permits"), DatasetId("ds_parcels")
SCHEMA = make_schema(no="string", units="int64")
WIDER = make_schema(no="string", units="int64", floors="int64")
ROWS = 600
RANDOM_KILLS = 100


def rows(seed: int) -> dict[str, dict[str, object]]:
    return {
        f"rec_{each}": {"no": f"no. {each}", "units": each * seed if each % 7 else None}
        for each in range(seed, ROWS + seed)
    }


def first_half(feed: FakeFeed) -> None:
    for each in (PERMITS, PARCELS):
        feed.join(each)
        feed.release(each, SCHEMA, rows(1))


def second_half(feed: FakeFeed) -> None:
    """Changes, a new column, a load, and a dataset that leaves and joins again."""
    feed.release(PERMITS, SCHEMA, rows(1) | {"rec_new": {"no": "new"}})
    feed.release(PERMITS, WIDER, rows(1) | {"rec_new": {"floors": 2}})
    feed.release(PARCELS, SCHEMA, rows(2), reason=ResyncReason.RECORD_IDS_CHANGED)
    feed.leave(PARCELS)
    feed.join(PARCELS)
    feed.release(PERMITS, WIDER, rows(1))
    feed.release(PARCELS, SCHEMA, rows(2) | {"rec_1": {"no": "again"}})


@pytest.fixture(scope="module")
def halves() -> Iterator[tuple[FeedServer, FeedServer]]:
    """Two servers of the same feed: as it was at first, and as it is at last."""
    before, after = FakeFeed(), FakeFeed()
    first_half(before)
    first_half(after)
    second_half(after)
    with serve(before) as early, serve(after) as late:
        yield early, late


_LEFTOVERS = {".downloads", ".wal", ".sqlite-journal", ".gpkg-journal"}
_SET_UP = {
    ".duckdb": "FROM duckdb_tables() WHERE schema_name = '_ploti' AND table_name = 'datasets'",
    ".sqlite": "SELECT name FROM sqlite_schema WHERE name = '_ploti_datasets'",
}
_SET_UP[".gpkg"] = _SET_UP[".sqlite"]


def assert_whole(file: Path, feed: FakeFeed) -> None:
    """Every table is exactly the version that is recorded with it."""
    if not file.exists() or not synced.query(file, _SET_UP[file.suffix]):
        return
    for dataset_id, (number, state) in synced.held(file).items():
        if state == "held":
            version = feed.datasets[DatasetId(dataset_id)].versions[int(str(number))]
            table = dataset_id.removeprefix("ds_")
            assert synced.read_table(file, version, table) == synced.expected(version)


def assert_done(file: Path, feed: FakeFeed) -> None:
    assert synced.held(file) == {
        each: (dataset.current, "held") for each, dataset in feed.datasets.items()
    }
    assert_whole(file, feed)
    assert all(each.matches for each in verify(feed, synced.destination(file)).datasets)
    left = [each.name for each in file.parent.iterdir() if each.suffix in _LEFTOVERS]
    assert left == []


def finish(url: str, file: Path) -> None:
    process = start(url, file)
    process.join()
    assert process.exitcode == 0


WRITING = (Moment.OPENED, Moment.ROWS_WRITTEN, Moment.RECORDED, Moment.COMMITTED)
FIRST_STEPS = [
    (Moment.MANIFEST_READ, 1),
    (Moment.LOADING, 1),
    (Moment.FETCHED, 2),
    *((moment, 1) for moment in WRITING),
]
LATER_STEPS = [
    (Moment.PAGE_READ, 1),
    (Moment.PAGE_READ, 2),
    (Moment.LOADING, 1),
    (Moment.FETCHED, 1),
    (Moment.FETCHED, 4),
    *((moment, nth) for moment in WRITING for nth in (1, 3)),
]


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "gpkg"])
def test_killed_at_every_named_step_it_goes_on_to_the_same_end(
    halves: tuple[FeedServer, FeedServer], tmp_path: Path, kind: str
) -> None:
    early, late = halves
    begun = tmp_path / f"begun.{kind}"
    finish(early.url, begun)
    for server, steps in ((early, FIRST_STEPS), (late, LATER_STEPS)):
        for moment, nth in steps:
            file = tmp_path / f"{moment}{nth}.{kind}"
            if server is late:
                shutil.copy(begun, file)
            process = start(server.url, file, die_at=(moment, nth))
            process.join()
            assert process.exitcode == KILLED, f"{moment} was not passed {nth} times"
            assert_whole(file, server.feed)
            finish(server.url, file)
            assert_done(file, server.feed)


def test_what_a_killed_run_committed_is_in_the_file_after_the_next_one(
    halves: tuple[FeedServer, FeedServer], tmp_path: Path
) -> None:
    """Though nothing is left to do: the file is whole without what lies beside it."""
    early, _ = halves
    file = tmp_path / "feeds.duckdb"
    process = start(early.url, file, die_at=(Moment.COMMITTED, 2))
    process.join()
    assert file.with_name("feeds.duckdb.wal").exists()
    finish(early.url, file)
    assert_done(file, early.feed)


def test_killed_at_a_hundred_random_moments_it_goes_on_to_the_same_end(
    halves: tuple[FeedServer, FeedServer], tmp_path: Path
) -> None:
    early, late = halves
    chance = random.Random(20261130)
    begun = tmp_path / "begun.duckdb"
    finish(early.url, begun)
    file = tmp_path / "feeds.duckdb"
    began = time.monotonic()
    finish(late.url, file)
    longest = time.monotonic() - began
    kills = ends = 0
    while kills < RANDOM_KILLS:
        process = start(late.url, file)
        process.join(chance.uniform(0, longest))
        process.kill()
        process.join()
        assert_whole(file, late.feed)
        if process.exitcode == KILLED:
            kills += 1
            continue
        assert process.exitcode == 0
        assert_done(file, late.feed)
        ends += 1
        file.unlink()
        if ends % 2:
            shutil.copy(begun, file)
    finish(late.url, file)
    assert_done(file, late.feed)
