"""Connections that are kept a while for the next POST to the same place."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from ploti.server.adapters.poster.connection import Connection
from ploti.server.adapters.poster.target import Origin

_KEPT_FOR = 15.0
"""Seconds without a POST after which a connection is closed."""

_LOOK = 1.0


class Kept:
    """Free connections by where they lead; those that were used last are taken first."""

    def __init__(self) -> None:
        self._free: defaultdict[Origin, list[tuple[Connection, float]]] = defaultdict(list)
        self._sweep: asyncio.TimerHandle | None = None

    def take(self, origin: Origin) -> Connection | None:
        """One that leads there and is open, if there is one; it is the caller's from now on."""
        free = self._free.get(origin)
        while free:
            connection, _ = free.pop()
            if connection.is_open:
                return connection
        return None

    def keep(self, origin: Origin, connection: Connection) -> None:
        """Keep one that is free; another is closed."""
        if not connection.is_free:
            connection.close()
            return
        loop = asyncio.get_running_loop()
        self._free[origin].append((connection, loop.time() + _KEPT_FOR))
        if self._sweep is None:
            self._sweep = loop.call_later(_LOOK, self._drop_old)

    def close(self) -> None:
        """Close all."""
        if self._sweep:
            self._sweep.cancel()
            self._sweep = None
        self._drop(until=float("inf"))

    def _drop_old(self) -> None:
        loop = asyncio.get_running_loop()
        self._drop(until=loop.time())
        self._sweep = loop.call_later(_LOOK, self._drop_old) if self._free else None

    def _drop(self, *, until: float) -> None:
        """Close those that were kept until then, and forget those that are closed."""
        left: defaultdict[Origin, list[tuple[Connection, float]]] = defaultdict(list)
        for origin, free in self._free.items():
            for connection, end in free:
                if end <= until:
                    connection.close()
                elif connection.is_open:
                    left[origin].append((connection, end))
        self._free = left
