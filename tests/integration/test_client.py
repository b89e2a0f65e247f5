"""The SDK against a server that misbehaves by script: deadlines, tries, and where the key goes."""

import asyncio
import importlib
import io
import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal
from tests.fakes import api
from tests.fakes.api import Breaks, Drips, Holds, Reply, Server, problem

import ploti
from ploti.client import problems, transport
from ploti.sync import default

KEY = "ploti_secret"
DATASETS = "GET /v1/feeds/datasets"
DATASET = "GET /v1/feeds/datasets/ds_a"
EVENTS = "GET /v1/feeds/subscriptions/sub_a/events"
UNAVAILABLE = problem(503, "unavailable", "Wait a moment.", Retry_After="0")


def dataset(id_: str = "ds_a") -> dict[str, object]:
    names = ["license", "attribution", "current", "lastCheckedAt", "nextCheckBy", "hold"]
    return {"id": id_, "title": "A", "place": "us", "topic": "x", "keyColumns": []} | dict.fromkeys(
        names
    )


def stale(number: int) -> dict[str, object]:
    return {
        "id": f"evt_{number:012d}",
        "type": "feed.dataset.stale",
        "timestamp": "2026-10-18T06:13:02.000Z",
        "subscriptionId": "sub_a",
        "data": {"datasetId": "ds_a", "reason": "check_overdue", "lastCheckedAt": None},
    }


OUTCOME = {"outcome": "released", "version": 1, "counts": None, "hold": None, "detail": ""}


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problems, "FIRST_PAUSE", 0.001)


@pytest.fixture
def server() -> Iterator[Server]:
    with api.running() as running:
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[ploti.Client]:
    with ploti.Client(KEY, url=server.url, timeout=20) as client:
        yield client


def test_a_call_carries_the_key_and_gives_a_typed_value(
    server: Server, client: ploti.Client
) -> None:
    server.on(DATASET, Reply(dataset()))
    assert client.feeds.datasets.show("ds_a").title == "A"
    [seen] = server.seen
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.headers["user-agent"] == f"ploti/{ploti.__version__}"


def test_a_page_has_events_and_cursor_and_iterates_over_everything_r178(
    server: Server, client: ploti.Client
) -> None:
    first = Reply({"events": [stale(1), stale(2)], "nextCursor": "evt_000000000002"})
    empty = Reply({"events": [], "nextCursor": "evt_000000000500"})
    last = Reply({"events": [stale(501)], "nextCursor": "evt_000000000501"})
    end = Reply({"events": [], "nextCursor": "evt_000000000501"})
    server.on(EVENTS, first, empty, last, end)
    page = client.feeds.subscriptions.events("sub_a", limit=2, types=["feed.dataset.stale"])
    assert [event.id for event in page.events] == ["evt_000000000001", "evt_000000000002"]
    assert page.next_cursor == "evt_000000000002"
    assert [event.id[-3:] for event in page] == ["001", "002", "501"]
    assert [seen.query.get("cursor", "none")[-3:] for seen in server.asked(EVENTS)] == [
        "one",
        "002",
        "500",
        "501",
    ]
    assert {seen.query["types"] for seen in server.seen} == {"feed.dataset.stale"}


def test_the_awaited_side_does_the_same(server: Server) -> None:
    server.on(
        DATASETS,
        Reply({"datasets": [dataset("ds_a")], "nextCursor": "ds_a"}),
        UNAVAILABLE,
        Reply({"datasets": [dataset("ds_b")], "nextCursor": None}),
    )
    server.on("DELETE /v1/feeds/subscriptions/sub_a", Reply(status=204))

    async def story() -> list[str]:
        async with ploti.AsyncClient(KEY, url=server.url) as client:
            await client.feeds.subscriptions.delete("sub_a")
            page = await client.feeds.datasets.list(limit=1)
            return [dataset.id async for dataset in page]

    assert asyncio.run(story()) == ["ds_a", "ds_b"]


