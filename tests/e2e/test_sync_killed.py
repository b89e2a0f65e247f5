"""`kill -9` of a real sync: whenever it comes, what is held is what the table has."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.fakes import synced
from tests.fakes.feed import FakeFeed, make_schema
from tests.fakes.feed_server import FeedServer, serve
from tests.fakes.postgres import Cluster
from tests.fakes.sync_child import KILLED, start
from tests.fakes.synced import Place

from ploti.model.ids import DatasetId
from ploti.model.version import ResyncReason
from ploti.sync.progress import Moment
from ploti.sync.verify import verify

PERMITS, PARCELS = DatasetId("ds_permits"), DatasetId("ds_parcels")
SCHEMA = make_schema(no="string", units="int64")
WIDER = make_schema(no="string", units="int64", floors="int64")
ROWS = 600
RANDOM_KILLS = int(os.environ.get("PLOTI_TEST_KILLS", "12"))
"""Of each kind of destination; set the variable for a campaign."""


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


class Ground:
    """Where the copies of one kind are: files in a folder, or databases of a server."""

    def __init__(self, kind: str, folder: Path, cluster: Cluster | None) -> None:
        self._kind = kind
        self._folder = folder
        self._cluster = cluster

    def place(self, name: str) -> Place:
        """One that is not there yet."""
        if self._cluster is None:
            return self._folder / f"{name}.{self._kind}"
        self._run(f'CREATE DATABASE "{self._named(name)}"')
        return self._cluster.url(self._named(name))

    def copy(self, begun: Place, name: str) -> Place:
        """One with all that another has."""
        if isinstance(begun, str):
            settle(begun)
            template = begun.rpartition("/")[2]
            self._run(f'CREATE DATABASE "{self._named(name)}" TEMPLATE "{template}"')
            return f"{begun.rpartition('/')[0]}/{self._named(name)}"
        copied = self._folder / f"{name}.{self._kind}"
        shutil.copytree(begun, copied) if begun.is_dir() else shutil.copy(begun, copied)
        return copied

    def remove(self, place: Place) -> None:
        """Make it as if it had never been."""
        if isinstance(place, str):
            self._run(f'DROP DATABASE "{place.rpartition("/")[2]}" WITH (FORCE)')
        elif place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink()

    def _named(self, name: str) -> str:
        return f"{self._folder.name}_{name}".lower()[-63:]

    def _run(self, statement: str) -> None:
        assert self._cluster is not None
        with psycopg.connect(self._cluster.url(), autocommit=True) as connection:
            connection.execute(statement.encode())


KINDS = ["duckdb", "sqlite", "gpkg", "parquet", "postgresql"]


@pytest.fixture(params=KINDS)
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    kind = str(request.param)
    cluster = request.getfixturevalue("postgres") if kind == "postgresql" else None
    return Ground(kind, tmp_path, cluster)


_LEFTOVERS = {".downloads", ".wal", ".sqlite-journal", ".gpkg-journal", ".new"}


def settle(place: Place) -> None:
    """Wait until a database's server has noticed that its client is gone."""
    if isinstance(place, str):
        others = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        patience = time.monotonic() + 60
        while synced.query(place, others) != [(0,)]:
            assert time.monotonic() < patience, "a killed client is still connected"


def assert_whole(place: Place, feed: FakeFeed) -> None:
    """Every table is exactly the version that is recorded with it."""
    settle(place)
    if not synced.is_begun(place):
        return
    for dataset_id, (number, state) in synced.held(place).items():
        if state == "held":
            version = feed.datasets[DatasetId(dataset_id)].versions[int(str(number))]
            table = dataset_id.removeprefix("ds_")
            assert synced.read_table(place, version, table) == synced.expected(version)


def assert_done(place: Place, feed: FakeFeed) -> None:
    assert synced.held(place) == {
        each: (dataset.current, "held") for each, dataset in feed.datasets.items()
    }
    assert_whole(place, feed)
    assert all(each.matches for each in verify(feed, synced.destination(place)).datasets)
    if isinstance(place, Path):
        beside = [*place.parent.iterdir(), *place.glob("_ploti/*")]
        assert [each.name for each in beside if each.suffix in _LEFTOVERS] == []
        assert not (place / "_ploti" / "downloads").exists()


def finish(url: str, place: Place) -> None:
    settle(place)
    process = start(url, place)
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


def test_killed_at_every_named_step_it_goes_on_to_the_same_end(
    halves: tuple[FeedServer, FeedServer], ground: Ground
) -> None:
    early, late = halves
    begun = ground.place("begun")
    finish(early.url, begun)
    for server, steps in ((early, FIRST_STEPS), (late, LATER_STEPS)):
        for moment, nth in steps:
            name = f"{moment}{nth}"
            place = ground.copy(begun, f"{name}_later") if server is late else ground.place(name)
            process = start(server.url, place, die_at=(moment, nth))
            process.join()
            assert process.exitcode == KILLED, f"{moment} was not passed {nth} times"
            assert_whole(place, server.feed)
            finish(server.url, place)
            assert_done(place, server.feed)


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


def test_killed_at_random_moments_it_goes_on_to_the_same_end(
    halves: tuple[FeedServer, FeedServer], ground: Ground
) -> None:
    early, late = halves
    chance = random.Random(20261130)
    begun = ground.place("begun")
    finish(early.url, begun)
    place = ground.place("first")
    began = time.monotonic()
    finish(late.url, place)
    longest = time.monotonic() - began
    kills = ends = 0
    while kills < RANDOM_KILLS:
        settle(place)
        process = start(late.url, place)
        process.join(chance.uniform(0, longest))
        process.kill()
        process.join()
        assert_whole(place, late.feed)
        if process.exitcode == KILLED:
            kills += 1
            continue
        assert process.exitcode == 0
        assert_done(place, late.feed)
        ends += 1
        ground.remove(place)
        name = f"again{ends}"
        place = ground.copy(begun, name) if ends % 2 else ground.place(name)
    finish(late.url, place)
    assert_done(place, late.feed)
