"""The alarm: rung and stopped from any thread, heard by waits and by calls under way."""

from __future__ import annotations

import threading
from collections.abc import Callable

import anyio
import pytest

from ploti.client.alarm import Alarm, CutShort, Stopped, unless
from ploti.client.sides import BlockingSide
from ploti.client.transport import Transport


def beside(what: Callable[[], object]) -> None:
    threading.Thread(target=what, daemon=True).start()


@pytest.fixture
def side() -> BlockingSide:
    return BlockingSide("ploti_key", url="http://127.0.0.1:9")


def test_a_ring_ends_a_wait_and_is_forgotten_then() -> None:
    alarm = Alarm()
    beside(alarm.ring)
    alarm.sleep(600)
    alarm.sleep(0.01)


def test_a_ring_before_the_wait_ends_it_at_once() -> None:
    alarm = Alarm()
    alarm.ring()
    alarm.sleep(600)


def test_once_stopped_every_wait_ends_by_it() -> None:
    alarm = Alarm()
    beside(alarm.stop)
    for _ in range(2):
        with pytest.raises(Stopped):
            alarm.sleep(600)
    assert alarm.stopped
    with pytest.raises(Stopped):
        alarm.check()


@pytest.mark.parametrize("rings", [True, False])
def test_what_is_under_way_is_cut_where_it_is_stopped(side: BlockingSide, *, rings: bool) -> None:
    alarm = Alarm()

    async def job(_transport: Transport) -> None:
        beside(alarm.stop)
        await anyio.sleep_forever()

    with pytest.raises(CutShort):
        side.run(unless, job, alarm, rings=rings)
    with pytest.raises(CutShort):
        side.run(unless, job, alarm, rings=rings)
    side.close()


def test_a_ring_cuts_only_what_waits_for_news(side: BlockingSide) -> None:
    alarm = Alarm()

    async def waiting(_transport: Transport) -> None:
        beside(alarm.ring)
        await anyio.sleep_forever()

    async def working(_transport: Transport) -> str:
        alarm.ring()
        return "done"

    with pytest.raises(CutShort):
        side.run(unless, waiting, alarm, rings=True)
    assert side.run(unless, working, alarm) == "done"
    with pytest.raises(CutShort):
        side.run(unless, waiting, alarm, rings=True)
    side.close()
