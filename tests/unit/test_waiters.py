"""Requests that wait: woken only when they are behind, and never past an event."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

import pytest

from ploti.errors import RateLimited
from ploti.model.ids import KeyId, SubscriptionId
from ploti.server.api.waiters import Waiters

T = TypeVar("T")
A, B = SubscriptionId("sub_a"), SubscriptionId("sub_b")
KEY = KeyId("key_1")


class Logs:
    """Logs that grow by a word of the test, and count how often they are asked."""

    def __init__(self) -> None:
        self.last = {A: 0, B: 0}
        self.asked: list[set[SubscriptionId]] = []
        self.broken = False
        self.answering = asyncio.Event()
        self.answering.set()

    async def last_numbers(self, ids: Collection[SubscriptionId]) -> dict[SubscriptionId, int]:
        self.asked.append(set(ids))
        await self.answering.wait()
        if self.broken:
            raise OSError("no database")
        return {one: self.last[one] for one in ids if one in self.last}


def run(story: Callable[[Logs, Waiters], Awaitable[T]], *, most: int = 8) -> T:
    async def main() -> T:
        logs = Logs()
        return await story(logs, Waiters(logs.last_numbers, most=most))

    return asyncio.run(main())


async def never() -> None:
    await asyncio.Event().wait()


async def wait_on(waiters: Waiters, log: SubscriptionId, *, after: int, within: float = 5) -> bool:
    with waiters.place(log, key=KEY) as place:
        place.after = after
        return await waiters.rung(place, within=within, unless=never)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_bell_wakes_those_behind_and_only_them() -> None:
    async def story(logs: Logs, waiters: Waiters) -> tuple[bool, bool]:
        behind = asyncio.create_task(wait_on(waiters, A, after=0))
        level = asyncio.create_task(wait_on(waiters, B, after=0))
        await settle()
        logs.last[A] = 1
        waiters.ring()
        woken = await behind
        still = not level.done()
        level.cancel()
        return woken, still

    assert run(story) == (True, True)


def test_all_that_wait_are_asked_for_at_once() -> None:
    async def story(logs: Logs, waiters: Waiters) -> list[set[SubscriptionId]]:
        waits = [asyncio.create_task(wait_on(waiters, log, after=0)) for log in (A, A, B)]
        await settle()
        logs.last = {A: 1, B: 1}
        waiters.ring()
        await asyncio.gather(*waits)
        return logs.asked

    assert run(story) == [{A, B}]


def test_bells_that_ring_while_it_asks_lead_to_one_more_question() -> None:
    async def story(logs: Logs, waiters: Waiters) -> int:
        wait = asyncio.create_task(wait_on(waiters, A, after=0))
        await settle()
        logs.answering.clear()
        for _ in range(50):
            waiters.ring()
            await settle()
        logs.answering.set()
        await settle()
        wait.cancel()
        return len(logs.asked)

    assert run(story) == 2


def test_an_event_between_taking_the_place_and_reading_is_not_missed() -> None:
    async def story(logs: Logs, waiters: Waiters) -> bool:
        with waiters.place(A, key=KEY) as place:
            logs.last[A] = 1
            waiters.ring()
            await settle()
            place.after = 0  # what was read was older than the event
            return await waiters.rung(place, within=5, unless=never)

    assert run(story)


def test_the_bell_may_be_rung_in_another_thread() -> None:
    async def story(logs: Logs, waiters: Waiters) -> bool:
        wait = asyncio.create_task(wait_on(waiters, A, after=0))
        await settle()
        logs.last[A] = 1
        await asyncio.to_thread(waiters.ring)
        return await wait

    assert run(story)


def test_time_that_is_up_is_no_bell() -> None:
    assert not run(lambda _, waiters: wait_on(waiters, A, after=0, within=0.01))
    assert not run(lambda _, waiters: wait_on(waiters, A, after=0, within=0))


def test_a_wait_ends_when_its_client_goes_away() -> None:
    async def story(_: Logs, waiters: Waiters) -> bool:
        with waiters.place(A, key=KEY) as place:
            place.after = 0
            return await waiters.rung(place, within=60, unless=settle)

    assert not run(story)


def test_a_log_that_is_gone_wakes_those_that_wait_on_it() -> None:
    async def story(logs: Logs, waiters: Waiters) -> bool:
        wait = asyncio.create_task(wait_on(waiters, A, after=0))
        await settle()
        del logs.last[A]
        waiters.ring()
        return await wait

    assert run(story)


def test_where_the_logs_cannot_be_asked_all_look_themselves() -> None:
    async def story(logs: Logs, waiters: Waiters) -> bool:
        wait = asyncio.create_task(wait_on(waiters, A, after=0))
        await settle()
        logs.broken = True
        waiters.ring()
        return await wait

    assert run(story)


def test_closing_lets_everybody_go_and_nobody_waits_afterwards() -> None:
    async def story(_: Logs, waiters: Waiters) -> tuple[bool, bool]:
        wait = asyncio.create_task(wait_on(waiters, A, after=0, within=60))
        await settle()
        waiters.close()
        return await wait, await wait_on(waiters, A, after=0, within=60)

    assert run(story) == (False, False)


def test_a_key_has_only_so_many_waits_and_gets_each_back() -> None:
    async def story(_: Logs, waiters: Waiters) -> float | None:
        with waiters.place(A, key=KEY), waiters.place(B, key=KEY):
            with waiters.place(A, key=KeyId("key_2")):
                pass
            with pytest.raises(RateLimited, match="2 requests") as refused:
                waiters.place(A, key=KEY).__enter__()
        with waiters.place(A, key=KEY), waiters.place(A, key=KEY):
            return refused.value.retry_after

    assert run(story, most=2) == 1
