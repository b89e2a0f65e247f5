"""The manifest as it is sent: whole however large, and nobody waits for who reads it slowly."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.running import Running, problem, running

from ploti.server.api import subscriptions

DATASETS = 450
"""More than are fetched from the database together."""


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as server:
        yield server


def subscribe(api: Running, count: int) -> str:
    for number in range(count):
        api.declare(f"ds_{number}")
    answer = api.send("POST", "/v1/feeds/subscriptions", json={"places": ["us"]})
    return f"/v1/feeds/subscriptions/{answer.json()['id']}"


def test_r137_a_manifest_is_whole_however_many_blocks_it_takes(
    api: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "_BLOCK", 1000)
    answer = api.get(f"{subscribe(api, DATASETS)}/manifest")
    assert answer.headers["content-type"] == "application/json"
    assert int(answer.headers["content-length"]) == len(answer.content)
    manifest = answer.json()
    assert manifest["eventCursor"] == f"evt_{DATASETS:012d}"
    listed = [entry["datasetId"] for entry in manifest["datasets"]]
    assert listed == sorted(f"ds_{number}" for number in range(DATASETS))
    assert "links" not in manifest["datasets"][0]


def test_an_empty_manifest_is_one(api: Running) -> None:
    assert api.get(f"{subscribe(api, 0)}/manifest").json()["datasets"] == []


def test_a_manifest_of_nobody_is_a_problem(api: Running) -> None:
    problem(api.get("/v1/feeds/subscriptions/sub_none/manifest"), 404, "not_found")


def scope_of(api: Running, path: str) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"authorization", f"Bearer {api.keys.subscriber}".encode())],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 1),
        "state": {},
    }


def test_clients_that_read_nothing_hold_no_connection_to_the_database(api: Running) -> None:
    log = subscribe(api, 3)
    path = f"{log}/manifest"

    async def read_nothing(begun: asyncio.Event) -> None:
        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                begun.set()
                await asyncio.Event().wait()

        await api.application(scope_of(api, path), receive, send)

    async def many() -> list[asyncio.Task[None]]:
        bells = [asyncio.Event() for _ in range(12)]
        tasks = [asyncio.create_task(read_nothing(bell)) for bell in bells]
        async with asyncio.timeout(50):
            for bell in bells:
                await bell.wait()
        return tasks

    async def end(tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    stuck = api.call(many())
    assert len(api.get(f"{log}/events").json()["events"]) == 3
    api.call(end(stuck))
