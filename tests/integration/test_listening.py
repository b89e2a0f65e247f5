"""Answers that clients leave unread: waited for a while, then given up with all that they hold."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import uvloop

from ploti.server.app import listening

LARGE = 4 << 20
"""More bytes than the system takes of an answer that nobody reads."""


async def answer(scope: Any, _: Any, send: Any) -> None:
    """A body of as many bytes as the path says, in one piece or, after `/pieces`, in many."""
    if scope["type"] != "http":
        return
    *kind, size = scope["path"].strip("/").split("/")
    body = b"x" * int(size)
    step = 64 << 10 if kind else len(body)
    headers = [(b"content-length", size.encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for start in range(0, len(body), step):
        piece = {"body": body[start : start + step], "more_body": start + step < len(body)}
        await send({"type": "http.response.body", **piece})


@contextlib.asynccontextmanager
async def served() -> AsyncIterator[tuple[str, int]]:
    """The address of a server of `answer`."""
    started = asyncio.Event()
    with listening.bind("127.0.0.1", 0) as listener:
        server = asyncio.create_task(
            listening.listen(answer, listener, started=started.set, ending=lambda: None)
        )
        await started.wait()
        try:
            yield listener.getsockname()
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            await server


def run(story: Callable[[tuple[str, int]], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(60), served() as address:
            await story(address)

    uvloop.run(whole())


def ask(address: tuple[str, int], path: str, *, headers: str = "") -> socket.socket:
    """A connection over which this was asked for and nothing is read."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(address)
    client.setblocking(False)
    client.send(f"GET {path} HTTP/1.1\r\nhost: a\r\n{headers}\r\n".encode())
    return client


async def cut(client: socket.socket) -> None:
    """Return once the other side is gone, of which the system tells who still reads nothing."""
    while not client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):  # noqa: ASYNC110
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("headers", ["", "connection: close\r\n"], ids=["kept", "closed"])
@pytest.mark.parametrize("path", [f"/{LARGE}", f"/pieces/{LARGE}"])
def test_who_leaves_an_answer_unread_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, path: str, headers: str
) -> None:
    monkeypatch.setattr(listening, "READ_WITHIN", 0.1)
    monkeypatch.setattr(listening, "SLOWEST", LARGE)

    async def story(address: tuple[str, int]) -> None:
        with ask(address, path, headers=headers) as client:
            await cut(client)

    run(story)


@pytest.mark.parametrize(
    ("headers", "then"), [("connection: close\r\n", b""), ("", b""), ("", b"GET /1 HT")]
)
def test_who_leaves_the_last_of_an_answer_unread_is_cut_off_when_the_connection_ends(
    monkeypatch: pytest.MonkeyPatch, headers: str, then: bytes
) -> None:
    """Closed by the request's own wish, for being idle, and for a head that does not come."""
    monkeypatch.setattr(listening, "READ_WITHIN", 0.1)
    monkeypatch.setattr(listening, "HEAD_WITHIN", 0.2)
    monkeypatch.setattr(listening, "_KEEP_ALIVE", 0.2)
    monkeypatch.setattr(listening, "_UNSENT", 1)
    monkeypatch.setattr(listening, "SLOWEST", LARGE)

    async def story(address: tuple[str, int]) -> None:
        with ask(address, "/60000", headers=headers) as client:
            client.send(then)
            await cut(client)

    run(story)


def test_an_answer_that_is_read_in_time_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part of it has a time of its own; when all is read, none of them counts any more."""
    monkeypatch.setattr(listening, "READ_WITHIN", 4)
    monkeypatch.setattr(listening, "SLOWEST", LARGE)

    async def story(address: tuple[str, int]) -> None:
        loop, read = asyncio.get_running_loop(), 0
        with ask(address, f"/pieces/{LARGE}") as client:
            while read < LARGE:
                got = len(await loop.sock_recv(client, 64 << 10))
                read += got
                await asyncio.sleep(4.5 * got / LARGE)
            await asyncio.sleep(4.5)
            await loop.sock_sendall(client, b"GET /1 HTTP/1.1\r\nhost: a\r\n\r\n")
            assert await loop.sock_recv(client, 99)

    run(story)


def test_more_may_be_open_than_a_process_begins_with() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = before[1]

    async def story(_: tuple[str, int]) -> None:
        few, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert few == min(most, listening.MOST_FILES)

    resource.setrlimit(resource.RLIMIT_NOFILE, (512, most))
    try:
        run(story)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
