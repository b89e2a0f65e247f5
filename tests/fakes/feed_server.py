"""A made-up feed over HTTP on loopback, with the failures that a real server seldom shows."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import msgspec
from tests.fakes.feed import SUBSCRIPTION, FakeFeed

from ploti.errors import MEANINGS, ApiError, NotFound
from ploti.model.ids import START, DatasetId, EventId
from ploti.model.page import VersionPage
from ploti.model.subscription import Subscription
from ploti.model.version import File, Version
from ploti.model.wire import Instant, encode
from ploti.sync.feed import Role

KEY = "ploti_test"
_MADE = Instant.parse("2026-11-30T12:00:00Z")


@dataclass
class Fault:
    """What happens to the next `times` requests whose path the pattern finds."""

    pattern: str
    act: Callable[[Handler, bytes], None]
    times: int = 1


@dataclass
class FeedServer:
    """The feed's server; a link to a file is good for the `age` in which it was given.

    A request that waits for events is held for `patience` seconds at the most; `holding` is set
    once one is.
    """

    feed: FakeFeed
    url: str = ""
    faults: list[Fault] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    age: int = 0
    patience: float = 30.0
    holding: threading.Event = field(default_factory=threading.Event)
    waiting: threading.Condition = field(default_factory=threading.Condition)

    def expire_links(self) -> None:
        """No link that was given until now is good any more."""
        self.age += 1

    def ring(self) -> None:
        """Wake those who wait for events."""
        with self.waiting:
            self.waiting.notify_all()

    def take_fault(self, path: str) -> Fault | None:
        """The fault that this request is to meet."""
        for fault in self.faults:
            if fault.times > 0 and re.search(fault.pattern, path):
                fault.times -= 1
                return fault
        return None

    def files_seen(self) -> list[str]:
        """The paths of files that were asked for."""
        return [path for path in self.seen if path.startswith("/files/")]


def answer_problem(error: ApiError) -> Callable[[Handler, bytes], None]:
    """Answer this problem in place of the answer."""
    return lambda handler, _body: handler.send_problem(error)


def damage(handler: Handler, body: bytes) -> None:
    """Flip a bit in the middle."""
    middle = len(body) // 2
    handler.send_file(body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1 :])


def swap(other: bytes) -> Callable[[Handler, bytes], None]:
    """Send another file's bytes."""
    return lambda handler, _body: handler.send_file(other)


def truncate(handler: Handler, body: bytes) -> None:
    """Break off in the middle."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2])
    handler.close_connection = True


def refuse_link(handler: Handler, _body: bytes) -> None:
    """The link is expired or changed."""
    handler.send_bytes(403, b"expired", "text/plain")


class Handler(BaseHTTPRequestHandler):
    """Routes of the contract that sync uses."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        """Answer, or meet a fault."""
        state = self.server.state
        state.seen.append(self.path)
        fault = state.take_fault(self.path)
        try:
            body, kind = self._answer()
        except ApiError as error:
            self.send_problem(error)
            return
        if fault is not None:
            fault.act(self, body)
        elif kind == "file":
            self.send_file(body)
        elif kind == "refused":
            refuse_link(self, body)
        else:
            self.send_bytes(200, body, kind)

    def _answer(self) -> tuple[bytes, str]:
        parts = urlsplit(self.path)
        segments = [each for each in parts.path.split("/") if each]
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if segments[0] == "files":
            return self._file(segments[1:])
        return encode(self._value(segments[2:], query)), "application/json"

    def _file(self, segments: list[str]) -> tuple[bytes, str]:
        age, dataset_id, number, role = segments
        if int(age) != self.server.state.age:
            return b"", "refused"
        kind: Role = "snapshot" if role == "snapshot" else "changes"
        try:
            return self.server.state.feed.file(DatasetId(dataset_id), int(number), kind), "file"
        except LookupError:
            raise NotFound(f"there is nothing at {self.path}") from None

    def _value(self, segments: list[str], query: dict[str, str]) -> object:
        feed = self.server.state.feed
        match segments:
            case ["subscriptions", subscription] if subscription == SUBSCRIPTION:
                return Subscription(id=SUBSCRIPTION, name="", created_at=_MADE)
            case ["subscriptions", subscription, "manifest"] if subscription == SUBSCRIPTION:
                return feed.manifest()
            case ["subscriptions", subscription, "events"] if subscription == SUBSCRIPTION:
                return self._events(query)
            case ["datasets", dataset_id]:
                return feed.dataset(DatasetId(dataset_id))
            case ["datasets", dataset_id, "versions"]:
                after = int(query.get("after", "0"))
                found = feed.versions(DatasetId(dataset_id), after=after)
                return VersionPage(versions=found, next_cursor=None)
            case ["datasets", dataset_id, "versions", number]:
                return self._signed(feed.version(DatasetId(dataset_id), int(number)))
            case ["datasets", dataset_id, "versions", number, "digest"]:
                return feed.digest(DatasetId(dataset_id), int(number))
            case ["datasets", dataset_id, "schema"]:
                return feed.schema(DatasetId(dataset_id), int(query["version"]))
            case _:
                raise NotFound(f"there is nothing at {self.path}")

    def _events(self, query: dict[str, str]) -> object:
        state = self.server.state
        cursor = EventId(query.get("cursor", START))
        page = state.feed.events(cursor, limit=int(query.get("limit", "100")))
        until = time.monotonic() + min(float(query.get("wait", "0")), state.patience)
        while page.next_cursor == cursor and time.monotonic() < until:
            state.holding.set()
            with state.waiting:
                state.waiting.wait(0.05)
            page = state.feed.events(cursor, limit=int(query.get("limit", "100")))
        return page

    def _signed(self, version: Version) -> Version:
        state = self.server.state

        def sign(files: list[File] | None) -> list[File] | None:
            return files and [
                msgspec.structs.replace(each, url=f"{state.url}/files/{state.age}/{each.url}")
                for each in files
            ]

        files = msgspec.structs.replace(
            version.files,
            snapshot=sign(version.files.snapshot),
            changes=sign(version.files.changes),
        )
        return msgspec.structs.replace(version, files=files)

    def send_file(self, body: bytes) -> None:
        """A file's bytes, from where a `Range` asks for them."""
        found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(found[1]) if found else 0
        self.send_response(206 if found else 200)
        if found:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self._finish(body[start:], "application/octet-stream")

    def send_bytes(self, status: int, body: bytes, kind: str) -> None:
        """An answer."""
        self.send_response(status)
        self._finish(body, kind)

    def send_problem(self, error: ApiError) -> None:
        """A problem as the contract says."""
        meaning = MEANINGS[error.code]
        problem = {
            "type": "about:blank",
            "title": meaning.title,
            "status": meaning.status,
            "detail": error.detail,
            "code": error.code,
        }
        self.send_bytes(meaning.status, encode(problem), "application/problem+json")

    def _finish(self, body: bytes, kind: str) -> None:
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, state: FeedServer) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.state = state

    def handle_error(self, *_: object) -> None:
        """A client that is killed breaks its connections."""


@contextmanager
def serve(feed: FakeFeed) -> Iterator[FeedServer]:
    """The feed, served on a free port until the block ends."""
    state = FeedServer(feed)
    with _Server(state) as server:
        state.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()
