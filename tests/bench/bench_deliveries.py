"""Deliveries against a bare loop of POSTs, and how long good receivers wait beside slow ones.

`python -m tests.bench.bench_deliveries`. The bare loop sends the same signed bodies by aiohttp,
as many at once as the worker has slots, each over a connection of its own and over kept ones. The
second part has 200 webhooks, alone and with three ahead of them that answer after five seconds.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
from tests.fakes.lanes import LOOPBACK, A, Lanes
from tests.fakes.receiver import OK, Answer, Post, Receiver, receiving

from ploti.server.adapters.clock import SystemClock
from ploti.server.adapters.poster import WebhookPoster
from ploti.server.worker.deliveries import SLOTS, DeliveryWorker

WEBHOOKS, EVENTS = 100, 20
GOOD, SLOW, EACH = 200, 3, 3
SLOWNESS = 5.0


class Running(Lanes):
    """Lanes by the machine's clock, with the poster as it is, and the worker at work."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.poster = WebhookPoster(allow_networks=LOOPBACK, user_agent="ploti/0")
        clock = SystemClock()
        self.parts = type(self.parts)(
            store=self.store,
            poster=self.poster,
            sealer=self.parts.sealer,
            clock=clock,
            ids=self.ids,
            meters=self.parts.meters,
            base=self.parts.base,
        )

    async def work_until(self, done: Callable[[], bool]) -> None:
        """Have the worker serve until it is done."""
        worker = DeliveryWorker(self.parts)
        task = asyncio.create_task(worker.run())
        while not done():  # noqa: ASYNC110  a benchmark's own loop
            await asyncio.sleep(0.005)
        task.cancel()
        await worker.finish()


async def in_new_lanes(story: Callable[[Running, Receiver], Awaitable[None]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lanes = Running(Path(folder))
        await lanes.open()
        try:
            async with receiving() as receiver:
                await story(lanes, receiver)
        finally:
            await lanes.close()


async def compare_with_a_bare_loop(lanes: Running, receiver: Receiver) -> None:
    receiver.keeps = WEBHOOKS * EVENTS
    subscription = await lanes.subscribe(A)
    for number in range(WEBHOOKS):
        await lanes.hook(f"{receiver.url}/{number}", subscription)
    await lanes.release(*[A] * EVENTS)
    began = time.perf_counter()
    await lanes.work_until(lambda: len(receiver.posts) == WEBHOOKS * EVENTS)
    ours = WEBHOOKS * EVENTS / (time.perf_counter() - began)
    posts, receiver.posts = receiver.posts, []
    for name, closing in (("with a connection each", True), ("over kept connections", False)):
        began = time.perf_counter()
        await send_bare(receiver, posts, closing=closing)
        bare = len(posts) / (time.perf_counter() - began)
        print(f"deliveries: {ours:,.0f} a second, {ours / bare:.2f} of a bare loop {name}")


async def send_bare(receiver: Receiver, posts: list[Post], *, closing: bool) -> None:
    connector = aiohttp.TCPConnector(force_close=closing, limit=SLOTS)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def send(post: Post) -> None:
            url = receiver.url + post.path
            signed = {name: value for name, value in post.headers.items() if "webhook" in name}
            async with session.post(url, data=post.body, headers=signed) as response:
                await response.read()

        await asyncio.gather(*map(send, posts))


def waits(*, slow: int) -> Callable[[Running, Receiver], Awaitable[None]]:
    async def story(lanes: Running, receiver: Receiver) -> None:
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

    return story


def main() -> None:
    asyncio.run(in_new_lanes(compare_with_a_bare_loop))
    for slow in (0, SLOW):
        asyncio.run(in_new_lanes(waits(slow=slow)))


if __name__ == "__main__":
    main()
