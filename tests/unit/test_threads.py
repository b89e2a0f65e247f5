"""Threads that work for an event loop: results, errors, calling off and the end."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from ploti.server.adapters.store.threads import Threads

T = TypeVar("T")


def run(story: Callable[[Threads], Coroutine[Any, Any, T]], *, count: int = 1) -> T:
    threads = Threads(count, name="t")
    try:
        return asyncio.run(story(threads))
    finally:
        threads.shutdown()


def test_what_work_gives_or_raises_comes_back() -> None:
    async def story(threads: Threads) -> str:
        with pytest.raises(ZeroDivisionError):
            await threads.run(lambda: 1 // 0)
        return await threads.run(lambda: threading.current_thread().name)

    assert run(story) == "t_0"


def test_work_is_done_side_by_side_in_as_many_threads_as_there_are() -> None:
    met = threading.Barrier(3, timeout=60)

    async def story(threads: Threads) -> list[int]:
        return await asyncio.gather(*(threads.run(met.wait) for _ in range(3)))

    assert sorted(run(story, count=3)) == [0, 1, 2]


def test_work_that_is_called_off_before_its_turn_is_not_done() -> None:
    done, go = [], threading.Event()

    async def story(threads: Threads) -> None:
        first = asyncio.ensure_future(threads.run(lambda: go.wait(60)))
        second = asyncio.ensure_future(threads.run(lambda: done.append(2)))
        await asyncio.sleep(0)  # both are in the queue
        second.cancel()
        go.set()
        assert await first
        await threads.run(lambda: done.append(3))

    run(story)
    assert done == [3]


def test_work_that_is_called_off_while_it_is_done_troubles_nobody() -> None:
    began, go = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        go.wait(60)

    async def story(threads: Threads) -> int:
        first = asyncio.ensure_future(threads.run(work))
        assert await asyncio.to_thread(began.wait, 60)
        first.cancel()
        go.set()
        return await threads.run(lambda: 4)

    assert run(story) == 4
