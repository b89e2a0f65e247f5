"""SIGTERM of a real `ploti feeds sync`, at every named moment and at others: nothing is lost."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import synced
from tests.fakes.feed import SUBSCRIPTION, FakeFeed, make_schema
from tests.fakes.feed_server import KEY, FeedServer, serve
from tests.fakes.sync_child import context

from ploti import cli
from ploti.cli import sync as command
from ploti.model.ids import DatasetId
from ploti.sync.progress import Moment, Progress
from ploti.sync.verify import verify

PERMITS, PARCELS = DatasetId("ds_permits"), DatasetId("ds_parcels")
SCHEMA = make_schema(no="string", units="int64")
STOPPED = 128 + signal.SIGTERM
MOMENTS = [
    Moment.MANIFEST_READ,
    Moment.LOADING,
    Moment.FETCHED,
    Moment.OPENED,
    Moment.ROWS_WRITTEN,
    Moment.RECORDED,
    Moment.COMMITTED,
    Moment.CLOSED,
    Moment.PAGE_READ,
]


@pytest.fixture(scope="module")
def server() -> Iterator[FeedServer]:
    feed = FakeFeed()
    for each in (PERMITS, PARCELS):
        feed.join(each)
        for units in range(3):
            rows = {f"rec_{no}": {"no": str(no), "units": no * units} for no in range(2_000)}
            feed.release(each, SCHEMA, rows)
    with serve(feed) as server:
        yield server


def start(server: FeedServer, file: Path, stop_at: Moment | None, *flags: str) -> ForkServerProcess:
    process = context().Process(
        target=_sync, args=(server.url, str(file), stop_at, flags), daemon=True
    )
    process.start()
    return process


def _sync(url: str, file: str, stop_at: Moment | None, flags: tuple[str, ...]) -> None:
    """The command; at the moment it sends itself the signal, and goes on as the signal lets it."""
    os.environ |= {"PLOTI_API_URL": url, "PLOTI_API_KEY": KEY}
    tell = command._tell

    def tell_and_stop(progress: Progress, **given: Any) -> None:
        tell(progress, **given)
        if progress.moment is stop_at:
            os.kill(os.getpid(), signal.SIGTERM)

    command._tell = tell_and_stop
    raise SystemExit(cli.run(["feeds", "sync", SUBSCRIPTION, "--to", f"duckdb:{file}", *flags]))


def assert_whole(server: FeedServer, file: Path) -> None:
    if not file.exists():
        return
    for dataset_id, (number, state) in synced.held(file).items():
        if state == "held":
            version = server.feed.datasets[DatasetId(dataset_id)].versions[int(str(number))]
            table = dataset_id.removeprefix("ds_")
            assert synced.read_table(file, version, table) == synced.expected(version)
    assert [each.name for each in file.parent.iterdir() if "downloads" in each.name] == []


def assert_finishes(server: FeedServer, file: Path) -> None:
    process = start(server, file, None)
    process.join()
    assert process.exitcode == 0
    assert synced.held(file) == dict.fromkeys((PERMITS, PARCELS), (3, "held"))
    assert all(each.matches for each in verify(server.feed, synced.destination(file)).datasets)


@pytest.mark.parametrize("moment", MOMENTS)
def test_stopped_at_a_named_moment_it_ends_and_goes_on_from_there(
    server: FeedServer, tmp_path: Path, moment: Moment
) -> None:
    file = tmp_path / "feeds.duckdb"
    process = start(server, file, moment, "--follow")  # which nothing but the signal ends
    process.join(60)
    assert process.exitcode == 0
    assert_whole(server, file)
    assert_finishes(server, file)


def test_stopped_at_any_moment_it_leaves_whole_versions(server: FeedServer, tmp_path: Path) -> None:
    chance = random.Random(20261201)
    began = time.monotonic()
    assert_finishes(server, tmp_path / "once.duckdb")
    longest = time.monotonic() - began
    for number in range(6):
        file = tmp_path / f"{number}" / "feeds.duckdb"
        file.parent.mkdir()
        process = start(server, file, None, "--follow")
        process.join(chance.uniform(0, longest))
        process.terminate()
        process.join(60)
        # Before the command has begun the signal ends it, by itself or by its status.
        assert process.exitcode in (0, STOPPED, -signal.SIGTERM)
        if file.exists():
            assert_whole(server, file)
        assert_finishes(server, file)
