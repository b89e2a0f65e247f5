"""Deliveries against a bare loop of POSTs, and how long good receivers wait beside slow ones.

`python -m tests.bench.bench_deliveries [ROUNDS]`. The bare loop sends the bodies that the worker
has sent, with their signatures, by aiohttp's session: as many at once as the worker has slots, over
connections that are kept. Both run in the event loop of the server, to a receiver in a process of
its own, in turn; of the rounds the quickest counts. The worker is done when all is recorded.
The second part has 200 webhooks, alone and with three ahead of them that answer after five seconds.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import aiohttp
import uvloop
from tests.bench.accepting import accepting
from tests.fakes.lanes import LOOPBACK, A, Lanes
from tests.fakes.receiver import OK, Answer, Receiver, receiving

from ploti.server.adapters.clock import SystemClock
from ploti.server.adapters.poster import WebhookPoster
from ploti.server.deliver.answers import Answer as Told
from ploti.server.worker.deliveries import SLOTS, DeliveryWorker

WEBHOOKS, EVENTS = 100, 60
GOOD, SLOW, EACH = 200, 3, 3
SLOWNESS = 5.0


class Posted(NamedTuple):
    """A POST that was made."""

    url: str
    body: bytes
    headers: Mapping[str, str]


class Remembering(WebhookPoster):
    """The poster, and what it has posted."""

    def __init__(self) -> None:
        super().__init__(allow_networks=LOOPBACK, user_agent="ploti/0")
        self.posted: list[Posted] = []

    async def post(self, url: str, *, body: bytes, headers: Mapping[str, str]) -> Told:
        told = await super().post(url, body=body, headers=headers)
        self.posted.append(Posted(url, body, headers))
        return told


class Running(Lanes):
    """Lanes by the machine's clock, with the poster as it is, and the worker at work."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.poster: Remembering = Remembering()
        self.parts = replace(self.parts, poster=self.poster, clock=SystemClock())

    async def work_until(self, done: Callable[[], bool]) -> None:
        """Have the worker serve until it is done, and has recorded what it did."""
        worker = DeliveryWorker(self.parts)
        task = asyncio.create_task(worker.run())
        while not done():  # noqa: ASYNC110  a benchmark's own loop
            await asyncio.sleep(0.005)
        task.cancel()
        await worker.finish()


async def in_new_lanes(story: Callable[[Running], Awaitable[None]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lanes = Running(Path(folder))
        await lanes.open()
        try:
            await story(lanes)
        finally:
            await lanes.close()


class Cost(NamedTuple):
    """Of one delivery: microseconds that passed, and those that this process computed."""

    wall: float
    cpu: float


async def cost(work: Awaitable[None], *, of: int) -> Cost:
    began, cpu = time.perf_counter(), time.process_time()
    await work
    return Cost((time.perf_counter() - began) / of * 1e6, (time.process_time() - cpu) / of * 1e6)


async def compare_with_a_bare_loop(rounds: int) -> None:
    ours: list[Cost] = []
    bare: list[Cost] = []
    count = WEBHOOKS * EVENTS

    async def story(lanes: Running) -> None:
        subscription = await lanes.subscribe(A)
        for number in range(WEBHOOKS):
            await lanes.hook(f"{url}/{number}", subscription)
        await lanes.release(*[A] * EVENTS)
        posted = lanes.poster.posted
        ours.append(await cost(lanes.work_until(lambda: len(posted) == count), of=count))
        bare.append(await cost(send_bare(posted), of=count))

    with accepting() as url:
        for _ in range(rounds):
            await in_new_lanes(story)
    for name, costs in (("deliveries", ours), ("a bare loop", bare)):
        least = min(costs)
        print(f"{name}: {1e6 / least.wall:,.0f} a second, {least.wall:.0f} µs each", end="; ")
        print(f"least CPU {min(each.cpu for each in costs):.0f} µs")
    print(f"{min(bare).wall / min(ours).wall:.2f} of the bare loop's rate")


async def send_bare(posted: list[Posted]) -> None:
    left = iter(posted)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=SLOTS)) as session:

        async def send() -> None:
            for url, body, headers in left:
                async with session.post(url, data=body, headers=headers) as response:
                    await response.read()

        await asyncio.gather(*(send() for _ in range(SLOTS)))


def waits(*, slow: int) -> Callable[[Running], Awaitable[None]]:
    async def story(lanes: Running) -> None:
        async with receiving() as receiver:
            await wait_beside(lanes, receiver, slow=slow)

    return story


async def wait_beside(lanes: Running, receiver: Receiver, *, slow: int) -> None:
    receiver.answer = lambda post: Answer(after=SLOWNESS) if post.path == "/slow" else OK
    subscription = await lanes.subscribe(A)
    for _ in range(slow):
        await lanes.hook(f"{receiver.url}/slow", subscription)
    for number in range(GOOD):
        await lanes.hook(f"{receiver.url}/{number}", subscription)
    await lanes.release(*[A] * EACH)
    began = time.monotonic()
    await lanes.work_until(
        lambda: sum(post.path != "/slow" for post in receiver.posts) == GOOD * EACH
    )
    taken = sorted(post.at - began for post in receiver.posts if post.path != "/slow")
    median, last = statistics.median(taken), taken[int(0.99 * len(taken))]
    print(f"{slow} slow beside {GOOD}: the good ones' median {median:.2f} s, p99 {last:.2f} s")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    uvloop.run(compare_with_a_bare_loop(rounds))
    for slow in (0, SLOW):
        uvloop.run(in_new_lanes(waits(slow=slow)))


if __name__ == "__main__":
    main()