@pytest.mark.parametrize(
    "passing",
    [
        UNAVAILABLE,
        problem(429, "rate_limited", "Slower.", Retry_After="0"),
        Reply(b"<html>bad gateway</html>", 502),
        Reply(b"", 504),
        Breaks(b"{", length=100),
        Breaks(b"", length=100),
    ],
    ids=["503", "429", "502", "504", "broken-body", "broken-at-once"],
)
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_what_passes_is_tried_again(
    server: Server, client: ploti.Client, passing: api.Answer, method: str
) -> None:
    subscription = {"id": "sub_a", "name": "n", "createdAt": "2026-10-18T06:13:02.000Z"}
    applied = {"datasetId": "ds_a", "created": True, "changed": [], "dryRun": False}
    calls = {
        "GET": (DATASET, dataset(), lambda: client.feeds.datasets.show("ds_a")),
        "PUT": (
            "PUT /v1/admin/datasets/ds_a",
            applied,
            lambda: client.admin.datasets.apply({"id": "ds_a"}),
        ),
        "PATCH": (
            "PATCH /v1/feeds/subscriptions/sub_a",
            subscription,
            lambda: client.feeds.subscriptions.update("sub_a", name="n"),
        ),
        "DELETE": (
            "DELETE /v1/feeds/subscriptions/sub_a",
            {},
            lambda: client.feeds.subscriptions.delete("sub_a"),
        ),
    }
    call, body, make = calls[method]
    server.on(call, passing, Reply(body))
    make()
    assert len(server.asked(call)) == 2


@pytest.mark.parametrize("passing", [UNAVAILABLE, Breaks(b"{", length=100)], ids=["503", "broken"])
def test_a_post_is_sent_again_under_the_same_idempotency_key(
    server: Server, client: ploti.Client, passing: api.Answer
) -> None:
    call = "POST /v1/admin/datasets/ds_a/check"
    server.on(call, passing, Reply(OUTCOME), Reply(OUTCOME))
    client.admin.check("ds_a")
    client.admin.check("ds_a")
    first, second, third = (seen.headers["idempotency-key"] for seen in server.asked(call))
    assert first == second != third


def test_an_open_file_is_not_sent_twice(server: Server, client: ploti.Client) -> None:
    call = "POST /v1/admin/datasets/ds_a/push"
    server.on(call, UNAVAILABLE, Reply(OUTCOME))
    with pytest.raises(ploti.Unavailable):
        client.admin.push("ds_a", io.BytesIO(b"a"), name="a.csv")
    assert len(server.asked(call)) == 1


def test_only_a_post_has_an_idempotency_key(server: Server, client: ploti.Client) -> None:
    server.on(DATASET, Reply(dataset()))
    client.feeds.datasets.show("ds_a")
    assert "idempotency-key" not in server.seen[0].headers


def test_what_does_not_pass_is_not_tried_again(server: Server, client: ploti.Client) -> None:
    server.on(DATASET, problem(410, "expired", "Read the manifest."))
    with pytest.raises(ploti.Expired, match="Read the manifest"):
        client.feeds.datasets.show("ds_a")
    assert len(server.seen) == 1


def test_a_wait_that_the_deadline_has_no_room_for_ends_at_once(server: Server) -> None:
    server.on(DATASET, problem(503, "unavailable", "Wait an hour.", Retry_After="3600"))
    with (
        ploti.Client(KEY, url=server.url, timeout=20) as client,
        pytest.raises(ploti.Unavailable, match="an hour") as raised,
    ):
        client.feeds.datasets.show("ds_a")
    assert raised.value.retry_after == 3600
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-Slow: ",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
    ],
    ids=["body", "header", "chunk-size"],
)
def test_the_deadline_holds_against_a_server_that_drips(server: Server, head: bytes) -> None:
    server.on(DATASET, Drips(head=head))
    with (
        ploti.Client(KEY, url=server.url, timeout=0.4) as client,
        pytest.raises(ploti.TransportError, match=r"within 0\.4 s"),
    ):
        client.feeds.datasets.show("ds_a")


