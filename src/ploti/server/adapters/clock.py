"""The wall clock, and what tests move by a file: that clock, and the time that is waited."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, timedelta
from pathlib import Path

from ploti.errors import ConfigError
from ploti.model.wire import Instant
from ploti.server.ports.outside import Clock


class SystemClock:
    """The machine's clock, in whole milliseconds, as times are stored and sent."""

    def now(self) -> Instant:
        """This moment, in UTC."""
        return Instant.fromtimestamp(time.time_ns() // 1_000_000 / 1000, UTC)


class OffsetClock:
    """Another machine's clock, such as the database's: this one's and how far that is ahead."""

    def __init__(self, clock: SystemClock, *, offset: Callable[[], timedelta]) -> None:
        self._clock = clock
        self._offset = offset

    def now(self) -> Instant:
        """This machine's moment and the offset, in whole milliseconds."""
        moment, offset = self._clock.now(), self._offset()
        return moment + offset // _MILLISECOND * _MILLISECOND if offset else moment


class ShiftedClock:
    """A clock for tests: ahead of another by the seconds that a file holds at each look.

    Raises ConfigError where it holds no number at first; what is none later changes nothing.
    """

    def __init__(self, clock: Clock, file: Path) -> None:
        self._clock = clock
        self._shift = _Shift(file)

    def now(self) -> Instant:
        """The other clock's moment and the file's seconds."""
        return Instant.of(self._clock.now() + self._shift.read())


class ShiftedTimer:
    """The Timer port for tests: what the same file adds counts as time that was waited."""

    def __init__(self, file: Path) -> None:
        self._shift = _Shift(file)

    def time(self) -> float:
        """The event loop's seconds and the file's."""
        return asyncio.get_running_loop().time() + self._shift.read().total_seconds()

    @asynccontextmanager
    async def timeout(self, seconds: float) -> AsyncIterator[None]:
        """Raise TimeoutError where what is done within takes longer."""
        until = self.time() + seconds
        async with asyncio.timeout(None) as limit:
            looking = asyncio.create_task(self._end(limit, until))
            try:
                yield
            finally:
                looking.cancel()

    async def _end(self, limit: asyncio.Timeout, until: float) -> None:
        while self.time() < until:  # noqa: ASYNC110  nothing tells of a file that is written
            await asyncio.sleep(_LOOK)
        limit.reschedule(asyncio.get_running_loop().time())


class _Shift:
    """A number of seconds in a file, read anew at each look."""

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._last = self._look()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise ConfigError(f"PLOTI_TEST_CLOCK: {file}: {reason}") from None

    def read(self) -> timedelta:
        """What it holds, or held last."""
        with suppress(OSError, ValueError):
            self._last = self._look()
        return self._last

    def _look(self) -> timedelta:
        with self._file.open(encoding="utf-8") as file:
            text = file.read(_LONGEST).strip()
        seconds = float(text)
        if not abs(seconds) <= _FARTHEST:
            raise ValueError(f"'{text}' is no number of seconds within a hundred years")
        return timedelta(seconds=seconds)


_MILLISECOND = timedelta(milliseconds=1)
_LONGEST = 80
_FARTHEST = 100 * 365 * 86_400.0
_LOOK = 0.01
