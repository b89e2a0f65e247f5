"""The poster's connections, to receivers that answer oddly, break off, or do not let go."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop
from tests.fakes.names import Names
from tests.fakes.receiver import receiving
from tests.integration.test_poster import LOOPBACK, certificate

from ploti.server.adapters.poster import Limits, WebhookPoster, kept
from ploti.server.deliver.answers import Answer as Told

EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
BROKEN_OFF = "connection: broken off before an answer"
NOT_HTTP = "no answer: what came is not HTTP"
LARGE = b"x" * (16 << 20)
LENGTH = re.compile(rb"(?i)content-length: *(\d+)")


@pytest.fixture(autouse=True, params=["asyncio", "uvloop"])
def event_loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The standard library's, and the server's."""
    if request.param == "uvloop":
        monkeypatch.setattr(asyncio, "run", uvloop.run)


class Talk:
    """The receiver's side of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.ended = asyncio.Event()

    async def read(self) -> bytes:
        """A whole request."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        found = LENGTH.search(head)
        assert found is not None
        return head + await self.reader.readexactly(int(found[1]))

    async def say(self, *parts: bytes) -> None:
        """Send these, each by itself."""
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()
            await asyncio.sleep(0)

    async def answer(self, *parts: bytes) -> None:
        await self.read()
        await self.say(*parts)

    def reset(self) -> None:
        self.writer.transport.abort()


Part = Callable[[Talk], Awaitable[None]]


def saying(*parts: bytes) -> Part:
    """A receiver that says this to each request."""

    async def talk(talk: Talk) -> None:
        while True:
            await talk.answer(*parts)

    return talk


class Talking:
    """A server whose connections each go by a part of their own, the later ones by the last."""

    def __init__(self, *parts: Part) -> None:
        self.parts = parts
        self.talks: list[Talk] = []
        self.url = ""

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = Talk(reader, writer)
        part = self.parts[min(len(self.talks), len(self.parts) - 1)]
        self.talks.append(talk)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await part(talk)
            await reader.read()
        talk.ended.set()
        writer.close()


@asynccontextmanager
async def talking(*parts: Part) -> AsyncIterator[Talking]:
    server = Talking(*parts)
    async with await asyncio.start_server(server.connected, "127.0.0.1", 0) as listening:
        server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/h"
        yield server


@asynccontextmanager
async def sending(**given: Any) -> AsyncIterator[Callable[..., Awaitable[Told]]]:
    """What POSTs to an address, a small body unless another is given, and its answer."""
    limits = given.pop("limits", Limits(connect=30, total=30, body=30))
    sender = WebhookPoster(
        **{"allow_networks": LOOPBACK, "user_agent": "ploti/0", "limits": limits, **given}
    )

    async def send(url: str, body: bytes = b"{}") -> Told:
        return await sender.post(url, body=body, headers={"webhook-id": "msg_1"})

    try:
        yield send
    finally:
        await sender.close()


def posted(*parts: Part, posts: int = 1, body: bytes = b"{}") -> tuple[list[Told], int]:
    """What a number of POSTs came to, one after the other, and how many connections there were."""

    async def work() -> tuple[list[Told], int]:
        async with talking(*parts) as server, sending() as send:
            told = [await send(server.url, body) for _ in range(posts)]
            return told, len(server.talks)

    return asyncio.run(work())


def test_one_connection_serves_post_after_post_however_their_answers_come() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: b\r\n\r\n"
    early = b"HTTP/1.1 100 Continue\r\n\r\n"
    for parts in ([chunked], [bytes([each]) for each in chunked], [early, chunked]):
        told, connections = posted(saying(*parts), posts=3)
        assert [(each.status, each.excerpt) for each in told] == [(200, "ok")] * 3
        assert connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + EMPTY,
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more",
    ],
)
def test_a_connection_that_an_answer_ends_is_not_used_again(answer: bytes) -> None:
    told, connections = posted(saying(answer), posts=2)
    assert [(each.status, each.excerpt) for each in told] == [(200, "ok")] * 2
    assert connections == 2


