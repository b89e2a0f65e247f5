"""Plans out of this server's own tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ploti.model.account import PlanTerms
from ploti.model.ids import WorkspaceId
from ploti.server.ports.store import Store


class LocalPlans:
    """The port's `Plans`: each workspace is on a plan of the `plan` table."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self, workspaces: Collection[WorkspaceId]) -> Mapping[WorkspaceId, PlanTerms]:
        """The plan of each of these; one that is on none is left out."""
        return await self._store.read(lambda tx: tx.plans.of(workspaces))