def test_an_answer_over_the_limit_is_not_read_to_its_end(
    server: Server, client: ploti.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "LONGEST_ANSWER", 1000)
    server.on(DATASET, Reply(dataset() | {"title": "A" * 2000}))
    with pytest.raises(ploti.TransportError, match="over 1000 bytes"):
        client.feeds.datasets.show("ds_a")
    assert len(server.seen) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_the_key_never_follows_a_redirect_to_another_host_s11(
    server: Server, client: ploti.Client, status: int
) -> None:
    with api.running() as other:
        there = f"http://localhost:{other.server_port}/v1/feeds/datasets/ds_a"
        server.on(DATASET, Reply(b"", status, {"Location": there}))
        other.on(DATASET, Reply(dataset()))
        with pytest.raises(ploti.TransportError, match="PLOTI_API_URL"):
            client.feeds.datasets.show("ds_a")
        assert other.seen == []


def test_the_link_to_a_snapshot_is_given_and_not_followed(
    server: Server, client: ploti.Client
) -> None:
    link = "https://files.example/a?signature=b"
    server.on("GET /v1/feeds/datasets/ds_a/current/snapshot", Reply(b"", 307, {"Location": link}))
    assert client.feeds.datasets.snapshot_link("ds_a") == link


@pytest.mark.parametrize(
    "body", [b"<html>hello</html>", b"", b'{"id": 5}'], ids=["html", "empty", "other"]
)
def test_an_answer_that_is_none_of_the_apis_is_one_clear_error(
    server: Server, client: ploti.Client, body: bytes
) -> None:
    server.on(DATASET, Reply(body))
    with pytest.raises(ploti.TransportError, match="unreadable answer") as raised:
        client.feeds.datasets.show("ds_a")
    assert "\n" not in str(raised.value)


def test_a_server_that_is_not_there_is_told_apart() -> None:
    with api.running() as gone:
        url = gone.url
    with (
        ploti.Client(KEY, url=url) as client,
        pytest.raises(ploti.TransportError, match="cannot be reached") as raised,
    ):
        client.feeds.datasets.show("ds_a")
    assert raised.value.exit_status == 7


