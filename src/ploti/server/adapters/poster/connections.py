"""Connections to receivers: made under guard, kept a while, and known by their address."""

from __future__ import annotations

import math
import socket
import ssl
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.connector import Connection

from ploti.server.guard import Dialled, guarded_sockets

_KEPT_FOR = 15
"""Seconds that a connection is kept for the next POST."""


class Trail:
    """Where one POST went: what was dialled for it, and by which connection it was sent."""

    def __init__(self, *, scheme: str) -> None:
        self.scheme = scheme
        self.dialled = Dialled()
        self.sent_to: str | None = None
        self.is_fresh = True

    @property
    def address(self) -> str | None:
        """The address that it was sent to, or that was dialled last."""
        return self.sent_to or next(reversed(self.dialled.addresses), None)


_under_way: ContextVar[Trail] = ContextVar("under_way")
"""The POST of this task, for the connector, which serves them all."""


class GuardedConnector(aiohttp.TCPConnector):
    """Judges the address of every socket as it is made; a kept connection was judged so.

    `within` are the seconds to connect in.
    """

    def __init__(
        self,
        *,
        allow: Sequence[str],
        resolver: AbstractResolver,
        trust: ssl.SSLContext | None,
        within: float,
    ) -> None:
        super().__init__(
            resolver=resolver,
            socket_factory=self._make_socket,
            happy_eyeballs_delay=None,
            use_dns_cache=False,
            keepalive_timeout=_KEPT_FOR,
            limit=0,
            ssl=trust or True,
        )
        self._allow = allow
        # To the moment: aiohttp would round whole seconds up
        self._within = aiohttp.ClientTimeout(None, sock_connect=within, ceil_threshold=math.inf)

    async def connection(self, request: aiohttp.ClientRequest, *, trail: Trail) -> Connection:
        """A connection for a request; its POST learns the address, and whether it is new."""
        _under_way.set(trail)
        trail.is_fresh, trail.sent_to = True, None
        before = len(trail.dialled.addresses)
        connection = await self.connect(request, [], self._within)
        peer = connection.transport and connection.transport.get_extra_info("peername")
        trail.sent_to = str(peer[0]) if peer else None
        trail.is_fresh = len(trail.dialled.addresses) > before
        return connection

    def _make_socket(self, info: tuple[Any, ...]) -> socket.socket:
        trail = _under_way.get()
        make = guarded_sockets(trail.scheme, allow=self._allow, dialled=trail.dialled)
        return make(info)
