"""`ploti feeds sync --listen`: webhooks wake it, and what it applies is what the log says."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.e2e.test_sync_command import ploti, read_until, settings, until
from tests.fakes import synced
from tests.fakes.feed import SUBSCRIPTION, FakeFeed, make_schema
from tests.fakes.feed_server import Fault, FeedServer, Handler, serve
from tests.fakes.forked import Forked

from ploti.model.event import Event
from ploti.model.ids import DatasetId
from ploti.model.signature import sign
from ploti.model.wire import encode

PERMITS = DatasetId("ds_permits")
SCHEMA = make_schema(no="string", units="int64")
SECRET = "whsec_c2FtcGxlLXNlY3JldC1mb3ItdGVzdHMtMDEyMzQ1Njc="


@pytest.fixture
def server() -> Iterator[FeedServer]:
    """At version 42, as the cases say."""
    feed = FakeFeed()
    feed.datasets.clear()
    feed.join(PERMITS)
    feed.datasets[PERMITS].next_number = 42
    feed.release(PERMITS, SCHEMA, {"rec_a": {"no": "a", "units": 0}})
    with serve(feed) as server:
        yield server


@contextmanager
def listening(server: FeedServer, file: Path) -> Iterator[tuple[Forked, HTTPConnection]]:
    """A sync that has the first version, and a connection to where it listens."""
    with Forked(
        ["feeds", "sync", SUBSCRIPTION, "--to", f"duckdb:{file}", "--listen", "0", "--json"],
        env=settings(server) | {"PLOTI_WEBHOOK_SECRET": SECRET},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            assert process.stderr is not None
            where = urlsplit(process.stderr.readline().removeprefix("listening on ").strip())
            assert read_until(process, "committed")["version"] == 42
            assert where.hostname is not None
            yield process, HTTPConnection(where.hostname, where.port or 0, timeout=60)
        finally:
            process.kill()


def post(connection: HTTPConnection, body: bytes, *, delivery: str) -> int:
    headers = sign(body, id=delivery, at=datetime.now(UTC), secrets=[SECRET])
    connection.request("POST", "/", body=body, headers=headers)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def hold_the_log(server: FeedServer) -> threading.Event:
    """From now on the log's long poll says nothing, as a dead connection would not."""
    let_go = threading.Event()

    def hold(handler: Handler, _body: bytes) -> None:
        let_go.wait(120)
        handler.close_connection = True

    server.faults.append(Fault(r"events\?.*wait=30", hold))
    return let_go


def test_E09_deliveries_in_any_order_wake_it_and_each_version_is_applied_once(  # noqa: N802
    server: FeedServer, tmp_path: Path
) -> None:
    """R-005: the log is read from the stored cursor; S-51."""
    let_go = hold_the_log(server)
    with listening(server, tmp_path / "feeds.duckdb") as (process, connection):
        until(lambda: any("wait=30" in path for path in server.seen))
        for units in (1, 2):
            server.feed.release(PERMITS, SCHEMA, {"rec_a": {"no": "a", "units": units}})
        third, fourth = (encode(each) for each in server.feed.log[-2:])
        deliveries = [("msg_10", fourth), ("msg_11", third), ("msg_12", fourth)]
        assert [post(connection, body, delivery=name) for name, body in deliveries] == [204] * 3
        applied = [read_until(process, "committed")["version"] for _ in range(2)]
        assert applied == [43, 44]
        read_until(process, "closed")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        assert process.stdout is not None
        later = [json.loads(line) for line in process.stdout.read().splitlines()]
        assert [each for each in later if each["moment"] == "committed"] == []
    let_go.set()
    file = tmp_path / "feeds.duckdb"
    assert synced.query(file, "SELECT units FROM permits") == [(2,)]
    assert len(server.files_seen()) == 3


def test_E59_a_ping_an_unknown_type_and_anothers_event_change_nothing(  # noqa: N802
    server: FeedServer, tmp_path: Path
) -> None:
    """R-165, S-50."""
    event: Event = server.feed.log[-1]
    told = json.loads(encode(event))
    ping = {"id": "evt_000000000001", "type": "ping", "timestamp": told["timestamp"], "data": {}}
    unknown = told | {"id": "evt_000000000050", "type": "feed.dataset.something_new"}
    others = told | {"id": "evt_000000000007", "subscriptionId": "sub_other"}
    with listening(server, tmp_path / "feeds.duckdb") as (process, connection):
        for number, message in enumerate((ping, unknown, others)):
            body = json.dumps(message).encode()
            assert post(connection, body, delivery=f"msg_2{number}") == 204
        assert post(connection, b"{}", delivery="msg_23") == 400
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        assert process.stderr is not None
        assert len(process.stderr.read().splitlines()) == 1  # of the body that is no event
    assert synced.held(tmp_path / "feeds.duckdb") == {PERMITS: (42, "held")}
    assert len(server.files_seen()) == 1


def test_without_a_secret_it_does_not_begin(server: FeedServer, tmp_path: Path) -> None:
    wrong = ploti(
        server, "sync", SUBSCRIPTION, "--to", f"duckdb:{tmp_path}/a.duckdb", "--listen", "0"
    )
    assert wrong.returncode == 2
    assert "PLOTI_WEBHOOK_SECRET" in wrong.stderr


def test_with_what_is_no_secret_it_does_not_begin(server: FeedServer, tmp_path: Path) -> None:
    """It would refuse whatever comes, and wake for nothing."""
    secret = tmp_path / "secret"
    secret.write_text("whsec_!!!")
    wrong = ploti(
        server,
        *("sync", SUBSCRIPTION, "--to", f"duckdb:{tmp_path}/a.duckdb"),
        *("--listen", "0", "--secret-file", str(secret)),
    )
    assert wrong.returncode == 2
    assert "whsec_ and base64" in wrong.stderr
    assert "!!!" not in wrong.stderr
