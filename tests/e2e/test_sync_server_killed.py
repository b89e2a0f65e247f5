"""`kill -9` of a real server under real syncs, and of the syncs: all that is held stays whole."""

from __future__ import annotations

import csv
import io
import os
import random
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2
import pytest
from tests.e2e.serving import Server, environment
from tests.e2e.test_sync_killed import settle
from tests.fakes import synced
from tests.fakes.forked import Forked
from tests.fakes.postgres import Cluster
from tests.fakes.synced import Place

from ploti.client.connection import Client
from ploti.errors import ExitStatus
from ploti.sync.calls import sync, verify

DATASET, TABLE = "ds_permits", "permits"
ROWS = 400
KILLS = max(2, int(os.environ.get("PLOTI_TEST_KILLS", "12")) // 6)
"""Of the server, each under a sync into every kind of destination."""

KINDS = ["duckdb", "sqlite", "gpkg", "parquet"]


def rows(state: int) -> dict[str, int]:
    """A number by permit; each state changes a third of them, and so says which one it is."""
    made = {"state": state, f"only {state}": state}
    return made | {f"P-{no}": max(0, state - (state - no) % 3) for no in range(ROWS)}


def as_csv(state: int) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerows([["permit", "units"], *rows(state).items()])
    return text.getvalue().encode()


def assert_whole(place: Place, newest: int) -> None:
    """The table is one of the states that were pushed, if it is there."""
    settle(place)
    if not synced.is_begun(place) or synced.held(place).get(DATASET, (None, ""))[1] != "held":
        return
    found = dict(synced.query(place, f"SELECT permit, units FROM {TABLE}"))
    assert found["state"] in range(newest + 1)
    assert found == rows(found["state"])


def quiet_port() -> int:
    """A free port that no outgoing connection is given while the server is away."""
    for port in random.Random(os.getpid()).sample(range(20_000, 32_000), 100):
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


class Story:
    """A server that is killed and started again at one address, and who syncs from it."""

    def __init__(self, folder: Path) -> None:
        self._flags = ["--port", str(quiet_port())]
        self.server = Server(folder / "data", *self._flags)
        self.key = self.server.key
        self.server.declare(DATASET, key=["permit"])
        self.server.push(DATASET, as_csv(0))
        self.subscription = self.server.subscribe(DATASET).rpartition("/")[2]

    def start_again(self) -> None:
        self.server = Server(self.server.data, *self._flags)

    def start_sync(self, place: Place) -> Forked:
        return Forked(
            ["feeds", "sync", self.subscription, "--to", synced.address(place)],
            env=environment(PLOTI_API_URL=self.server.url, PLOTI_API_KEY=self.key),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    @contextmanager
    def pushing(self, state: int) -> Iterator[None]:
        """A push that goes on meanwhile, and may be lost with the server."""

        def push() -> None:
            with suppress(httpx2.HTTPError):
                httpx2.post(
                    f"{self.server.url}/v1/admin/datasets/{DATASET}/push?name=a.csv",
                    headers={"authorization": f"Bearer {self.server.staff_key}"},
                    content=as_csv(state),
                    timeout=120,
                )

        thread = threading.Thread(target=push)
        thread.start()
        yield
        thread.join()


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    story = Story(tmp_path)
    try:
        yield story
    finally:
        story.server.stop()


@pytest.fixture
def places(tmp_path: Path, postgres: Cluster) -> Iterator[list[Place]]:
    with postgres.database() as url:
        yield [*(tmp_path / f"feeds.{kind}" for kind in KINDS), url]


def test_servers_and_syncs_killed_at_random_moments_end_where_they_should(
    story: Story, places: list[Place]
) -> None:
    chance = random.Random(20261201)
    for state in range(1, KILLS + 1):
        syncs = [story.start_sync(place) for place in places]
        with story.pushing(state):
            with suppress(subprocess.TimeoutExpired):
                syncs[state % len(syncs)].wait(chance.uniform(0, 4))
            if state % 2:
                syncs[chance.randrange(len(syncs))].send_signal(signal.SIGKILL)
            story.server.kill()
        story.start_again()
        for process, place in zip(syncs, places, strict=True):
            said, why = process.communicate(timeout=180)
            assert process.poll() in (0, ExitStatus.UNREACHABLE, -signal.SIGKILL), said + why
            assert "Traceback" not in why
            assert_whole(place, state)
    outcome = story.server.push(DATASET, as_csv(KILLS))
    assert outcome["outcome"] in ("released", "unchanged")
    with Client(story.key, url=story.server.url) as client:
        for place in places:
            to = synced.address(place)
            assert sync(client, story.subscription, to=to).exit_status is ExitStatus.DONE
            assert verify(client, story.subscription, to=to).exit_status is ExitStatus.DONE
            found = dict(synced.query(place, f"SELECT permit, units FROM {TABLE}"))
            assert found == rows(KILLS)
