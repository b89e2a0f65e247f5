"""Wakes who waits for news, from any thread, or ends what goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import anyio

from ploti.client.transport import Transport

T = TypeVar("T")


class Stopped(BaseException):
    """What went on was asked to end; no error, so that nothing takes it for one."""


class CutShort(Exception):
    """The alarm went off before the answer was there."""


class Alarm:
    """Something to ring, more than once, and to stop, for good; safe from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._hearers: dict[Callable[[], object], bool] = {}
        self._rung = False
        self._stopped = False

    @property
    def stopped(self) -> bool:
        """Whether it was stopped."""
        return self._stopped

    def ring(self) -> None:
        """Something may be new: who waits, or waits next, looks at once."""
        with self._changed:
            self._rung = True
            self._tell(stopped=False)

    def stop(self) -> None:
        """End whatever goes on."""
        with self._changed:
            self._stopped = True
            self._tell(stopped=True)

    def check(self) -> None:
        """Raise Stopped once it was stopped."""
        if self._stopped:
            raise Stopped

    def sleep(self, seconds: float) -> None:
        """Wait, unless it goes off; raises Stopped once it was stopped."""
        with self._changed:
            self._changed.wait_for(lambda: self._rung or self._stopped, seconds)
            self._rung = False
        self.check()

    def pause(self, seconds: float) -> None:
        """Wait, whatever rings; raises Stopped once it was stopped."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped, seconds)
        self.check()

    @contextmanager
    def heard_by(self, hearer: Callable[[], object], *, rings: bool) -> Iterator[None]:
        """Call `hearer` when it is stopped, and with `rings` when it rings or rang before."""
        with self._changed:
            self._hearers[hearer] = rings
            if self._stopped or (rings and self._rung):
                hearer()
        try:
            yield
        finally:
            with self._changed:
                del self._hearers[hearer]
                self._rung = self._rung and not rings

    def _tell(self, *, stopped: bool) -> None:
        self._changed.notify_all()
        for hearer, rings in self._hearers.items():
            if stopped or rings:
                hearer()


async def unless(
    transport: Transport,
    job: Callable[[Transport], Awaitable[T]],
    alarm: Alarm,
    *,
    rings: bool = False,
) -> T:
    """Do a job; raises CutShort where the alarm is stopped, or with `rings` rings, before."""
    loop = asyncio.get_running_loop()
    with (
        anyio.CancelScope() as scope,
        alarm.heard_by(lambda: loop.call_soon_threadsafe(scope.cancel), rings=rings),
    ):
        return await job(transport)
    raise CutShort