def test_a_body_without_a_length_ends_with_its_connection() -> None:
    async def talk(talk: Talk) -> None:
        await talk.answer(b"HTTP/1.1 500 .\r\n\r\n", b"out of ", b"order")
        talk.writer.write_eof()

    told, connections = posted(talk, posts=2)
    assert [(each.status, each.excerpt) for each in told] == [(500, "out of order")] * 2
    assert connections == 2


def test_a_body_that_breaks_off_does_not_change_what_its_head_says() -> None:
    async def talk(talk: Talk) -> None:
        await talk.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", b"not all")
        talk.reset()

    ((told,), _) = posted(talk)
    assert (told.status, told.error) == (200, None)


def test_what_nobody_asked_for_ends_a_connection() -> None:
    async def work() -> None:
        said = asyncio.Event()

        async def talk(talk: Talk) -> None:
            await talk.answer(EMPTY)
            await said.wait()
            await talk.say(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")

        async with talking(talk, saying(EMPTY)) as server, sending() as send:
            assert (await send(server.url)).status == 200
            said.set()
            await server.talks[0].ended.wait()
            assert (await send(server.url)).status == 200
            assert len(server.talks) == 2

    asyncio.run(work())


def test_who_answers_as_soon_as_it_accepts_is_heard() -> None:
    async def talk(talk: Talk) -> None:
        await talk.say(b"HTTP/1.1 503 .\r\nRetry-After: 7\r\nConnection: close\r\n\r\nbusy")
        talk.writer.write_eof()

    told, connections = posted(talk, posts=2)
    assert [(each.status, each.retry_after) for each in told] == [(503, 7)] * 2
    assert connections == 2


@pytest.mark.parametrize("banner", [b"SSH-2.0-OpenSSH_9.2\r\n", b"\x00" * 40, b"\x15\x03\x01\x00"])
def test_who_speaks_another_protocol_is_told_as_that(banner: bytes) -> None:
    async def at_once(talk: Talk) -> None:
        await talk.say(banner)

    for part in (at_once, saying(banner)):
        ((told,), _) = posted(part)
        assert (told.status, told.error) == (None, NOT_HTTP)


def test_a_head_without_end_is_cut_off() -> None:
    for endless in (b"X: " + b"x" * (1 << 20), b"HTTP/1.1 100 Continue\r\n\r\n" * 5000):
        ((told,), _) = posted(saying(b"HTTP/1.1 200 OK\r\n" * endless.startswith(b"X"), endless))
        assert told.error == "no answer: its head is longer than 64 KiB"


def test_a_kept_connection_that_is_closed_as_the_next_post_is_sent_is_made_anew() -> None:
    """The receiver reads the POST there, but may not have: it gets the same again."""

    async def closing(talk: Talk) -> None:
        await talk.answer(EMPTY)
        await talk.read()
        talk.writer.write_eof()

    async def resetting(talk: Talk) -> None:
        await talk.answer(EMPTY)
        await talk.read()
        talk.reset()

    for part in (closing, resetting):
        told, connections = posted(part, saying(EMPTY), posts=2)
        assert [each.status for each in told] == [200, 200]
        assert connections == 2


def test_a_kept_connection_that_breaks_off_within_an_answer_is_not_made_anew() -> None:
    async def talk(talk: Talk) -> None:
        await talk.answer(EMPTY)
        await talk.answer(b"HTTP/1.1 20")
        talk.reset()

    (first, second), connections = posted(talk, posts=2)
    assert (first.status, second.error, second.address) == (200, BROKEN_OFF, "127.0.0.1")
    assert connections == 1


def test_a_new_connection_that_breaks_off_is_told() -> None:
    async def half_closing(talk: Talk) -> None:
        await talk.read()
        talk.writer.write_eof()

    async def resetting(talk: Talk) -> None:
        await talk.reader.readexactly(1000)
        talk.reset()

    async def within_the_head(talk: Talk) -> None:
        await talk.answer(b"HTTP/1.1 200 OK\r\n")
        talk.writer.write_eof()

    for part in (half_closing, resetting, within_the_head):
        ((told,), connections) = posted(part, body=LARGE)
        assert (told.error, told.address, connections) == (BROKEN_OFF, "127.0.0.1", 1)


def test_of_a_post_that_is_given_up_nothing_more_is_sent() -> None:
    async def work() -> None:
        came: list[bytes] = []

        async def talk(talk: Talk) -> None:
            await late.wait()
            came.append(await talk.reader.read())

        late = asyncio.Event()
        limits = Limits(connect=30, total=0.2)
        async with talking(talk) as server, sending(limits=limits) as send:
            told = await send(server.url, LARGE)
            assert told.error == "timeout: no answer within 0.2 seconds"
            late.set()
            await server.talks[0].ended.wait()
        assert len(came[0]) < len(LARGE)

    asyncio.run(work())


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome"])
def test_a_post_that_is_called_off_leaves_no_connection(said: bytes) -> None:
    async def work() -> None:
        there = asyncio.Event()

        async def talk(talk: Talk) -> None:
            await talk.answer(said)
            there.set()

        async with talking(talk) as server, sending() as send:
            task = asyncio.ensure_future(send(server.url))
            await there.wait()
            await asyncio.sleep(0.05)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            await server.talks[0].ended.wait()

    asyncio.run(work())


def test_a_connection_without_a_post_is_closed_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kept, "_KEPT_FOR", 0.05)
    monkeypatch.setattr(kept, "_LOOK", 0.01)

    async def work() -> None:
        async with talking(saying(EMPTY)) as server, sending() as send:
            for number in range(2):
                assert (await send(server.url)).status == 200
                await server.talks[number].ended.wait()

    asyncio.run(work())


