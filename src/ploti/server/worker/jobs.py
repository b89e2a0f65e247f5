"""Does the jobs that are due, many at once, each under a lease that lasts while it is done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import partial

import structlog

from ploti.errors import Unavailable
from ploti.model.wire import Instant
from ploti.server.ports.rows import JobKind, JobRow
from ploti.server.ports.store import Transaction
from ploti.server.service.check_source import Parts
from ploti.server.service.run_jobs import run_job

SLOTS = 64
"""Jobs at once: most of them wait for a source, and one that hangs takes one slot."""

LEASE = timedelta(seconds=60)
_RENEW_EVERY = 20
_RENEW_AGAIN = 2
"""Seconds after a renewal that failed: it must come before the lease runs out."""

_LOOK_EVERY = 0.5

_log = structlog.get_logger("jobs")


class Jobs:
    """Claims what is due and runs it, no job twice at a time; times are in seconds."""

    def __init__(self, parts: Parts, *, look_every: float = _LOOK_EVERY) -> None:
        self._parts = parts
        self._look_every = look_every
        self._running: dict[tuple[JobKind, str], asyncio.Task[None]] = {}
        self._loop = asyncio.get_running_loop()
        self._bell = asyncio.Event()

    def ring(self) -> None:
        """Say that something may have become due; may be called in any thread."""
        self._loop.call_soon_threadsafe(self._bell.set)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Do jobs while the context is open; what is under way at its end is called off."""
        loop = asyncio.create_task(self._look_for_ever())
        try:
            yield
        finally:
            tasks = [loop, *self._running.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def look(self) -> None:
        """Claim what is due and begin it."""
        free = SLOTS - len(self._running)
        if free <= 0 or not await self._is_any_due():
            return
        now, token = self._parts.clock.now(), self._parts.ids.token("lease_")
        claimed = await self._parts.store.write(
            lambda tx: tx.jobs.claim(now=now, until=_until(now), token=token, limit=free)
        )
        for job in claimed:
            place = (job.kind, job.subject)
            if place in self._running:
                continue  # its lease ran out while it is still done here, as a moved clock makes it
            task = asyncio.create_task(self._run(job))
            self._running[place] = task
            task.add_done_callback(partial(self._ended, place))

    async def finish(self) -> None:
        """Wait for what is under way."""
        await asyncio.gather(*self._running.values())

    async def _look_for_ever(self) -> None:
        while True:
            self._bell.clear()
            try:
                await self.look()
            except Exception:  # noqa: BLE001  one bad look must not end all that follow
                _log.exception("looking for jobs failed")
            with suppress(TimeoutError):
                async with asyncio.timeout(self._look_every):
                    await self._bell.wait()

    def _ended(self, place: tuple[JobKind, str], _: asyncio.Task[None]) -> None:
        del self._running[place]

    async def _is_any_due(self) -> bool:
        now = self._parts.clock.now()
        return await self._parts.store.read(lambda tx: tx.jobs.is_any_due(now=now))

    async def _run(self, job: JobRow) -> None:
        renewing = asyncio.create_task(self._renew(job))
        try:
            await run_job(self._parts, job)
        except Unavailable as error:  # no fault: as what caused it is told over HTTP
            _log.warning("a job waits", kind=job.kind, subject=job.subject, reason=error.detail)
        except Exception:  # noqa: BLE001  left to its lease, and done again
            _log.exception("a job failed", kind=job.kind, subject=job.subject)
        finally:
            renewing.cancel()

    async def _renew(self, job: JobRow) -> None:
        wait: float = _RENEW_EVERY
        while True:
            await asyncio.sleep(wait)
            until = _until(self._parts.clock.now())
            try:
                if not await self._parts.store.write(partial(_lengthen, job, until)):
                    return
                wait = _RENEW_EVERY
            except Exception:  # noqa: BLE001  the job goes on, and with it the need of its lease
                _log.exception("renewing a lease failed", kind=job.kind, subject=job.subject)
                wait = _RENEW_AGAIN


def _lengthen(job: JobRow, until: Instant, tx: Transaction) -> bool:
    return tx.jobs.renew(job, until=until)


def _until(now: Instant) -> Instant:
    return Instant.of(now + LEASE)
