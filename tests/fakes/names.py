"""A resolver that answers as a test says."""

from __future__ import annotations

import ipaddress
import socket

from aiohttp.abc import AbstractResolver, ResolveResult


class Names(AbstractResolver):
    """Answers a name with one list of addresses after another, the last again and again."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0
        self.hosts: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        self.hosts.append(host)
        return [
            ResolveResult(
                hostname=host, host=each, port=port, family=_family(each), proto=0, flags=0
            )
            for each in answer
        ]

    async def close(self) -> None:
        """Nothing is held."""


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET if ipaddress.ip_address(address).version == 4 else socket.AF_INET6
