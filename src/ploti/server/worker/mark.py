"""Writes down how far numbers were given: soon after each event, once a second at most."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from ploti.server.ports.outside import Given, Mark
from ploti.server.ports.store import Store

_LOG = structlog.get_logger()

_PAUSE = 1.0


@asynccontextmanager
async def keeping_mark(mark: Mark, store: Store) -> AsyncIterator[None]:
    """Keep the mark while the context is open, and once more at its end."""
    keeper = _Keeper(mark, store)
    task = asyncio.create_task(keeper.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        await keeper.keep()


class _Keeper:
    def __init__(self, mark: Mark, store: Store) -> None:
        self._mark = mark
        self._store = store
        self._kept = mark.read().number
        self._bell = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        store.on_log(self.ring)

    def ring(self) -> None:
        self._loop.call_soon_threadsafe(self._bell.set)

    async def run(self) -> None:
        while True:
            self._bell.clear()
            await self.keep()
            await asyncio.sleep(_PAUSE)
            await self._bell.wait()

    async def keep(self) -> None:
        """A mark that cannot be written is told, and serving goes on."""
        try:
            number = await self._store.read(lambda tx: tx.recovery.given())
            if number > self._kept:
                await self._mark.write(Given(number=number))
                self._kept = number
        except Exception:  # noqa: BLE001 - the next event tries again
            _LOG.exception("how far numbers were given cannot be written down")
