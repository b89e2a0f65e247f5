"""Deadlines that share a timer end as those of the standard library, each in its own time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from ploti.server.adapters.poster.deadlines import Deadlines

Run = Callable[[Coroutine[Any, Any, None]], None]
SHORT, LONG = 0.03, 60.0


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Any:
    """The standard library's event loop, and the server's."""
    return request.param


async def forever() -> None:
    await asyncio.Event().wait()


async def break_down() -> None:
    """Fail when called off."""
    try:
        await forever()
    except asyncio.CancelledError:
        raise KeyError from None


def test_what_takes_longer_is_called_off_and_what_does_not_goes_on(run: Run) -> None:
    async def work() -> None:
        deadlines = Deadlines(SHORT)
        for _ in range(2):
            async with deadlines.one():
                await asyncio.sleep(0)
            with pytest.raises(TimeoutError):
                async with deadlines.one():
                    await forever()
        await asyncio.sleep(2 * SHORT)

    run(work())
    run(work())


def test_each_has_its_own_time_and_none_ends_for_another(run: Run) -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        deadlines = Deadlines(SHORT)
        ended: list[int] = []

        async def one(number: int) -> None:
            began = loop.time()
            with pytest.raises(TimeoutError):
                async with deadlines.one():
                    await forever()
            assert loop.time() - began >= SHORT - 0.002  # uvloop's clock goes by milliseconds
            ended.append(number)

        for others in (0, 1):
            ended.clear()
            async with asyncio.TaskGroup() as group:
                for number in range(5):
                    group.create_task(one(number))
                    await asyncio.sleep(SHORT / 8)
                    for _ in range(others):
                        async with deadlines.one():
                            await asyncio.sleep(0)
            assert ended == [*range(5)]

    run(work())


def test_the_same_deadlines_serve_one_event_loop_after_another(run: Run) -> None:
    deadlines = Deadlines(SHORT)

    async def kept() -> None:
        async with deadlines.one():
            await asyncio.sleep(0)

    async def missed() -> None:
        with pytest.raises(TimeoutError):
            async with deadlines.one():
                await forever()

    for work in (kept, missed, kept, missed):
        run(work())


def test_who_is_called_off_by_another_learns_just_that(run: Run) -> None:
    async def work() -> None:
        deadlines = Deadlines(LONG)

        async def one() -> None:
            async with deadlines.one():
                await forever()

        task = asyncio.ensure_future(one())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(SHORT), deadlines.one():
                await forever()

    run(work())


def test_who_is_called_off_by_both_is_called_off(run: Run) -> None:
    async def work() -> None:
        deadlines = Deadlines(SHORT)

        async def one() -> None:
            async with deadlines.one():
                try:
                    await forever()
                except asyncio.CancelledError:
                    task.cancel()
                    raise

        task = asyncio.ensure_future(one())
        with pytest.raises(asyncio.CancelledError):
            await task

    run(work())


def test_another_error_is_told_as_it_is(run: Run) -> None:
    async def work() -> None:
        with pytest.raises(KeyError):
            async with Deadlines(LONG).one():
                raise KeyError
        with pytest.raises(KeyError):
            async with Deadlines(SHORT).one():
                await break_down()

    run(work())
