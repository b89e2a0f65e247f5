"""The event loop's connections to PostgreSQL: how they break off, and when they are opened."""

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from select import select
from typing import Any

import psycopg
import pytest
import uvloop
from psycopg.conninfo import make_conninfo
from tests.fakes.postgres import Cluster

from ploti.server.adapters.store import asking
from ploti.server.adapters.store.asking import Asking, Line, prepare
from ploti.server.adapters.store.listener import connect
from ploti.server.adapters.store.store import Busy

FIELDS = b"SFATAL\0C57P01\0Mterminating\0\0"
FATAL = b"E" + struct.pack("!i", 4 + len(FIELDS)) + FIELDS
RESET = struct.pack("ii", 1, 0)


class Between:
    """Between a client and the database; to a question it says its `last_words`, and resets."""

    def __init__(self, port: int) -> None:
        self._database = socket.create_connection(("127.0.0.1", port))
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.last_words: bytes | None = None
        self.answer = b""
        self.ended = threading.Event()

    def relay(self) -> None:
        client, _ = self._listening.accept()
        with self._listening, self._database, client:
            while self.last_words is None:
                self._pass_on(client)
            client.sendall(self.last_words)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.ended.set()

    def _pass_on(self, client: socket.socket) -> None:
        heard, _, _ = select([client, self._database], [], [])
        for each in heard:
            data = each.recv(1 << 16)
            if each is self._database:
                self.answer += data
                client.sendall(data)
            elif self.last_words is None:
                self.answer = b""
                self._database.sendall(data)


@contextmanager
def between(cluster: Cluster) -> Iterator[Between]:
    relay = Between(cluster.port)
    thread = threading.Thread(target=relay.relay)
    thread.start()
    yield relay
    thread.join()


def prepared(url: str) -> psycopg.Connection:
    connection = connect(url)
    prepare(connection, "SELECT ?")
    return connection


@pytest.mark.parametrize("is_answered", [False, True])
@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_connection_that_is_reset_with_its_last_words_is_lost(
    run: Callable[[Coroutine[Any, Any, None]], None], is_answered: bool, postgres: Cluster
) -> None:
    """Of words and the reset at once uvloop tells once, and a question would wait for ever."""

    async def story() -> None:
        lost: list[Line] = []
        with between(postgres) as relay:
            connection = prepared(make_conninfo(postgres.url(), port=relay.port))
            line = Line(connection, freed=lambda _: None, lost=lost.append)
            assert await line.ask([b"a"]) == [b"a"]
            relay.last_words = relay.answer if is_answered else FATAL
            question = asyncio.create_task(line.ask([b"b"]))
            await asyncio.sleep(0)
            assert relay.ended.wait(60)
            async with asyncio.timeout(60):
                if is_answered:
                    assert await question == [b"a"]
                else:
                    with pytest.raises(psycopg.OperationalError):
                        await question
            assert lost == [line]

    run(story())


def test_a_connection_that_is_not_to_be_had_is_not_asked_for_with_each_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def tries() -> int:
        tried = 0

        async def fail() -> psycopg.Connection:
            nonlocal tried
            tried += 1
            raise psycopg.OperationalError("sorry, too many clients already")

        asked = Asking(fail, connections=4)
        for _ in range(20):
            with pytest.raises(Busy):
                await asked.ask([])
            await asyncio.sleep(0)
        await asked.close()
        return tried

    monkeypatch.setattr(asking, "_PAUSE", 3600.0)
    assert asyncio.run(tries()) == 1
    monkeypatch.setattr(asking, "_PAUSE", 0.0)
    assert asyncio.run(tries()) > 1


def test_once_they_are_closed_none_is_opened_any_more(postgres_url: str) -> None:
    async def story() -> None:
        opened = 0

        async def open_one() -> psycopg.Connection:
            nonlocal opened
            opened += 1
            return prepared(postgres_url)

        asked = Asking(open_one, connections=4)
        with pytest.raises(Busy):
            await asked.ask(["a"])
        assert asked._opening is not None
        await asked._opening
        assert await asked.ask(["a"]) == [b"a"]
        await asked.close()
        for _ in range(3):
            with pytest.raises(Busy):
                await asked.ask(["a"])
            await asyncio.sleep(0)
        assert opened == 1

    asyncio.run(story())
