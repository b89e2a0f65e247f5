"""A body that keeps coming is waited for, one that does not is called off."""

import asyncio

import pytest

from ploti.errors import TooSlow
from ploti.server.api import patience
from ploti.server.api.patience import Patience


async def never() -> bytes:
    await asyncio.Event().wait()
    raise AssertionError


async def at_once() -> bytes:
    return b"x"


def test_what_does_not_come_is_called_off_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "AT_FIRST", 0.01)
    with pytest.raises(TooSlow, match="at least 16 KiB a second"):
        asyncio.run(Patience().wait(never))


def test_what_came_earns_time_for_what_is_to_come_up_to_a_limit() -> None:
    waiting = Patience()
    waiting.earn(5 * patience.SLOWEST)
    assert waiting.left == patience.AT_FIRST + 5
    waiting.earn(1 << 30)
    assert waiting.left == patience.LONGEST


def test_time_is_used_up_whatever_comes_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that drips is called off although each wait is short."""

    async def drip() -> None:
        waiting = Patience()
        for _ in range(1_000):
            await waiting.wait(lambda: asyncio.sleep(0.001))
            waiting.earn(1)

    monkeypatch.setattr(patience, "AT_FIRST", 0.05)
    with pytest.raises(TooSlow):
        asyncio.run(drip())


def test_a_byte_that_is_there_costs_no_patience() -> None:
    waiting = Patience()
    assert asyncio.run(waiting.wait(at_once)) == b"x"
    assert waiting.left > patience.AT_FIRST - 1
