"""Keeps when keys were used last, once a minute and at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from ploti.server.ports.store import Store
from ploti.server.service.note_use import KeyUses

_EVERY = 60.0

_log = structlog.get_logger("uses")


@asynccontextmanager
async def keeping_uses(
    uses: KeyUses, store: Store, *, every: float = _EVERY
) -> AsyncIterator[None]:
    """Keep the uses while the context is open, `every` so many seconds, and once as it closes."""
    task = asyncio.create_task(_keep_for_ever(uses, store, every))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        await uses.keep(store)


async def _keep_for_ever(uses: KeyUses, store: Store, every: float) -> None:
    while True:
        await asyncio.sleep(every)
        try:
            await uses.keep(store)
        except Exception:  # noqa: BLE001  the next minute's is kept all the same
            _log.exception("the last uses of keys could not be kept")
