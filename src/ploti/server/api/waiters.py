"""Requests that wait on a log: one table, one bell, and one question for all that wait."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager

import structlog

from ploti.errors import RateLimited
from ploti.model.ids import KeyId, SubscriptionId

_LOG = structlog.get_logger()
_UNKNOWN = -1

LastNumbers = Callable[[Collection[SubscriptionId]], Awaitable[dict[SubscriptionId, int]]]


class Wait:
    """One waiting request. `after` is the number that it has read up to, once it has read."""

    def __init__(self, subscription_id: SubscriptionId) -> None:
        self.subscription_id = subscription_id
        self.after = _UNKNOWN
        self.bell = asyncio.Event()

    def is_behind(self, last: int | None) -> bool:
        """Whether there is something to read: an event, or that the log is gone."""
        return last is None or last > self.after


class Waiters:
    """The table of waits of this process; it lives in one event loop.

    A wait holds no thread, connection or transaction. `last_numbers` tells the newest number of
    each log; `most` is how many waits a key may have at once.
    """

    def __init__(self, last_numbers: LastNumbers, *, most: int) -> None:
        self._last_numbers = last_numbers
        self._most = most
        self._loop = asyncio.get_running_loop()
        self._waits: set[Wait] = set()
        self._by_key: Counter[KeyId] = Counter()
        self._rung = False
        self._asking: asyncio.Task[None] | None = None
        self._closed = False

    @contextmanager
    def place(self, subscription_id: SubscriptionId, *, key: KeyId) -> Iterator[Wait]:
        """A place in the table, to be taken before reading, so that no event falls in between.

        Raises RateLimited where the key has as many as it may.
        """
        if self._by_key[key] >= self._most:
            raise RateLimited(
                f"This key has {self._most} requests that wait; end one first", retry_after=1
            )
        wait = Wait(subscription_id)
        self._by_key[key] += 1
        self._waits.add(wait)
        try:
            yield wait
        finally:
            self._waits.remove(wait)
            self._by_key[key] -= 1
            self._by_key += Counter()

    async def rung(
        self, wait: Wait, *, within: float, unless: Callable[[], Awaitable[object]]
    ) -> bool:
        """Wait for the bell; False once `within` seconds are over, `unless` came, or on closing."""
        if within <= 0 or self._closed:
            return False
        bell = asyncio.ensure_future(wait.bell.wait())
        end = asyncio.ensure_future(unless())
        try:
            await asyncio.wait({bell, end}, timeout=within, return_when=asyncio.FIRST_COMPLETED)
            return bell.done() and not self._closed
        finally:
            bell.cancel()
            end.cancel()

    def ring(self) -> None:
        """Say that some log has grown; may be called in any thread."""
        self._loop.call_soon_threadsafe(self._start_asking)

    def close(self) -> None:
        """Let everybody go, and wait for nobody from now on."""
        self._closed = True
        self._wake(lambda _: True)

    def _start_asking(self) -> None:
        self._rung = True
        if self._asking is None or self._asking.done():
            self._asking = self._loop.create_task(self._ask())

    async def _ask(self) -> None:
        while self._rung:
            self._rung = False
            ids = {wait.subscription_id for wait in self._waits}
            if ids:
                await self._wake_those_behind(ids)

    async def _wake_those_behind(self, ids: Collection[SubscriptionId]) -> None:
        try:
            last = await self._last_numbers(ids)
        except Exception:  # noqa: BLE001 - a bell that fails must not leave anybody waiting
            _LOG.exception("cannot ask for the logs' newest numbers: all that wait look themselves")
            last = {}
        self._wake(
            lambda wait: (
                wait.subscription_id in ids and wait.is_behind(last.get(wait.subscription_id))
            )
        )

    def _wake(self, due: Callable[[Wait], bool]) -> None:
        for wait in self._waits:
            if due(wait):
                wait.bell.set()
