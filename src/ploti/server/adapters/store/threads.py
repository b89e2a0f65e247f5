"""Threads that do blocking work for an event loop, at a third of what an executor costs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

_Task = tuple[asyncio.AbstractEventLoop, asyncio.Future[Any], Callable[[], Any]]


class Threads:
    """A fixed number of threads; work waits its turn for one that is free.

    Nothing of concurrent.futures lies between the thread and the loop: that doubles the cost of
    reading a row.
    """

    def __init__(self, count: int, *, name: str) -> None:
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._serve, name=f"{name}_{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    async def run(self, work: Callable[[], T]) -> T:
        """What work gives, or raises; called off before its turn came, it is not done."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._tasks.put((loop, future, work))
        return await future

    def shutdown(self) -> None:
        """Do what waits, and end the threads."""
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        while (task := self._tasks.get()) is not None:
            _do(*task)
            del task  # whatever it holds is not to live until the next one comes


def _do(loop: asyncio.AbstractEventLoop, future: asyncio.Future[T], work: Callable[[], T]) -> None:
    if future.cancelled():
        return
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001  it is the caller's, whatever it is
        _tell(loop, future, partial(future.set_exception, error))
    else:
        _tell(loop, future, partial(future.set_result, result))


def _tell(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[T], end: Callable[[], object]
) -> None:
    """End the future in its loop, unless it was called off or the loop is no more."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(lambda: None if future.done() else end())
