"""How long a request's body is waited for: a little, and longer the more of it has come."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ploti.errors import TooSlow

T = TypeVar("T")

AT_FIRST = 10.0
"""Seconds that a body may keep the server waiting, all told, before any of it came."""

LONGEST = 30.0
"""Seconds without a byte, however much has come."""

SLOWEST = 16 << 10
"""Bytes that are worth another second of waiting: who keeps this pace is never called off."""


class Patience:
    """Counts only the time in which the server waits: its own work is not held against a client."""

    def __init__(self) -> None:
        self.left = AT_FIRST
        """Seconds that are left of it."""

    async def wait(self, receive: Callable[[], Awaitable[T]]) -> T:
        """What is received in time; raises TooSlow where nothing is."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self.left):
                received = await receive()
        except TimeoutError:
            raise TooSlow(
                f"The body came too slowly: send at least {SLOWEST >> 10} KiB a second, "
                f"and never nothing for {AT_FIRST:.0f} seconds"
            ) from None
        self.left -= loop.time() - began
        return received

    def earn(self, size: int) -> None:
        """Wait longer for what is to come after so many bytes."""
        self.left = min(LONGEST, self.left + size / SLOWEST)
