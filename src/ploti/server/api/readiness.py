"""Whether the server can serve, tried out now and then, however often it is asked."""

from __future__ import annotations

import asyncio

import structlog

from ploti.errors import Unavailable
from ploti.server.api.backend import Backend

_LOG = structlog.get_logger()

FRESH_FOR = 5
"""Seconds that a finding is good for: anybody may ask, and trying writes a bit."""


class Readiness:
    """Tries the database and the data's folder; one try serves all that ask meanwhile."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._trying = asyncio.Lock()
        self._found: Exception | None = None
        self._good_until = float("-inf")

    async def check(self) -> None:
        """Raise Unavailable where the database or the folder fails."""
        loop = asyncio.get_running_loop()
        async with self._trying:
            if loop.time() >= self._good_until:
                self._found = await self._try()
                self._good_until = loop.time() + FRESH_FOR
        if self._found is not None:
            raise Unavailable(
                "The database cannot be read, or the data's folder not written to",
                retry_after=FRESH_FOR,
            )

    async def _try(self) -> Exception | None:
        try:
            await self._backend.store.read(lambda tx: tx.keys.is_set_up())
            await self._backend.blobs.try_out()
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing can be served
            _LOG.exception("cannot serve: the database or its folder fails")
            return error
        return None
