"""The two sides of the SDK: one that waits for each answer, one that is awaited."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from ploti.client.transport import TIMEOUT, Transport

P = ParamSpec("P")
T = TypeVar("T")

Job = Callable[Concatenate[Transport, P], Awaitable[T]]
"""What one call of the SDK does, written once and asynchronous, for either side to run."""


class AsyncSide:
    """Gives back what is to be awaited."""

    def __init__(
        self, key: str | None = None, *, url: str | None = None, timeout: float = TIMEOUT
    ) -> None:
        self._transport = Transport(key, url=url, timeout=timeout)

    async def run(self, job: Job[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the job over this side's connections."""
        return await job(self._transport, *args, **kwargs)


class BlockingSide:
    """Waits for each answer.

    The job runs in an event loop on a thread of its own. So there is one transport for both sides,
    and its deadline holds even against a server that sends a byte now and then: the HTTP
    library's limits for blocking calls are per read.
    """

    def __init__(
        self, key: str | None = None, *, url: str | None = None, timeout: float = TIMEOUT
    ) -> None:
        self._make = partial(Transport, key, url=url, timeout=timeout)
        self._open()

    def run(self, job: Job[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the job over this side's connections and wait for it; safe from any thread."""
        if self._loop.process != os.getpid():  # a fork has the loop's memory, not its thread
            self._open()
        return self._loop.run(partial(job, self._transport, *args, **kwargs))

    def close(self) -> None:
        """Close the connections; a later call opens them anew."""
        self._loop.stop(self._transport)

    def _open(self) -> None:
        self._transport = self._make()
        self._loop = _Loop()
        weakref.finalize(self, self._loop.stop, self._transport)


class _Loop:
    """An event loop on a thread of its own, started by the first job."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._lock = threading.Lock()
        self._running: tuple[BlockingPortal, ExitStack] | None = None

    def run(self, job: Callable[[], Awaitable[T]]) -> T:
        future = self._start().start_task_soon(job)
        try:
            return future.result()
        finally:
            future.cancel()  # where the wait was interrupted, by Ctrl-C say; else it does nothing

    def stop(self, transport: Transport) -> None:
        with self._lock:
            running, self._running = self._running, None
        if running is not None and self.process == os.getpid():
            portal, stack = running
            with stack:
                portal.call(_end, portal, transport)

    def _start(self) -> BlockingPortal:
        with self._lock:
            if self._running is None:
                stack = ExitStack()
                portal = stack.enter_context(start_blocking_portal(name="ploti"))
                self._running = (portal, stack)
            return self._running[0]


async def _end(portal: BlockingPortal, transport: Transport) -> None:
    """Close the connections and cancel what still runs.

    Ctrl-C may fall between a job's start and the wait for it: nobody waits for that job, and its
    long poll must not hold up the way out.
    """
    await transport.close()
    await portal.stop(cancel_remaining=True)
