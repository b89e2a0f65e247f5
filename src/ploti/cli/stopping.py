"""SIGTERM and Ctrl-C end a command between two steps, and at once where a step takes too long."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ploti.client.alarm import Alarm, Stopped

GRACE = 8.0
"""Seconds that what goes on may take to come to the end of its step."""

_AGAIN = 0.5
"""Seconds until what goes on is told once more."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stopped_by_signals(alarm: Alarm, *, grace: float = GRACE) -> Iterator[None]:
    """SIGTERM and Ctrl-C stop the alarm; a block that lets Stopped through ends the process.

    Nothing is raised by the signal itself: an exception that breaks out at any line may be
    swallowed on its way, by a callback, `__del__`, or a database in the middle of a query. Where a
    step outlasts the grace, or Ctrl-C comes twice, the process ends as by `kill -9`, which a
    destination must bear at any moment. The exit status is 128 and the signal's number.
    """
    watch = _Watch(alarm, grace)
    try:
        yield
    except Stopped:
        sys.exit(128 + watch.number)
    finally:
        watch.end()


@contextmanager
def stopped_while_waiting() -> Iterator[None]:
    """SIGTERM ends a block that only waits for others by Stopped, Ctrl-C by KeyboardInterrupt.

    What fails once a signal came fails because of it: Ctrl-C reaches those that are waited for too.
    A second SIGTERM must not break the way out. The exit status is 128 and the signal's number.
    """
    came: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        if number in came and number == signal.SIGTERM:
            return
        came.append(number)
        raise KeyboardInterrupt if number == signal.SIGINT else Stopped

    before = {each: signal.signal(each, stop) for each in _SIGNALS}
    try:
        yield
    except BaseException:
        if not came:
            raise
        sys.exit(128 + came[0])
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class _Watch:
    """A thread that reads the numbers of signals, which the interpreter writes as they come."""

    def __init__(self, alarm: Alarm, grace: float) -> None:
        self.number = 0
        self._alarm = alarm
        self._grace = grace
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._wakeup = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        self._handlers = {each: signal.signal(each, lambda *_: None) for each in _SIGNALS}
        self._thread = threading.Thread(target=self._watch, daemon=True, name="signals")
        self._thread.start()

    def end(self) -> None:
        """Leave the signals to whom they were before."""
        for each, handler in self._handlers.items():
            signal.signal(each, handler)
        signal.set_wakeup_fd(self._wakeup)
        os.close(self._writing)
        self._thread.join()
        os.close(self._reading)

    def _watch(self) -> None:
        while number := self._read(None):
            if number in _SIGNALS:
                self._stop(number)
                return

    def _stop(self, number: int) -> None:
        """Stop the alarm again and again: what it breaks off may begin a moment later."""
        self.number = number
        give_up, again = time.monotonic() + self._grace, None
        while again != signal.SIGINT and time.monotonic() < give_up:
            self._alarm.stop()
            again = self._read(min(self._grace, _AGAIN))
            if again == 0:
                return
        os._exit(128 + number)

    def _read(self, seconds: float | None) -> int | None:
        """The number that is written next: 0 at the end, None where none comes in time."""
        ready, _, _ = select.select([self._reading], [], [], seconds)
        if not ready:
            return None
        return int.from_bytes(os.read(self._reading, 1))
