"""SIGTERM and SIGINT of a real `ploti feeds sync`, whenever they come: nothing is lost or left."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from tests.e2e.test_sync_killed import KINDS, settle
from tests.fakes import synced
from tests.fakes.feed import SUBSCRIPTION, FakeFeed, make_schema
from tests.fakes.feed_server import KEY, Fault, FeedServer, Handler, serve
from tests.fakes.forked import context
from tests.fakes.synced import Place

from ploti import cli
from ploti.cli import sync as command
from ploti.cli.stopping import stopped_by_signals
from ploti.client.alarm import Alarm
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


def _follow(
    url: str,
    to: str,
    *,
    stop_at: Moment | None = None,
    patiently: bool = False,
    endless: bool = False,
    by: int = 0,
) -> None:
    """At the moment it sends itself the signal, and goes on as the signal lets it.

    `patiently`: when it waits for another program is the moment. With it, or when `endless`,
    nothing cuts it off.
    """
    os.environ |= {"PLOTI_API_URL": url, "PLOTI_API_KEY": KEY}
    tell = command._tell

    def tell_and_stop(progress: Progress, **given: Any) -> None:
        tell(progress, **given)
        if progress.moment is stop_at:
            os.kill(os.getpid(), by)

    def stop_and_pause(alarm: Alarm, seconds: float) -> None:
        os.kill(os.getpid(), by)
        pause(alarm, seconds)

    command._tell = tell_and_stop
    if patiently:
        pause, Alarm.pause = Alarm.pause, stop_and_pause  # type: ignore[method-assign]
    if patiently or endless:
        vars(command)["stopped_by_signals"] = partial(stopped_by_signals, grace=2 * PATIENCE)
    arguments = ["--follow", "--lock-timeout", str(10 * PATIENCE)]
    raise SystemExit(cli.run(["feeds", "sync", SUBSCRIPTION, "--to", to, *arguments]))


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


@pytest.mark.parametrize("by", SIGNALS)
def test_stopped_while_a_database_does_not_answer_it_ends_at_once(
    server: FeedServer, by: int
) -> None:
    """It is given up on in ten seconds; the grace has no end, so that neither is what ends it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        to = f"postgresql://127.0.0.1:{listener.getsockname()[1]}/db"
        process = follow(server, to, endless=True)
        client, _ = listener.accept()
        assert process.pid is not None
        with client:
            os.kill(process.pid, by)
            process.join(PATIENCE)
    assert process.exitcode == 128 + by


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


@contextmanager
def in_the_way(place: Place) -> Iterator[None]:
    """Another program has what a commit needs."""
    with ExitStack() as held:
        if isinstance(place, str):
            other = held.enter_context(psycopg.connect(place))
            other.execute("LOCK TABLE permits IN ACCESS EXCLUSIVE MODE")
        elif place.suffix == ".duckdb":
            held.enter_context(duckdb.connect(str(place)))
        elif place.suffix == ".parquet":
            lock = held.enter_context((place / "_ploti" / "commit.lock").open())
            fcntl.flock(lock, fcntl.LOCK_SH)
        else:
            writer = held.enter_context(closing(sqlite3.connect(place)))
            writer.execute("BEGIN IMMEDIATE")
        yield


def wait_for_wait(url: str) -> None:
    """Until somebody waits for a lock in this database."""
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = %s"
    with psycopg.connect(url, autocommit=True) as looking:
        while looking.execute(waiting, (looking.info.dbname,)).fetchone() is None:
            time.sleep(0.02)


def test_stopped_while_another_program_is_in_the_way_it_ends_in_its_own_way(
    server: FeedServer, place: Place
) -> None:
    """None of them is cut off: there is no end to the grace."""
    assert synced.sync(server.feed, place).exit_status is ExitStatus.DONE
    rows = {f"rec_{no}": {"no": str(no), "units": -no} for no in range(2_000)}
    server.feed.release(PERMITS, SCHEMA, rows)
    with in_the_way(place):
        process = follow(server, place, patiently=True, by=signal.SIGTERM)
        if isinstance(place, str):
            wait_for_wait(place)
            process.terminate()
        process.join(PATIENCE)
        # A file that is in use is met with before there is a run that could tell its result.
        assert process.exitcode in (0, 128 + signal.SIGTERM)
    settle(place)
    assert synced.held(place)[PERMITS] == (3, "held")
    assert synced.sync(server.feed, place).exit_status is ExitStatus.DONE
    assert synced.held(place)[PERMITS] == (4, "held")
    assert verify(server.feed, synced.destination(place)).exit_status is ExitStatus.DONE
