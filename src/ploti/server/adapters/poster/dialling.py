"""New connections: names are asked for anew, and each address is judged as it is dialled."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from functools import cache, partial
from ipaddress import ip_address

from aiohttp.abc import AbstractResolver

from ploti.server.adapters.poster.connection import Connection
from ploti.server.adapters.poster.reading import NoAnswer
from ploti.server.adapters.poster.target import Origin
from ploti.server.guard import AddressInfo, Dialled, NotAllowed, guarded_sockets
from ploti.server.ports.outside import Timer


class Dialler:
    """Makes connections under guard; `within` are the seconds for each address, TLS included."""

    def __init__(
        self,
        *,
        allow: Sequence[str],
        resolver: AbstractResolver,
        trust: ssl.SSLContext | None,
        timer: Timer,
        within: float,
    ) -> None:
        self._allow = allow
        self._resolver = resolver
        self._trust = trust or _system_trust()
        self._timer = timer
        self._within = within
        self._too_late = f"timeout: no connection within {within:g} seconds"

    async def dial(self, origin: Origin, *, dialled: Dialled) -> Connection:
        """A connection to the first of the host's addresses to which there can be one.

        Raises NoAnswer where the name has none, where none of them may be dialled, or where the
        last one took too long; else the OSError, be it of TLS, that kept it from that one.
        """
        make = guarded_sockets(origin.scheme, allow=self._allow, dialled=dialled)
        failed: Exception | None = None
        for info in await self._addresses(origin):
            try:
                async with self._timer.timeout(self._within):
                    return await self._connect(make(info), info, origin)
            except NotAllowed:
                continue
            except TimeoutError as error:
                failed = error if error.errno else NoAnswer(self._too_late)
            except OSError as error:
                failed = error
        raise failed or _nowhere(dialled)

    async def _addresses(self, origin: Origin) -> list[AddressInfo]:
        """The addresses of a host in the order of the answer; a literal is not asked for."""
        if _is_literal(origin.host):
            return [_info(origin.host, origin.port)]
        try:
            found = await self._resolver.resolve(origin.host, origin.port)
        except (OSError, UnicodeError):
            return []
        return [_info(each["host"], origin.port) for each in found]

    async def _connect(self, made: socket.socket, info: AddressInfo, origin: Origin) -> Connection:
        loop = asyncio.get_running_loop()
        where = info[-1]
        try:
            await loop.sock_connect(made, where)
        except BaseException:
            made.close()
            raise
        is_tls = origin.scheme == "https"
        _, connection = await loop.create_connection(
            partial(Connection, where[0]),
            sock=made,
            ssl=self._trust if is_tls else None,
            server_hostname=origin.host.rstrip(".") if is_tls else None,
        )
        return connection


def _nowhere(dialled: Dialled) -> NoAnswer:
    """Why nothing was dialled."""
    if not dialled.refused:
        return NoAnswer("dns: the host's name is not known")
    listed = ", ".join(dict.fromkeys(dialled.refused))
    return NoAnswer(f"blocked_address: {listed} may not be dialled")


def _is_literal(host: str) -> bool:
    try:
        return bool(ip_address(host))
    except ValueError:
        return False


def _info(address: str, port: int) -> AddressInfo:
    """An address as the system's functions give and take it."""
    if ":" in address:
        return (socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port, 0, 0))
    return (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port))


@cache
def _system_trust() -> ssl.SSLContext:
    """What the system trusts, for TLS 1.2 or newer; it takes a while to read."""
    trust = ssl.create_default_context()
    trust.minimum_version = ssl.TLSVersion.TLSv1_2
    trust.set_alpn_protocols(["http/1.1"])
    return trust
