"""A receiver of webhooks with a script: what it answers, how late, and what it was sent."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple

from standardwebhooks import Webhook

from ploti.model.wire import Value


class Post(NamedTuple):
    """A POST as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes
    at: float

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


class Answer(Value, kw_only=True):
    """One answer: a status with headers after a while, and a body; or the connection reset.

    What `drips` comes byte by byte, and never ends: its body, or already its head.
    """

    status: int = 200
    headers: dict[str, str] = {}
    body: bytes = b""
    after: float = 0
    drips: bool = False
    drips_head: bool = False
    resets: bool = False


OK = Answer()
Script = Callable[[Post], Answer]


class Receiver:
    """Takes what is sent to it; `answer` decides on each POST, and may be changed at any time.

    At first it goes by the rule or the script of a POST's path. A connection takes `keeps` POSTs
    and is closed without a word.
    """

    def __init__(self) -> None:
        self.posts: list[Post] = []
        self.arrived = asyncio.Event()
        self.answers: defaultdict[str, list[Answer]] = defaultdict(list)
        self.rules: dict[str, Script] = {}
        self.answer: Script = self._next
        self.url = ""
        self.keeps = 1
        self.connections = 0

    def script(self, *answers: Answer, path: str = "/h") -> None:
        """Answer with these in turn, and with the last one from then on."""
        self.answers[path] = [*answers]

    def to(self, path: str) -> list[Post]:
        return [post for post in self.posts if post.path == path]

    def verified(self, secret: str) -> list[dict[str, Any]]:
        """The bodies, each accepted by the official package."""
        return [Webhook(secret).verify(post.body, post.headers) for post in self.posts]

    def _next(self, post: Post) -> Answer:
        if post.path in self.rules:
            return self.rules[post.path](post)
        left = self.answers[post.path]
        if not left:
            return OK
        return left.pop(0) if len(left) > 1 else left[0]

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            for _ in range(self.keeps):
                answer = self.answer(await self._read(reader))
                await asyncio.sleep(answer.after)
                await _send(writer, answer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the sender went away, or the test is over
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Post:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (x.partition(": ") for x in lines)}
        body = await reader.readexactly(int(headers["content-length"]))
        method, path, _ = first.split(" ")
        assert method == "POST"
        post = Post(path, headers, body, time.monotonic())
        self.posts.append(post)
        self.arrived.set()
        return post


async def _send(writer: asyncio.StreamWriter, answer: Answer) -> None:
    if answer.resets:
        writer.transport.abort()
        return
    length = 1 << 30 if answer.drips else len(answer.body)
    lines = [f"HTTP/1.1 {answer.status} .", f"Content-Length: {length}"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    head = "\r\n".join(lines).encode()
    writer.write(head if answer.drips_head else head + b"\r\n\r\n" + answer.body)
    await writer.drain()
    while answer.drips or answer.drips_head:
        await asyncio.sleep(0.05)
        writer.write(b".")
        await writer.drain()


@asynccontextmanager
async def receiving(*, tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    """A receiver on a free port of loopback."""
    receiver = Receiver()
    server = await asyncio.start_server(receiver.connected, "127.0.0.1", 0, ssl=tls)
    async with server:
        scheme = "https" if tls else "http"
        receiver.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield receiver
        finally:
            server.close()


@contextmanager
def receiver_beside() -> Iterator[Receiver]:
    """A receiver in a thread of its own."""
    ready, found = threading.Event(), []

    async def main() -> None:
        end = asyncio.Event()
        async with receiving() as receiver:
            found.append((receiver, asyncio.get_running_loop(), end))
            ready.set()
            await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    ready.wait()
    receiver, loop, end = found[0]
    try:
        yield receiver
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join()
