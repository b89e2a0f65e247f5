"""kill -9 inside a release, with a webhook and a follower; and two servers that start at once."""

import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.e2e import dying_server
from tests.e2e.serving import Server, until
from tests.e2e.test_webhooks import LOOPBACK, hook
from tests.fakes.receiver import receiver_beside

FIRST, SECOND = b"id,kind\n1,a\n", b"id,kind\n1,b\n2,c\n"


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest) -> dict[str, str]:
    if request.param == "sqlite":
        return {"PLOTI_ALLOW_NETWORKS": LOOPBACK}
    return {
        "PLOTI_DATABASE_URL": request.getfixturevalue("postgres_url"),
        "PLOTI_SECRET_KEYS": "of-the-tests-alone-and-32-long-or-more",
        "PLOTI_ALLOW_NETWORKS": LOOPBACK,
    }


@contextmanager
def following(server: Server, log: str) -> Iterator[list[dict[str, Any]]]:
    """What a client sees that waits for the next event all the time, whoever serves."""
    seen: list[dict[str, Any]] = []
    ended = threading.Event()
    headers = {"authorization": f"Bearer {server.key}"}

    def follow() -> None:
        cursor = "evt_000000000000"
        while not ended.is_set():
            with suppress(httpx2.TransportError):
                asked = {"cursor": cursor, "wait": "1"}
                page = httpx2.get(f"{server.url}{log}/events", params=asked, headers=headers)
                seen.extend(page.json()["events"])
                cursor = page.json()["nextCursor"]
            ended.wait(0.02)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("step", ["appended", "committed"])
def test_a_release_that_is_killed_reaches_everybody_once_or_was_never_there(
    tmp_path: Path, settings: dict[str, str], step: str
) -> None:
    data, armed = tmp_path / "data", tmp_path / "armed"
    program = [sys.executable, dying_server.__file__, step, str(armed)]
    with receiver_beside() as receiver:
        server = Server(data, settings=settings, program=program)
        made = hook(server, f"{receiver.url}/h")
        log = f"/v1/feeds/subscriptions/{made['subscriptionId']}"
        assert server.push("ds_a", FIRST)["outcome"] == "released"
        until(lambda: len(receiver.posts) == 1)
        with following(server, log) as seen:
            until(lambda: len(seen) == 2)
            armed.touch()
            with pytest.raises(httpx2.TransportError):
                server.push("ds_a", SECOND)
            assert server.process.wait(timeout=60) == -signal.SIGKILL
            assert len(receiver.posts) == 1
            again = Server(data, "--port", server.url.rpartition(":")[2], settings=settings)
            server.stop()
            with again:
                kept = again.get(f"{log}/events").json()["events"]
                assert len(kept) == (2 if step == "appended" else 3)
                if step == "appended":
                    assert again.push("ds_a", SECOND)["outcome"] == "released"
                until(lambda: len(receiver.posts) == 2)
                events = again.get(f"{log}/events").json()["events"]
                until(lambda: len(seen) == len(events))
        assert seen == events
        assert [each["data"]["version"] for each in events[1:]] == [1, 2]
        assert [post.event["id"] for post in receiver.posts] == [each["id"] for each in events[1:]]


def test_of_two_servers_that_start_at_once_one_serves_and_the_other_says_why(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    folders = ["d", "e"] if "PLOTI_DATABASE_URL" in settings else ["d", "d"]

    def start(folder: str) -> Server | AssertionError:
        try:
            return Server(tmp_path / folder, settings=settings, anew=True)
        except AssertionError as ended:
            return ended

    with ThreadPoolExecutor() as both:
        found = list(both.map(start, folders))
    serving = [each for each in found if isinstance(each, Server)]
    refused = [str(each) for each in found if not isinstance(each, Server)]
    try:
        assert len(serving) == 1, refused
        assert "Error: Another ploti serve runs on this data" in refused[0] or (
            f"Error: Another ploti serve runs on {tmp_path / 'd'}" in refused[0]
        )
        assert "Traceback" not in refused[0]
        assert serving[0].get("/readyz").status_code == 200
    finally:
        for each in serving:
            each.stop()
