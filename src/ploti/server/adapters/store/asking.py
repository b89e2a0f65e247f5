"""One statement, asked of PostgreSQL by the event loop itself.

The way to a thread and back costs more than the statement. This is libpq's own way for who must not
wait: send, hear of the socket, take the result. Connections are opened by threads, as they are
missed; where none is free, or one breaks off, it is Busy, and a thread does the work.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import psycopg
from psycopg import pq

from ploti.server.adapters.store.store import Busy

Row = list[bytes | None]
"""Values as PostgreSQL writes them."""

Connect = Callable[[], Awaitable[psycopg.Connection]]

_NAME = b"asked"

_PAUSE = 1.0
"""Seconds after a connection that was not to be had; each page would try again, where all are."""


def prepare(connection: psycopg.Connection, statement: str) -> None:
    """Have a connection know the statement, which has a `?` for each value."""
    first, *parts = statement.split("?")
    numbered = [f"${number}{part}" for number, part in enumerate(parts, start=1)]
    result = connection.pgconn.prepare(_NAME, "".join([first, *numbered]).encode())
    if result.status != pq.ExecStatus.COMMAND_OK:
        raise psycopg.ProgrammingError(result.get_error_message())


class Asking:
    """Asks the statement that connections were prepared with, over so many of them at most."""

    def __init__(self, connect: Connect, *, connections: int) -> None:
        self._connect = connect
        self._most = connections
        self._lines: set[Line] = set()
        self._free: list[Line] = []
        self._opening: asyncio.Task[None] | None = None
        self._open_from = 0.0

    async def ask(self, values: Sequence[int | str]) -> Row | None:
        """The first row that the statement gives; raises Busy."""
        if not self._free:
            self._miss()
            raise Busy
        line = self._free.pop()
        try:
            return await line.ask([str(value).encode() for value in values])
        except psycopg.Error as error:
            raise Busy from error

    async def close(self) -> None:
        """Let the connections go."""
        self._most = 0
        if self._opening is not None:
            await self._opening
        for line in [*self._lines]:
            line.close()

    def _miss(self) -> None:
        """Have one more connection opened, if there may be, and if that did not fail just now."""
        loop = asyncio.get_running_loop()
        if (
            self._opening is None
            and len(self._lines) < self._most
            and loop.time() >= self._open_from
        ):
            self._opening = loop.create_task(self._open())

    async def _open(self) -> None:
        """One more connection; where there is none to be had, the threads tell it."""
        try:
            line = Line(await self._connect(), freed=self._free.append, lost=self._lose)
        except (psycopg.Error, OSError):
            self._open_from = asyncio.get_running_loop().time() + _PAUSE
        else:
            self._lines.add(line)
            self._free.append(line)
        finally:
            self._opening = None

    def _lose(self, line: Line) -> None:
        self._lines.discard(line)
        with suppress(ValueError):
            self._free.remove(line)


class Line:
    """A connection on which one question at a time is answered.

    It tells when it is `freed` for the next one, whether or not the answer is still waited for, and
    when it is `lost`.
    """

    def __init__(
        self,
        connection: psycopg.Connection,
        *,
        freed: Callable[[Line], object],
        lost: Callable[[Line], object],
    ) -> None:
        self._connection = connection
        self._wire = connection.pgconn
        self._wire.nonblocking = 1
        self._freed, self._lost = freed, lost
        self._result: pq.abc.PGresult | None = None
        self._answer: asyncio.Future[Row | None] | None = None
        self._loop = asyncio.get_running_loop()
        self._socket = socket.socket(fileno=self._wire.socket)  # libpq's, and closed by it
        self._watched = self._socket.fileno()
        self._loop.add_reader(self._watched, self._hear)

    async def ask(self, values: Sequence[bytes]) -> Row | None:
        """The first row for these values; raises psycopg's errors."""
        answer: asyncio.Future[Row | None] = self._loop.create_future()
        self._answer = answer
        try:
            self._wire.send_query_prepared(_NAME, values)
            if self._wire.flush():
                raise psycopg.OperationalError("the connection does not take a question at once")
        except psycopg.Error:
            self._answer = None
            self.close()
            raise
        return await answer

    def close(self, error: psycopg.Error | None = None) -> None:
        """Let the connection go, and tell who waits for an answer."""
        self._loop.remove_reader(self._watched)
        self._socket.detach()
        self._connection.close()
        self._lost(self)
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error or psycopg.OperationalError("closed"))

    def _hear(self) -> None:
        # Of a socket with an error uvloop tells once, whatever there is to be read ahead of that
        is_broken = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
        try:
            self._read()
        except psycopg.Error as error:
            self.close(error)
        else:
            if is_broken:
                self.close()

    def _read(self) -> None:
        self._wire.consume_input()
        while not self._wire.is_busy():
            result = self._wire.get_result()
            if result is None:
                self._tell()
                return
            self._result = result

    def _tell(self) -> None:
        """Give the answer, unless what came was none, or nobody waits for it any more."""
        answer, result = self._answer, self._result
        self._answer = self._result = None
        if answer is None or result is None:
            return
        self._freed(self)
        if answer.done():
            return
        if result.status == pq.ExecStatus.TUPLES_OK:
            answer.set_result(_first(result))
        else:
            answer.set_exception(psycopg.OperationalError(result.get_error_message()))


def _first(result: pq.abc.PGresult) -> Row | None:
    if not result.ntuples:
        return None
    row: Row = [result.get_value(0, column) for column in range(result.nfields)]
    return row
