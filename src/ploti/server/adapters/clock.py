"""The wall clock, and the one of tests that a file moves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from ploti.model.wire import Instant


class SystemClock:
    """The machine's clock, in whole milliseconds, as times are stored and sent."""

    def now(self) -> Instant:
        """This moment, in UTC."""
        moment = datetime.now(UTC)
        return Instant.of(moment.replace(microsecond=moment.microsecond // 1000 * 1000))


class ShiftedClock:
    """A clock for tests: ahead of another by the seconds that a file holds at each look."""

    def __init__(self, clock: SystemClock, file: Path) -> None:
        self._clock = clock
        self._file = file

    def now(self) -> Instant:
        """The other clock's moment and the file's seconds; ValueError where it holds no number."""
        seconds = float(self._file.read_text(encoding="utf-8"))
        return Instant.of(self._clock.now() + timedelta(seconds=seconds))
