"""Connections that are kept a while for the next POST to the same place."""

from __future__ import annotations

import asyncio

from ploti.server.adapters.poster.connection import Connection
from ploti.server.adapters.poster.target import Origin

_KEPT_FOR = 15.0
"""Seconds without a POST after which a connection is closed."""

_LOOK = 1.0

_MOST = 512
"""Connections that are kept: twice as many as POSTs may be under way. Each is an open file, and a
release may go to more hosts than a process may have files."""


class Kept:
    """Free connections by where they lead; those that were used last are taken first."""

    def __init__(self) -> None:
        self._free: dict[Origin, list[Connection]] = {}
        self._until: dict[Connection, tuple[Origin, float]] = {}  # those kept for longest first
        self._sweep: asyncio.TimerHandle | None = None

    def take(self, origin: Origin) -> Connection | None:
        """One that leads there and is open, if there is one; it is the caller's from now on."""
        while free := self._free.get(origin):
            connection = free.pop()
            self._forget(connection, origin)
            if connection.is_open:
                return connection
        return None

    def keep(self, origin: Origin, connection: Connection) -> None:
        """Keep one that is free; another is closed."""
        if not connection.is_free:
            connection.close()
            return
        loop = asyncio.get_running_loop()
        self._free.setdefault(origin, []).append(connection)
        self._until[connection] = (origin, loop.time() + _KEPT_FOR)
        if len(self._until) > _MOST:
            self._drop(next(iter(self._until)))
        if self._sweep is None:
            self._sweep = loop.call_later(_LOOK, self._drop_old)

    def close(self) -> None:
        """Close all."""
        if self._sweep:
            self._sweep.cancel()
            self._sweep = None
        for connection in [*self._until]:
            self._drop(connection)

    def _drop_old(self) -> None:
        """Close those whose time is over, and forget those that are closed."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection, (_, end) in [*self._until.items()]:
            if end <= now or not connection.is_open:
                self._drop(connection)
        self._sweep = loop.call_later(_LOOK, self._drop_old) if self._until else None

    def _drop(self, connection: Connection) -> None:
        origin, _ = self._until[connection]
        self._free[origin].remove(connection)
        self._forget(connection, origin)
        connection.close()

    def _forget(self, connection: Connection, origin: Origin) -> None:
        """Forget one that was taken from those that lead there."""
        del self._until[connection]
        if not self._free[origin]:
            del self._free[origin]
