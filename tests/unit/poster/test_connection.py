"""A connection whose bytes come at moments that no network can be made to choose."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ploti.server.adapters.poster import kept as keeping
from ploti.server.adapters.poster.connection import BrokenOff, Connection
from ploti.server.adapters.poster.kept import Kept
from ploti.server.adapters.poster.target import Origin

EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
ORIGIN = Origin("https", "receiver.example", 443)


class Wire(asyncio.Transport):
    """The other end: keeps what is sent, and of that `unsent` bytes on this side."""

    def __init__(self) -> None:
        super().__init__()
        self.sent, self.unsent, self.is_over = b"", 0, False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def abort(self) -> None:
        self.is_over = True


def connected(work: Callable[[Connection, Wire], Awaitable[None]]) -> None:
    async def main() -> None:
        connection, wire = Connection("9.9.9.9"), Wire()
        connection.connection_made(wire)
        await work(connection, wire)

    asyncio.run(main())


async def answered(connection: Connection, said: bytes = EMPTY) -> None:
    asking = asyncio.ensure_future(connection.ask(b"POST"))
    await asyncio.sleep(0)
    connection.data_received(said)
    assert (await asking).status == 200


def test_an_answer_ahead_of_its_question_is_heard_and_the_connection_not_asked_again() -> None:
    async def work(connection: Connection, wire: Wire) -> None:
        connection.data_received(EMPTY)
        assert (await connection.ask(b"POST")).status == 200
        assert not connection.is_free

    connected(work)


def test_after_an_answer_to_the_end_it_is_free_unless_the_request_was_not_read_whole() -> None:
    async def work(connection: Connection, wire: Wire) -> None:
        await answered(connection)
        assert connection.is_free
        wire.unsent = 1
        assert not connection.is_free
        kept = Kept()
        kept.keep(ORIGIN, connection)
        assert wire.is_over
        assert kept.take(ORIGIN) is None

    connected(work)


def test_an_answer_of_which_something_is_to_come_leaves_it_taken() -> None:
    async def work(connection: Connection, wire: Wire) -> None:
        await answered(connection, EMPTY.replace(b": 0", b": 2"))
        assert not connection.is_free
        connection.data_received(b"ok")
        await connection.finish()
        assert connection.is_free

    connected(work)


def test_one_that_ended_before_it_was_asked_sends_nothing() -> None:
    async def work(connection: Connection, wire: Wire) -> None:
        connection.connection_lost(None)
        with pytest.raises(BrokenOff):
            await connection.ask(b"POST")
        assert wire.sent == b""

    connected(work)


def test_one_that_ended_while_it_was_kept_is_not_taken() -> None:
    async def work(connection: Connection, wire: Wire) -> None:
        await answered(connection)
        kept = Kept()
        kept.keep(ORIGIN, connection)
        connection.eof_received()
        assert wire.is_over
        assert kept.take(ORIGIN) is None
        kept.close()

    connected(work)


def test_the_one_that_was_used_last_is_taken_first_and_only_for_its_place() -> None:
    async def work(connection: Connection, _: Wire) -> None:
        other = Connection("9.9.9.9")
        other.connection_made(Wire())
        kept = Kept()
        for each in (connection, other):
            await answered(each)
            kept.keep(ORIGIN, each)
        assert kept.take(ORIGIN._replace(port=8443)) is None
        assert kept.take(ORIGIN._replace(scheme="http")) is None
        assert [kept.take(ORIGIN) for _ in range(3)] == [other, connection, None]
        kept.close()

    connected(work)


def test_of_too_many_those_that_were_kept_for_longest_are_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A release may go to more hosts than a process may have files open."""
    monkeypatch.setattr(keeping, "_MOST", 2)

    async def work() -> None:
        kept = Kept()
        wires, others = [Wire() for _ in range(4)], [ORIGIN._replace(port=port) for port in (1, 2)]
        for wire, origin in zip(wires, (ORIGIN, others[0], ORIGIN, others[1]), strict=True):
            connection = Connection("9.9.9.9")
            connection.connection_made(wire)
            await answered(connection)
            kept.keep(origin, connection)
        assert [wire.is_over for wire in wires] == [True, True, False, False]
        assert kept.take(others[0]) is None
        assert kept.take(ORIGIN) is not None
        assert kept.take(ORIGIN) is None
        kept.close()
        assert [wire.is_over for wire in wires[2:]] == [False, True]

    asyncio.run(work())
