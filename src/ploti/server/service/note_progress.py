"""What a long fetch or build tells of itself, kept where staff can read it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from ploti.model.admin import BuildProgress
from ploti.server.build.progress import Tell
from ploti.server.ports.rows import AttemptRow
from ploti.server.ports.store import Store

_EVERY = 1.0
"""Seconds between two notes; what is over before the first leaves none."""


@asynccontextmanager
async def noting(store: Store, attempt: AttemptRow) -> AsyncIterator[Tell]:
    """While the context is open, the last word told stands with the attempt a second later."""
    news: list[BuildProgress] = []
    over = asyncio.Event()
    task = asyncio.create_task(_note(store, attempt, news, over))
    try:
        yield news.append
    finally:
        over.set()
        await task


async def _note(
    store: Store, attempt: AttemptRow, news: list[BuildProgress], over: asyncio.Event
) -> None:
    while not over.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), _EVERY)
            return
        if news:
            last = news[-1]
            news.clear()
            await store.write(lambda tx: tx.builds.note(attempt.id, last))  # noqa: B023 - at once