def test_connections_are_kept_for_15_seconds() -> None:
    assert kept._KEPT_FOR == 15


def test_names_are_asked_for_anew_with_each_connection_and_not_with_each_post() -> None:
    async def work() -> None:
        names = Names(["127.0.0.1"])
        async with talking(saying(EMPTY)) as server, sending(resolver=names) as send:
            port = server.url.rpartition(":")[2]
            for asked in (1, 1):
                assert (await send(f"http://one.example:{port}")).status == 200
                assert names.asked == asked
            assert (await send(f"http://two.example:{port}")).status == 200
            assert (names.asked, len(server.talks)) == (2, 2)

    asyncio.run(work())


def test_addresses_are_dialled_in_order_until_one_answers() -> None:
    async def work() -> None:
        names = Names(["127.0.0.3", "10.0.0.9", "127.0.0.1", "127.0.0.2"])
        async with talking(saying(EMPTY)) as server, sending(resolver=names) as send:
            told = await send(f"http://many.example:{server.url.rpartition(':')[2]}")
            assert (told.status, told.address) == (200, "127.0.0.1")

    asyncio.run(work())


def test_by_tls_a_connection_is_kept_too_and_the_name_is_that_of_the_network(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        server, trust = certificate(tmp_path, name="xn--bcher-kva.example")
        async with (
            receiving(tls=server) as receiver,
            sending(resolver=Names(["127.0.0.1"]), trust=trust) as send,
        ):
            receiver.keeps = 2
            port = receiver.url.rpartition(":")[2]
            for _ in range(4):
                assert (await send(f"https://bücher.example:{port}/h")).status == 200
            assert receiver.connections == 2
            assert (await send(f"https://bücher.example.:{port}/h")).status == 200

    asyncio.run(work())


def test_who_does_not_speak_tls_is_told_as_that() -> None:
    async def work() -> None:
        async def talk(talk: Talk) -> None:
            await talk.reader.read(100)
            await talk.say(b"HTTP/1.1 400 .\r\n\r\n")

        async with talking(talk) as server, sending() as send:
            told = await send(server.url.replace("http:", "https:"))
            assert told.error is not None
            assert told.error.startswith("tls: ")

    asyncio.run(work())
