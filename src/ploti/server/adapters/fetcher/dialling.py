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


class Refusals:
    """The addresses that one request was about to dial and may not."""

    def __init__(self) -> None:
        self.addresses: list[str] = []


def guarded_sockets(
    scheme: str, *, allow: Sequence[str], refusals: Refusals
) -> Callable[[AddressInfo], socket.socket]:
    """A factory of sockets for allowed addresses alone; plain http needs an opened network.

    Nothing lies between the judgement and the connection: what a name meant before is no matter.
    It raises OSError for another address, so that the next one of the name is tried.
    """
    judge = is_opened if scheme == "http" else is_allowed

    def make(info: AddressInfo) -> socket.socket:
        family, kind, protocol, _, address = info
        if not judge(str(address[0]), allow=allow):
            refusals.addresses.append(str(address[0]))
            raise OSError(f"{address[0]} may not be dialled")
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
