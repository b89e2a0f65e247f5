"""A server on loopback that answers by script and remembers what it was asked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit


@dataclass
class Seen:
    """A request as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass
class Reply:
    """An answer; bytes stand as they are, everything else is sent as JSON."""

    body: object = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    def __call__(self, handler: Handler) -> None:
        plain = isinstance(self.body, bytes)
        body = self.body if plain else json.dumps(self.body).encode()
        kind = "application/problem+json" if self.status >= 400 else "application/json"
        headers = {} if plain else {"Content-Type": kind}
        handler.send_response(self.status)
        for name, text in (headers | self.headers).items():
            handler.send_header(name, text)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)


def problem(status: int, code: str, detail: str, **headers: str) -> Reply:
    """A problem as the API answers it."""
    body = {"type": "about:blank", "title": code, "status": status, "code": code, "detail": detail}
    return Reply(body, status, {name.replace("_", "-"): text for name, text in headers.items()})


@dataclass
class Breaks:
    """Sends the first bytes of an answer and then breaks off."""

    body: bytes
    length: int
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    def __call__(self, handler: Handler) -> None:
        handler.send_response(self.status)
        for name, text in self.headers.items():
            handler.send_header(name, text)
        handler.send_header("Content-Length", str(self.length))
        handler.end_headers()
        handler.wfile.write(self.body)
        handler.wfile.flush()
        handler.close_connection = True


@dataclass
class Drips:
    """Sends an answer's head, and then a byte now and then until the other side has gone."""

    every: float = 0.02
    head: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"

    def __call__(self, handler: Handler) -> None:
        handler.close_connection = True
        handler.wfile.write(self.head)
        for _ in range(10_000):
            if handler.server.stopping.is_set():
                return
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(self.every)


@dataclass
class Holds:
    """Answers nothing until it is let go."""

    let_go: threading.Event

    def __call__(self, handler: Handler) -> None:
        self.let_go.wait()
        handler.close_connection = True


Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def answer(self) -> None:
        parts = urlsplit(self.path)
        seen = Seen(
            method=self.command,
            path=parts.path,
            query=dict(parse_qsl(parts.query)),
            headers={name.lower(): text for name, text in self.headers.items()},
            body=self.read_body(),
        )
        try:
            self.server.next_answer(seen)(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815

    def read_body(self) -> bytes:
        if urlsplit(self.path).path in self.server.unread:
            return b""
        if self.headers.get("Transfer-Encoding") == "chunked":
            return b"".join(iter(self.read_chunk, b""))
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def read_chunk(self) -> bytes:
        chunk = self.rfile.read(int(self.rfile.readline(), 16))
        self.rfile.readline()
        return chunk

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    """Answers each path by its own script, whose last answer is given again and again."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[Seen] = []
        self.unread: set[str] = set()  # paths that answer without having read the body
        self.stopping = threading.Event()
        self._scripts: dict[str, list[Answer]] = {}
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def on(self, call: str, *answers: Answer) -> None:
        """Script a call such as `GET /v1/feeds/datasets`."""
        self._scripts[call] = [*answers]

    def next_answer(self, seen: Seen) -> Answer:
        with self._lock:
            self.seen.append(seen)
            script = self._scripts.get(f"{seen.method} {seen.path}")
            if not script:
                return problem(404, "not_found", f"nothing at {seen.path}")
            return script.pop(0) if len(script) > 1 else script[0]

    def asked(self, call: str) -> list[Seen]:
        """The requests of one call so far."""
        return [seen for seen in self.seen if f"{seen.method} {seen.path}" == call]


@contextmanager
def running() -> Iterator[Server]:
    """A server for the length of a block."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.stopping.set()
            server.shutdown()
            thread.join()
