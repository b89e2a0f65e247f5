"""Both sides of the SDK against a real server, for programs as the reference shows them."""

import asyncio
import hashlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.serving import Server, served

import ploti
from ploti.model.event import Event, Updated

FIRST = b"code,name\nA1,Alpha\nB2,Beta\n"
SECOND = b"code,name\nA1,Alpha\nB2,Beta City\nC3,Gamma\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("sdk")) as running:
        running.declare("ds_towns", key=["code"])
        running.push("ds_towns", FIRST)
        running.subscribe("ds_towns")
        running.push("ds_towns", SECOND)
        yield running


def test_a_program_needs_only_import_ploti_r177_r178(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PLOTI_API_URL", server.url)
    monkeypatch.setenv("PLOTI_API_KEY", server.key)
    monkeypatch.delattr(ploti, "feeds", raising=False)
    monkeypatch.delitem(sys.modules, "ploti.sync.default", raising=False)  # another test's address
    [subscription] = ploti.feeds.subscriptions.list()
    page = ploti.feeds.subscriptions.events(subscription.id, cursor="evt_000000000001")
    [event] = page.events
    assert page.next_cursor == event.id == "evt_000000000002"
    assert isinstance(event, Event)
    assert isinstance(event.data, Updated)
    version = ploti.feeds.datasets.version(event.data.dataset_id, event.data.version)
    assert version.files.changes is not None
    path = ploti.feeds.datasets.download(
        "ds_towns", version.version, role="changes", to=tmp_path / "changes.parquet"
    )
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    assert sha256 == version.files.changes[0].sha256
    assert ploti.feeds.datasets.digest("ds_towns", 2).content_digest == version.content_digest
    link = ploti.feeds.datasets.snapshot_link("ds_towns")
    assert link.startswith(f"{server.url}/files/")
    with pytest.raises(ploti.InvalidInput):
        ploti.feeds.subscriptions.events(subscription.id, cursor="evt_000000000099")
    monkeypatch.delattr(ploti, "feeds", raising=False)


def test_the_awaited_side_gives_the_same_values(server: Server, tmp_path: Path) -> None:
    async def read() -> list[object]:
        async with ploti.AsyncClient(server.key, url=server.url) as client:
            datasets = client.feeds.datasets
            listed = [each async for each in await datasets.list(limit=1)]
            versions = [each async for each in await datasets.versions("ds_towns", limit=1)]
            changes = [each async for each in await datasets.changes("ds_towns", 2, limit=1)]
            schema = await datasets.schema("ds_towns")
            path = await datasets.download("ds_towns", to=tmp_path / "a.parquet")
            return [listed, versions, changes, schema, path.read_bytes()]

    with ploti.Client(server.key, url=server.url) as client:
        datasets = client.feeds.datasets
        path = datasets.download("ds_towns", to=tmp_path / "b.parquet")
        expected: list[object] = [
            [*datasets.list(limit=1)],
            [*datasets.versions("ds_towns", limit=1)],
            [*datasets.changes("ds_towns", 2, limit=1)],
            datasets.schema("ds_towns"),
            path.read_bytes(),
        ]
    assert asyncio.run(read()) == expected
    assert [len(each) for each in expected[1:3] if isinstance(each, list)] == [2, 2]


def test_waiting_on_the_log_ends_when_the_time_is_up(server: Server) -> None:
    with ploti.Client(server.key, url=server.url) as client:
        [subscription] = client.feeds.subscriptions.list()
        page = client.feeds.subscriptions.events(subscription.id, cursor="evt_000000000002", wait=1)
    assert (page.events, page.next_cursor) == ([], "evt_000000000002")


def test_staff_push_from_memory_and_review_awaited(server: Server) -> None:
    async def story() -> list[object]:
        async with ploti.AsyncClient(server.staff_key, url=server.url) as client:
            declared = {"id": "ds_async", "title": "A", "place": "us", "topic": "t"}
            await client.admin.datasets.apply(declared)
            outcome = await client.admin.push("ds_async", io.BytesIO(FIRST), name="towns.csv")
            shown = await client.admin.datasets.show("ds_async")
            return [outcome.outcome, outcome.version, shown.current and shown.current.row_count]

    assert asyncio.run(story()) == ["released", 1, 2]
