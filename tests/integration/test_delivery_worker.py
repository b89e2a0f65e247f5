"""The worker of deliveries: how many lanes it sends to at once, and what it does meanwhile."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.fakes.lanes import A, B, Lanes, play

from ploti.server.deliver.answers import Answer
from ploti.server.worker.deliveries import SLOTS, DeliveryWorker

MORE = 6


class Patient:
    """A poster whose receivers answer when they may; counts those that are to."""

    def __init__(self) -> None:
        self.may = asyncio.Event()
        self.waiting = self.sent = 0

    async def post(self, url: str, *, body: bytes, headers: Any) -> Answer:
        self.sent += 1
        self.waiting += 1
        await self.may.wait()
        self.waiting -= 1
        return Answer(ms=1, status=200)

    async def refuse(self, url: str) -> str | None:
        return None


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110  a poster tells nobody
            await asyncio.sleep(0.005)


@asynccontextmanager
async def working(lanes: Lanes) -> AsyncIterator[DeliveryWorker]:
    worker = DeliveryWorker(lanes.parts)
    task = asyncio.create_task(worker.run())
    yield worker
    task.cancel()
    await worker.finish()


async def hook_all(lanes: Lanes) -> None:
    subscription = await lanes.subscribe(A)
    for number in range(SLOTS + MORE):
        await lanes.hook(f"https://receiver.example/{number}", subscription)
    await lanes.release(A)


def test_no_more_lanes_are_sent_to_at_once_than_there_are_slots(tmp_path: Path) -> None:
    poster = Patient()

    async def story(lanes: Lanes) -> None:
        await hook_all(lanes)
        async with working(lanes):
            await until(lambda: poster.waiting == SLOTS)
            await asyncio.sleep(0.05)
            assert poster.sent == SLOTS
            assert b"ploti_delivery_slots_in_use 64.0" in await metrics(lanes)
            poster.may.set()
            await until(lambda: poster.sent == SLOTS + MORE)
        assert b"ploti_delivery_slots_in_use 0.0" in await metrics(lanes)
        assert {row.state for row in await lanes.rows()} == {"delivered"}

    play(tmp_path, story, poster=poster)


def test_while_outcomes_are_recorded_the_next_lanes_are_sent_to(tmp_path: Path) -> None:
    poster, recorded = Patient(), threading.Event()

    async def story(lanes: Lanes) -> None:
        await hook_all(lanes)
        async with working(lanes):
            await until(lambda: poster.waiting == SLOTS)
            busy = asyncio.create_task(lanes.store.write(lambda _: recorded.wait()))
            poster.may.set()
            try:
                await until(lambda: poster.sent == SLOTS + MORE)
                assert await lanes.rows() == []
            finally:
                recorded.set()
            await busy
        assert len(await lanes.rows()) == SLOTS + MORE

    play(tmp_path, story, poster=poster)


async def metrics(lanes: Lanes) -> bytes:
    now = lanes.clock.now()
    measures = await lanes.store.read(lambda tx: tx.overview.measures(now=now))
    return lanes.parts.meters.text(measures, now=now)


class Holding(Patient):
    """A patient one whose receivers take long over one dataset, and answer that at once."""

    async def post(self, url: str, *, body: bytes, headers: Any) -> Answer:
        if f'"{A}"'.encode() in body:
            self.sent += 1
            return Answer(ms=9_000, status=200)
        return await super().post(url, body=body, headers=headers)


def test_an_attempt_that_waits_for_another_dataset_begins_when_that_is_over(
    tmp_path: Path,
) -> None:
    poster = Holding()

    async def story(lanes: Lanes) -> None:
        hook = await lanes.hook("https://receiver.example/", await lanes.subscribe(A, B))
        await lanes.release(B, A, A)
        turn = asyncio.create_task(lanes.turn())
        await until(lambda: poster.sent == 2)
        lanes.clock.forward(seconds=3)
        poster.may.set()
        await turn
        began = [each.attempts[0].started_at for each in await lanes.deliveries(hook.id)]
        assert [(at - began[0]).total_seconds() for at in began] == [0, 0, 3]

    play(tmp_path, story, poster=poster)
