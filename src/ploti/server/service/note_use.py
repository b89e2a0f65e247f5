"""When keys were used last: noted in memory at each request, and kept once in a while."""

from __future__ import annotations

from ploti.model.ids import KeyId
from ploti.model.wire import Instant
from ploti.server.ports.store import Store


class KeyUses:
    """The uses that are not in the database yet."""

    def __init__(self) -> None:
        self._noted: dict[KeyId, Instant] = {}

    def note(self, key_id: KeyId, *, at: Instant) -> None:
        """A key was used."""
        self._noted[key_id] = at

    async def keep(self, store: Store) -> None:
        """Keep what was noted since the last time; nothing is written where nothing was."""
        noted, self._noted = self._noted, {}
        if noted:
            await store.write(lambda tx: tx.keys.note_use(noted))
