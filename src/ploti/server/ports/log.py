"""Port of the database for the event logs, and for pages of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from ploti.model.event import EventType
from ploti.model.ids import DatasetId, SubscriptionId, WorkspaceId
from ploti.model.wire import Instant
from ploti.server.eventlog.drafts import Draft
from ploti.server.eventlog.paging import Extent
from ploti.server.eventlog.render import Events


class Log(Protocol):
    """The numbered, gap-free event logs of the subscriptions."""

    def append(
        self, drafts: Sequence[Draft], *, to: Collection[SubscriptionId], now: Instant
    ) -> None:
        """Give each of these logs the drafts, in this order, with consecutive numbers."""
        ...

    def append_each(
        self,
        messages: Iterable[tuple[Sequence[Draft], Collection[SubscriptionId]]],
        *,
        now: Instant,
    ) -> None:
        """Several such messages, each to logs of its own: all of them are locked first."""
        ...

    def append_to_members(
        self, drafts: Sequence[Draft], *, dataset_id: DatasetId, now: Instant
    ) -> None:
        """The same for every subscription that delivers the dataset, which is locked."""
        ...

    def extent(self, subscription_id: SubscriptionId, *, workspace: WorkspaceId) -> Extent | None:
        """The oldest kept and the newest number of a log; None where this workspace has none."""
        ...

    def last_numbers(self, ids: Collection[SubscriptionId]) -> dict[SubscriptionId, int]:
        """The newest number of each of these logs that there is."""
        ...

    def page(
        self,
        subscription_id: SubscriptionId,
        *,
        after: int,
        up_to: int,
        limit: int,
        types: frozenset[EventType],
    ) -> Events:
        """Events between two positions, oldest first; no types means all."""
        ...
