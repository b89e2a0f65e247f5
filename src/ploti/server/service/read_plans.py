"""Plans asked for before a transaction, and the proof in it that nothing changed since."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from ploti.errors import Unavailable
from ploti.model.ids import WorkspaceId
from ploti.server.membership.rights import PlanReading, Rights
from ploti.server.ports.outside import Plans
from ploti.server.ports.store import Store, Transaction

T = TypeVar("T")

_TRIES = 5


class PlansChanged(Exception):
    """Coverage or a plan changed since the plans were read: read them again."""


async def read_plans(
    store: Store, plans: Plans, workspaces: Collection[WorkspaceId]
) -> PlanReading:
    """What these workspaces' plans open, and the revision that it was read at."""
    revision = await store.read(lambda tx: tx.datasets.revision())
    return PlanReading(revision=revision, plans=await plans.read(workspaces))


async def read_all_plans(store: Store, plans: Plans) -> PlanReading:
    """The plans of every workspace that has a subscription."""
    workspaces = await store.read(lambda tx: tx.subscriptions.workspaces())
    return await read_plans(store, plans, workspaces)


async def with_plans(
    read: Callable[[], Awaitable[PlanReading]], work: Callable[[PlanReading], Awaitable[T]]
) -> T:
    """Do work by the plans as they are, again where they changed before its transaction began.

    Raises Unavailable where they change all the time.
    """
    for _ in range(_TRIES):
        try:
            return await work(await read())
        except PlansChanged:
            continue
    raise Unavailable("Plans are being changed: try again", retry_after=1)


def lock_membership(tx: Transaction, reading: PlanReading, *, exclusive: bool) -> None:
    """Take the catalogue's lock; raises PlansChanged where the plans may be others by now."""
    if tx.datasets.lock_catalogue(exclusive=exclusive) != reading.revision:
        raise PlansChanged


def rights_of(
    tx: Transaction, reading: PlanReading, workspaces: Collection[WorkspaceId]
) -> dict[WorkspaceId, Rights]:
    """What each of these workspaces may have."""
    coverage = tx.workspaces.coverage(workspaces)
    return {each: reading.rights(each, coverage.get(each)) for each in workspaces}
