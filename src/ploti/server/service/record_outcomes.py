"""What came of turns is written together: those that end about the same time share a commit."""

from __future__ import annotations

import asyncio

import structlog

from ploti.server.ports.store import Store
from ploti.server.service.record_turns import Turn, record_turns

_LOG = structlog.get_logger()


class _Outcome:
    """One turn's: `tried` once it went into a transaction, `kept` once that is durable."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.tried = False
        self.kept = False


class Outcomes:
    """Writes outcomes in groups: while one transaction is under way, the next group gathers."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._next: list[_Outcome] = []
        self._writing = asyncio.Lock()

    async def record(self, turn: Turn) -> None:
        """Record a turn in a transaction, perhaps with others, by the ids of their lanes.

        Returns once it is durable; in that order lanes are told of events, too, so that neither
        waits for a lane that the other has locked.
        Where a group fails, each of it is tried once more by itself: no outcome is lost for
        another's fault.
        """
        outcome = _Outcome(turn)
        self._next.append(outcome)
        async with self._writing:
            if not outcome.tried:
                group, self._next = self._next, []
                await self._try(sorted(group, key=lambda each: each.turn.webhook.id))
            if not outcome.kept:
                await self._write([outcome])

    async def _try(self, group: list[_Outcome]) -> None:
        for each in group:
            each.tried = True
        if len(group) > 1:
            try:
                await self._write(group)
            except Exception:  # noqa: BLE001  whose fault it is comes out when each is tried alone
                _LOG.warning("outcomes of deliveries are written one by one", exc_info=True)

    async def _write(self, group: list[_Outcome]) -> None:
        turns = [each.turn for each in group]
        await self._store.write(lambda tx: record_turns(tx, turns))
        for each in group:
            each.kept = True
