"""kill -9 at any moment of a push, and a restart: the same end state, ids and bytes."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.e2e.serving import Server

Json = dict[str, Any]
KILLS = 6
"""Moments of one run, spread over the push; each run draws others."""


def state(number: int) -> bytes:
    """A state of 2,000 records, of which each follows, changes or leaves by its own rule."""
    lines = [b"code,name,value,lat,lon"]
    for row in range(2000 + 10 * number):
        if row % 97 != number:
            value = row * (number if row % 13 == number else 1)
            lines.append(b"K%05d,Name %d,%d,%.1f,%.1f" % (row, row, value, row % 90, row % 180))
    return b"\n".join(lines) + b"\n"


STATES = [state(number) for number in range(1, KILLS // 2 + 1)]


def declare(server: Server) -> None:
    points = {"longitude": "lon", "latitude": "lat"}
    server.declare("ds_kill", key=["code"], geometry=points)


def everything(server: Server, log: str) -> Json:
    """All that a subscriber can see of the dataset, without its times and addresses."""
    events = server.get(f"{log}/events").json()["events"]
    numbers = [
        version["version"]
        for version in server.get("/v1/feeds/datasets/ds_kill/versions").json()["versions"]
    ]
    versions = {}
    for number in numbers:
        for form in ("geoparquet", "csv"):
            path = f"/v1/feeds/datasets/ds_kill/versions/{number}"
            versions[number, form] = without_times(server.get(path, params={"format": form}).json())
    return {"events": [without_times(event) for event in events], "versions": versions}


def without_times(value: Any) -> Any:
    """The value without what differs from run to run; the files' sha256 stay."""
    if isinstance(value, dict):
        dropped = {"timestamp", "url", "links", "expiresAt", "subscriptionId"}
        dropped |= {"publishedAt", "sourceFetchedAt"}
        return {name: without_times(inner) for name, inner in value.items() if name not in dropped}
    if isinstance(value, list):
        return [without_times(inner) for inner in value]
    return value


def files(server: Server) -> int:
    return sum(path.is_file() for path in (server.data / "blobs").rglob("*"))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Json, int, float]:
    """What a run without a kill comes to, its number of blobs, and how long a push takes."""
    with Server(tmp_path_factory.mktemp("calm") / "data") as server:
        declare(server)
        log = server.subscribe("ds_kill")
        began = time.monotonic()
        for content in STATES:
            assert server.push("ds_kill", content)["outcome"] == "released"
        seconds = (time.monotonic() - began) / len(STATES)
        return everything(server, log), files(server), seconds


def push_and_kill(server: Server, content: bytes, *, after: float) -> None:
    """Begin a push, and kill the server some seconds later, whatever it is at."""

    def push() -> None:
        with suppress(httpx2.TransportError):
            server.push("ds_kill", content)

    pushing = threading.Thread(target=push)
    pushing.start()
    time.sleep(after)
    server.process.kill()
    pushing.join()
    server.stop()


def moments(longest: float) -> Iterator[float]:
    for part in range(KILLS):
        yield longest * (part + random.random()) / KILLS


def test_kills_at_any_moment_of_a_push_change_nothing_of_what_comes_out(
    undisturbed: tuple[Json, int, float], tmp_path: Path
) -> None:
    expected, blobs, seconds = undisturbed
    kills = list(moments(1.2 * seconds))
    random.shuffle(kills)
    data = tmp_path / "data"
    server = Server(data)
    declare(server)
    log = server.subscribe("ds_kill")
    for number, content in enumerate(STATES):
        for after in kills[2 * number : 2 * number + 2]:
            push_and_kill(server, content, after=after)
            server = Server(data)
        assert server.push("ds_kill", content)["outcome"] in {"released", "unchanged"}
    with server:
        assert everything(server, log) == expected, kills
        assert files(server) == blobs, kills
        assert list((data / "work").iterdir()) == []
