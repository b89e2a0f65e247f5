"""SIGTERM and SIGINT of a real `ploti feeds sync`, whenever they come: nothing is lost or left."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.test_sync_killed import KINDS, settle
from tests.fakes import synced
from tests.fakes.feed import SUBSCRIPTION, FakeFeed, make_schema
from tests.fakes.feed_server import KEY, Fault, FeedServer, Handler, serve
from tests.fakes.forked import context
from tests.fakes.synced import Place

from ploti import cli
from ploti.cli import sync as command
from ploti.errors import ExitStatus
from ploti.model.ids import DatasetId
from ploti.sync.progress import Moment, Progress
from ploti.sync.verify import verify

PERMITS, PARCELS = DatasetId("ds_permits"), DatasetId("ds_parcels")
SCHEMA = make_schema(no="string", units="int64")
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
SIGNALS = (signal.SIGTERM, signal.SIGINT)
PATIENCE = 60.0


@pytest.fixture
def server() -> Iterator[FeedServer]:
    feed = FakeFeed()
    for each in (PERMITS, PARCELS):
        feed.join(each)
        for units in range(3):
            rows = {f"rec_{no}": {"no": str(no), "units": no * units} for no in range(2_000)}
            feed.release(each, SCHEMA, rows)
    with serve(feed) as server:
        yield server


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_url"))
    return tmp_path / f"feeds.{request.param}"


def follow(server: FeedServer, place: Place, **given: Any) -> ForkServerProcess:
    """The command, which nothing but a signal ends."""
    arguments = (server.url, synced.address(place))
    process = context().Process(target=_follow, args=arguments, kwargs=given, daemon=True)
    process.start()
    return process


def _follow(url: str, to: str, *, stop_at: Moment | None = None, by: int = 0) -> None:
    """At the moment it sends itself the signal, and goes on as the signal lets it."""
    os.environ |= {"PLOTI_API_URL": url, "PLOTI_API_KEY": KEY}
    tell = command._tell

    def tell_and_stop(progress: Progress, **given: Any) -> None:
        tell(progress, **given)
        if progress.moment is stop_at:
            os.kill(os.getpid(), by)

    command._tell = tell_and_stop
    raise SystemExit(cli.run(["feeds", "sync", SUBSCRIPTION, "--to", to, "--follow"]))


def stop(process: ForkServerProcess, by: int) -> None:
    assert process.pid is not None
    os.kill(process.pid, by)
    process.join(PATIENCE)
    assert process.exitcode == 0


def assert_whole(server: FeedServer, place: Place) -> None:
    settle(place)
    assert not synced.destination(place).downloads.exists()
    if not synced.is_begun(place):
        return
    for dataset_id, (number, state) in synced.held(place).items():
        if state == "held":
            version = server.feed.datasets[DatasetId(dataset_id)].versions[int(str(number))]
            table = dataset_id.removeprefix("ds_")
            assert synced.read_table(place, version, table) == synced.expected(version)


def assert_finishes(server: FeedServer, place: Place) -> None:
    assert synced.sync(server.feed, place).exit_status is ExitStatus.DONE
    assert synced.held(place) == dict.fromkeys((PERMITS, PARCELS), (3, "held"))
    assert verify(server.feed, synced.destination(place)).exit_status is ExitStatus.DONE


def test_stopped_at_every_named_moment_it_goes_on_from_there(
    server: FeedServer, place: Place
) -> None:
    """One after the other, each where the one before left off."""
    server.patience = 0.1
    for number, moment in enumerate(MOMENTS):
        process = follow(server, place, stop_at=moment, by=SIGNALS[number % 2])
        process.join(PATIENCE)
        assert process.exitcode == 0, moment
        assert_whole(server, place)
    assert_finishes(server, place)


def test_stopped_in_the_middle_of_a_download_it_ends_at_once(
    server: FeedServer, place: Place
) -> None:
    begun, ended = threading.Event(), threading.Event()

    def stall(handler: Handler, body: bytes) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[: len(body) // 2])
        begun.set()
        ended.wait(PATIENCE)
        handler.close_connection = True

    server.faults.append(Fault("/files/", stall))
    process = follow(server, place)
    assert begun.wait(PATIENCE)
    stop(process, signal.SIGTERM)
    ended.set()
    assert_whole(server, place)
    assert_finishes(server, place)


def test_stopped_while_it_waits_for_events_it_ends_at_once(
    server: FeedServer, place: Place
) -> None:
    process = follow(server, place)
    assert server.holding.wait(PATIENCE)
    stop(process, signal.SIGINT)
    assert_whole(server, place)
    assert_finishes(server, place)


def test_stopped_at_any_moment_it_leaves_whole_versions(server: FeedServer, place: Place) -> None:
    process = follow(server, place)
    process.join(random.uniform(0, 1))
    process.terminate()
    process.join(PATIENCE)
    # Before the command has begun the signal ends it, by itself or by its status.
    assert process.exitcode in (0, 128 + signal.SIGTERM, -signal.SIGTERM)
    settle(place)
    if process.exitcode == 0:
        assert_whole(server, place)
    assert_finishes(server, place)
