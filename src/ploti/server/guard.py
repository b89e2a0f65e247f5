"""Where a connection may go: every address is judged as the socket to it is made."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from ploti.server.sources.addresses import is_allowed, is_opened

AddressInfo = tuple[Any, ...]


class NotAllowed(OSError):
    """An address that may not be dialled."""


class Dialled:
    """The addresses that one request dialled, and those that it was about to dial and may not."""

    def __init__(self) -> None:
        self.addresses: list[str] = []
        self.refused: list[str] = []


def judge(scheme: str, address: str, *, allow: Sequence[str]) -> bool:
    """Whether an address may be dialled by this scheme: plain http needs an opened network."""
    return (is_opened if scheme == "http" else is_allowed)(address, allow=allow)


def guarded_sockets(
    scheme: str, *, allow: Sequence[str], dialled: Dialled
) -> Callable[[AddressInfo], socket.socket]:
    """A factory of sockets for allowed addresses alone.

    Nothing lies between the judgement and the connection: what a name meant before is no matter.
    It raises NotAllowed for another address, an OSError, so that the next one of the name is tried.
    """

    def make(info: AddressInfo) -> socket.socket:
        family, kind, protocol, _, (host, *_) = info
        if not judge(scheme, str(host), allow=allow):
            dialled.refused.append(str(host))
            raise NotAllowed(f"{host} may not be dialled")
        dialled.addresses.append(str(host))
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        return made

    return make


class ThreadResolver(AbstractResolver):
    """Asks the system for a name's addresses, in threads of its own."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """All addresses of a name; raises OSError where it has none."""
        found = await asyncio.get_running_loop().run_in_executor(
            self._threads,
            lambda: socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM),
        )
        return [
            ResolveResult(
                hostname=host,
                host=str(address[0]),
                port=port,
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        """Nothing is held: the threads are their owner's."""