def test_no_proxy_leads_to_this_machine(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with api.running() as gone:
        monkeypatch.setenv("HTTP_PROXY", gone.url)
    server.on(DATASET, Reply(dataset()))
    with ploti.Client(KEY, url=server.url) as client:
        assert client.feeds.datasets.show("ds_a").title == "A"


def test_a_missing_key_is_found_at_the_first_call(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLOTI_API_KEY", raising=False)
    with (
        ploti.Client(url=server.url) as client,
        pytest.raises(ploti.ConfigError, match="PLOTI_API_KEY"),
    ):
        client.feeds.datasets.show("ds_a")
    assert server.seen == []


@pytest.mark.parametrize("kind", ["path", "file", "stream"])
def test_a_push_streams_the_file_with_its_name(
    server: Server, client: ploti.Client, tmp_path: Path, kind: str
) -> None:
    body = os.urandom(3_000_000)
    path = tmp_path / "permits.csv"
    path.write_bytes(body)
    call = "POST /v1/admin/datasets/ds_a/push"
    server.on(call, Reply(OUTCOME))
    told: list[tuple[int, int | None]] = []

    def progress(done: int, total: int | None) -> None:
        told.append((done, total))

    push = client.admin.push
    match kind:
        case "path":
            push("ds_a", path, dry_run=True, progress=progress)
        case "file":
            with path.open("rb") as opened:
                opened.seek(0)
                push("ds_a", opened, dry_run=True, progress=progress)
        case "stream":
            push("ds_a", io.BytesIO(body), name="permits.csv", dry_run=True, progress=progress)
    [seen] = server.seen
    assert seen.body == body
    assert seen.query == {"name": "permits.csv", "dryRun": "true"}
    assert seen.headers["content-type"] == "application/octet-stream"
    total = None if kind == "stream" else 3_000_000
    assert seen.headers.get("content-length") == (total and str(total))
    assert told[-1] == (3_000_000, total)
    assert len(told) == 3


def test_a_push_of_a_missing_file_is_refused_before_anything_is_sent(
    server: Server, client: ploti.Client, tmp_path: Path
) -> None:
    with pytest.raises(ploti.ConfigError, match=r"cannot read .*gone\.csv: No such file"):
        client.admin.push("ds_a", tmp_path / "gone.csv")
    assert server.seen == []


def test_a_refusal_before_the_body_was_read_is_the_error(
    server: Server, client: ploti.Client, tmp_path: Path
) -> None:
    def refuses(handler: api.Handler) -> None:
        problem(413, "too_large", "At most 8 GiB.")(handler)
        handler.close_connection = True
        handler.connection.shutdown(socket.SHUT_WR)
        while handler.rfile.read(2**20):
            pass

    path = tmp_path / "large.csv"
    path.write_bytes(bytes(20_000_000))
    server.unread.add("/v1/admin/datasets/ds_a/push")
    server.on("POST /v1/admin/datasets/ds_a/push", refuses)
    with pytest.raises(ploti.TooLarge, match="8 GiB"):
        client.admin.push("ds_a", path)


def test_one_client_serves_many_threads(server: Server, client: ploti.Client) -> None:
    server.on(DATASET, Reply(dataset()))
    titles: list[str] = []

    def work() -> None:
        titles.extend(client.feeds.datasets.show("ds_a").title for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert titles == ["A"] * 40


def test_a_client_goes_on_in_a_forked_process(server: Server, client: ploti.Client) -> None:
    server.on(DATASET, Reply(dataset()))
    client.feeds.datasets.show("ds_a")
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # a loop whose thread is in the parent would be waited for without end
        try:
            os._exit(0 if client.feeds.datasets.show("ds_a").title == "A" else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert client.feeds.datasets.show("ds_a").title == "A"


def test_a_call_that_nobody_waits_for_does_not_hold_up_the_end(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C falls between the start of a call and the wait for its answer."""
    start, answered = BlockingPortal.start_task_soon, threading.Event()

    def interrupted(portal: BlockingPortal, job: Any, *args: Any) -> Any:
        started = start(portal, job, *args)
        if isinstance(job, partial):
            raise KeyboardInterrupt
        return started

    server.on(DATASET, Holds(answered))
    client = ploti.Client(KEY, url=server.url, timeout=600)
    monkeypatch.setattr(BlockingPortal, "start_task_soon", interrupted)
    with pytest.raises(KeyboardInterrupt):
        client.feeds.datasets.show("ds_a")
    end = threading.Thread(target=client.close, daemon=True)
    end.start()
    end.join(60)
    assert not end.is_alive()
    answered.set()


def test_a_closed_client_opens_anew(server: Server, client: ploti.Client) -> None:
    server.on(DATASET, Reply(dataset()))
    client.feeds.datasets.show("ds_a")
    client.close()
    assert client.feeds.datasets.show("ds_a").title == "A"


def test_the_default_client_takes_key_and_address_at_its_first_call_r177(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    unused = importlib.reload(default).feeds  # another test may have used the process's own
    monkeypatch.setattr(ploti, "feeds", unused, raising=False)
    monkeypatch.setenv("PLOTI_API_KEY", KEY)
    monkeypatch.setenv("PLOTI_API_URL", server.url)
    server.on(EVENTS, Reply({"events": [], "nextCursor": "evt_000000000042"}))
    page = ploti.feeds.subscriptions.events("sub_a", cursor="evt_000000000042")
    assert (page.events, page.next_cursor) == ([], "evt_000000000042")


def test_json_is_sent_as_json(server: Server, client: ploti.Client) -> None:
    call = "POST /v1/feeds/subscriptions"
    server.on(call, Reply({"id": "sub_a", "name": "", "createdAt": "2026-10-18T06:13:02.000Z"}))
    client.feeds.subscriptions.create(datasets=["ds_a"])
    [seen] = server.seen
    assert seen.headers["content-type"] == "application/json"
    assert json.loads(seen.body)["datasets"] == ["ds_a"]
