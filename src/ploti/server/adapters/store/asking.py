"""One statement, asked of PostgreSQL by the event loop itself.

The way to a thread and back costs more than the statement. This is libpq's own way for who must not
wait: send, hear of the socket, take the result. Connections are opened by threads, as they are
missed; where none is free, or one breaks off, it is Busy, and a thread does the work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import psycopg
from psycopg import pq

from ploti.server.adapters.store.store import Busy

Row = list[bytes | None]
"""Values as PostgreSQL writes them."""

Connect = Callable[[], Awaitable[psycopg.Connection]]

_NAME = b"asked"


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
        self._may_open = connections
        self._lines: set[Line] = set()
        self._free: list[Line] = []
        self._opening: asyncio.Task[None] | None = None

    async def ask(self, values: Sequence[int | str]) -> Row | None:
        """The first row that the statement gives; raises Busy."""
        if not self._free:
            if self._may_open and self._opening is None:
                self._opening = asyncio.create_task(self._open())
            raise Busy
        line = self._free.pop()
        try:
            return await line.ask([str(value).encode() for value in values])
        except psycopg.Error as error:
            raise Busy from error

    async def close(self) -> None:
        """Let the connections go."""
        self._may_open = 0
        if self._opening is not None:
            await self._opening
        for line in [*self._lines]:
            line.close()

    async def _open(self) -> None:
        """One more connection; where there is none to be had, the threads tell it."""
        self._may_open -= 1
        try:
            line = Line(await self._connect(), freed=self._free.append, lost=self._lose)
        except (psycopg.Error, OSError):
            self._may_open += 1
        else:
            self._lines.add(line)
            self._free.append(line)
        finally:
            self._opening = None

    def _lose(self, line: Line) -> None:
        self._lines.discard(line)
        self._may_open += 1
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
        self._socket = self._wire.socket  # of which libpq knows nothing once it is lost
        self._loop.add_reader(self._socket, self._hear)

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
        self._loop.remove_reader(self._socket)
        self._connection.close()
        self._lost(self)
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error or psycopg.OperationalError("closed"))

    def _hear(self) -> None:
        try:
            self._wire.consume_input()
            while not self._wire.is_busy():
                result = self._wire.get_result()
                if result is None:
                    self._tell()
                    return
                self._result = result
        except psycopg.Error as error:
            self.close(error)

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
