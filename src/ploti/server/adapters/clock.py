"""The wall clock, and the one of tests that a file moves."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
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
        self._file = file
        try:
            self._shift = self._read()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise ConfigError(f"PLOTI_TEST_CLOCK: {file}: {reason}") from None

    def now(self) -> Instant:
        """The other clock's moment and the file's seconds."""
        with suppress(OSError, ValueError):
            self._shift = self._read()
        return Instant.of(self._clock.now() + self._shift)

    def _read(self) -> timedelta:
        with self._file.open(encoding="utf-8") as file:
            text = file.read(_LONGEST).strip()
        seconds = float(text)
        if not abs(seconds) <= _FARTHEST:
            raise ValueError(f"'{text}' is no number of seconds within a hundred years")
        return timedelta(seconds=seconds)


_MILLISECOND = timedelta(milliseconds=1)
_LONGEST = 80
_FARTHEST = 100 * 365 * 86_400.0
