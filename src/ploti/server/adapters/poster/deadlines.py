"""A time limit that is set for each POST and hardly ever met: all share one timer of the loop."""

from __future__ import annotations

import asyncio
from types import TracebackType


class Deadlines:
    """Time limits of one length, which end in the order in which they began.

    Each is as `asyncio.timeout`, with a timer of its own, would be; that costs four times as much.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends: dict[_Deadline, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def one(self) -> _Deadline:
        """Raise TimeoutError where what is done within takes longer."""
        return _Deadline(self)

    def begin(self, deadline: _Deadline) -> None:
        """Have a deadline end in time."""
        loop = asyncio.get_running_loop()
        self._ends[deadline] = loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._look)

    def end(self, deadline: _Deadline) -> None:
        """Forget a deadline that was kept; one that was not is forgotten."""
        self._ends.pop(deadline, None)
        if not self._ends and self._timer:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for deadline, end in [*self._ends.items()]:
            if end > now:
                self._timer = loop.call_at(end, self._look)
                return
            del self._ends[deadline]
            deadline.expire()
        self._timer = None


class _Deadline:
    """One of them, for the task that enters it."""

    __slots__ = ("_cancelling", "_deadlines", "_is_expired", "_task")

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._is_expired = False

    async def __aenter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline is a task's")
        self._task, self._cancelling = task, task.cancelling()
        self._deadlines.begin(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._deadlines.end(self)
        is_own = self._is_expired and self._task.uncancel() <= self._cancelling
        if is_own and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def expire(self) -> None:
        """Call off what the task does."""
        self._is_expired = True
        self._task.cancel()
