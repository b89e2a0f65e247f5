"""Serves the webhooks' lanes: those with something due get a turn each, in a number of slots."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta

import structlog

from ploti.model.ids import WebhookId
from ploti.model.wire import Instant
from ploti.server.ports.rows import Claim
from ploti.server.service.deliver_due import (
    Delivering,
    Lane,
    claim_lanes,
    deliver_due,
    load_lanes,
)
from ploti.server.service.record_outcomes import Outcomes
from ploti.server.service.record_turns import Turn

_LOG = structlog.get_logger()

SLOTS = 64
"""Lanes that are sent to at once; those that fail or are slow have at most half of them."""

_CLAIMED = 2 * SLOTS
"""Lanes claimed at once: while some are sent to, others are recorded, or wait for a slot."""

_LOADED = 16
"""Lanes read at a time, so that the first of them need not wait for the last."""

KEPT = timedelta(days=30)
"""How long deliveries are kept after their end."""

_LOOK = 1.0
"""Seconds between looks for what has become due; the bell of the log calls at once."""

_PRUNE = 3600.0
_FINISH_WITHIN = 5.0


class DeliveryWorker:
    """The only worker of this process; it lives in one event loop, from `run` to `stop`."""

    def __init__(self, parts: Delivering) -> None:
        self._parts = parts
        self._slots = asyncio.Semaphore(SLOTS)
        self._sending = 0
        self._outcomes = Outcomes(parts.store)
        self._loop = asyncio.get_running_loop()
        self._bell = asyncio.Event()
        self._turns: dict[WebhookId, tuple[asyncio.Task[None], bool]] = {}
        self._prune_by = 0.0

    def ring(self) -> None:
        """Say that something may have become due; may be called in any thread."""
        self._loop.call_soon_threadsafe(self._bell.set)

    async def run(self) -> None:
        """Serve until cancelled; a fault is logged, and looked past."""
        while True:
            self._bell.clear()
            try:
                await self._serve()
            except Exception:  # noqa: BLE001 - a worker that ends would end all deliveries
                _LOG.exception("cannot look for due deliveries: trying again")
            try:
                async with asyncio.timeout(_LOOK):
                    await self._bell.wait()
            except TimeoutError:
                pass

    async def finish(self) -> None:
        """Let turns that are under way end by themselves for a while, then call them off."""
        tasks = [task for task, _ in self._turns.values()]
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=_FINISH_WITHIN)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _serve(self) -> None:
        slow = sum(slow for _, slow in self._turns.values())
        free = _CLAIMED - len(self._turns)
        if free:
            claims = await claim_lanes(
                self._parts,
                free=free,
                free_for_slow=SLOTS // 2 - slow,
                busy=self._turns.keys(),
            )
            for start in range(0, len(claims), _LOADED):
                await self._begin(dict(claims[start : start + _LOADED]))
        if self._loop.time() >= self._prune_by:
            before = Instant.of(self._parts.clock.now() - KEPT)
            await self._parts.store.write(lambda tx: tx.deliveries.prune(before=before))
            self._prune_by = self._loop.time() + _PRUNE

    async def _begin(self, claims: Mapping[Claim, bool]) -> None:
        """Give claimed lanes their turns; of each, whether it is a slow one."""
        for claim, lane in await load_lanes(self._parts, [*claims]):
            task = self._loop.create_task(self._take_turn(claim, lane))
            self._turns[claim.webhook_id] = (task, claims[claim])

    async def _take_turn(self, claim: Claim, lane: Lane) -> None:
        try:
            async with self._slots:
                turn = await self._send(claim, lane)
            await self._outcomes.record(turn)
        except Exception:  # noqa: BLE001 - of one lane: its lease ends, and it is claimed again
            _LOG.exception("a turn failed", webhook=claim.webhook_id)
        finally:
            del self._turns[claim.webhook_id]
            self._bell.set()

    async def _send(self, claim: Claim, lane: Lane) -> Turn:
        self._count(1)
        try:
            return await deliver_due(self._parts, claim, lane)
        finally:
            self._count(-1)

    def _count(self, more: int) -> None:
        self._sending += more
        self._parts.meters.serving(self._sending)
