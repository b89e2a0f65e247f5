"""Subscriptions and what they deliver in tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from sqlalchemy import Connection, RowMapping, and_, delete, insert, select, tuple_, update

from ploti.model.ids import DatasetId, SubscriptionId, WorkspaceId
from ploti.model.subscription import Selection
from ploti.model.wire import Instant
from ploti.server.adapters.store.columns import columns_of, value_of
from ploti.server.adapters.store.dialect import chunks
from ploti.server.adapters.store.tables import (
    dataset,
    feed_log,
    feed_run,
    membership,
    subscription,
    version,
)
from ploti.server.ports.rows import DeliveredDataset, SubscriptionRow, VersionRow


class SqlSubscriptions:
    """The port's `Subscriptions` over one connection; `locks` where the transaction writes."""

    def __init__(self, connection: Connection, *, locks: bool) -> None:
        self._connection = connection
        self._locks = locks

    def add(self, row: SubscriptionRow) -> None:
        """Keep a new subscription, with an empty log."""
        self._connection.execute(insert(subscription).values(_fields(row)))
        counters = {"last_seq": 0, "first_seq": 1, "settled_seq": 0}
        log = {"subscription_id": row.id, "newest": "", **counters}
        self._connection.execute(insert(feed_log).values(log))

    def save(self, row: SubscriptionRow) -> None:
        """Keep what changed of a subscription."""
        same = subscription.c.id == row.id
        self._connection.execute(update(subscription).where(same).values(_fields(row)))

    def delete(self, subscription_id: SubscriptionId) -> None:
        """Remove a subscription, its memberships and its log."""
        log = select(feed_log.c.log).where(feed_log.c.subscription_id == subscription_id)
        self._connection.execute(log.with_for_update())  # what appends to it is over, or sees none
        for gone in (
            delete(feed_run).where(feed_run.c.log == log.scalar_subquery()),
            delete(feed_log).where(feed_log.c.subscription_id == subscription_id),
            delete(membership).where(membership.c.subscription_id == subscription_id),
            delete(subscription).where(subscription.c.id == subscription_id),
        ):
            self._connection.execute(gone)

    def get(
        self, subscription_id: SubscriptionId, *, workspace: WorkspaceId
    ) -> SubscriptionRow | None:
        """A subscription of this workspace."""
        same = (subscription.c.id == subscription_id, subscription.c.workspace_id == workspace)
        wanted = select(subscription).where(*same)
        if self._locks:
            wanted = wanted.with_for_update()
        found = self._connection.execute(wanted).mappings().first()
        return None if found is None else _row(found)

    def page(
        self,
        *,
        workspace: WorkspaceId,
        after: tuple[Instant, SubscriptionId] | None,
        limit: int,
    ) -> list[SubscriptionRow]:
        """The workspace's subscriptions made after another one, oldest first."""
        place = (subscription.c.created_at, subscription.c.id)
        wanted = select(subscription).where(subscription.c.workspace_id == workspace)
        if after is not None:
            wanted = wanted.where(tuple_(*place) > after)
        ordered = wanted.order_by(*place).limit(limit)
        return [_row(row) for row in self._connection.execute(ordered).mappings()]

    def every(self) -> list[SubscriptionRow]:
        """The subscriptions of all workspaces, by id."""
        wanted = select(subscription).order_by(subscription.c.id)
        return [_row(row) for row in self._connection.execute(wanted).mappings()]

    def workspaces(self) -> list[WorkspaceId]:
        """The workspaces that have a subscription, by id."""
        owner = subscription.c.workspace_id
        return list(self._connection.scalars(select(owner).distinct().order_by(owner)))

    def of(self, workspace: WorkspaceId) -> list[SubscriptionId]:
        """The ids of a workspace's subscriptions, in their order."""
        wanted = select(subscription.c.id).where(subscription.c.workspace_id == workspace)
        return list(self._connection.scalars(wanted.order_by(subscription.c.id)))


class SqlMemberships:
    """The port's `Memberships` over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of(self, subscription_id: SubscriptionId) -> set[DatasetId]:
        """The datasets that a subscription delivers."""
        same = membership.c.subscription_id == subscription_id
        return set(self._connection.scalars(select(membership.c.dataset_id).where(same)))

    def delivering(self, dataset_id: DatasetId) -> set[SubscriptionId]:
        """The subscriptions that deliver a dataset."""
        same = membership.c.dataset_id == dataset_id
        return set(self._connection.scalars(select(membership.c.subscription_id).where(same)))

    def delivers(self, workspaces: Collection[WorkspaceId], dataset_id: DatasetId) -> bool:
        """Whether any subscription of these workspaces delivers the dataset."""
        wanted = (
            select(membership.c.subscription_id)
            .join_from(membership, subscription, membership.c.subscription_id == subscription.c.id)
            .where(
                membership.c.dataset_id == dataset_id,
                subscription.c.workspace_id.in_(sorted(workspaces)),
            )
            .limit(1)
        )
        return self._connection.scalar(wanted) is not None

    def join(self, pairs: Collection[tuple[SubscriptionId, DatasetId]]) -> None:
        """Record that datasets are delivered."""
        logs: dict[SubscriptionId, int] = {}
        for ids in chunks({subscription_id for subscription_id, _ in pairs}):
            wanted = select(feed_log.c.subscription_id, feed_log.c.log)
            found = self._connection.execute(wanted.where(feed_log.c.subscription_id.in_(ids)))
            logs |= {row.subscription_id: row.log for row in found}
        rows = [
            {"subscription_id": each, "dataset_id": dataset_id, "log": logs[each]}
            for each, dataset_id in pairs
        ]
        if rows:
            self._connection.execute(insert(membership), rows)

    def leave(self, pairs: Collection[tuple[SubscriptionId, DatasetId]]) -> None:
        """Record that datasets are delivered no more."""
        for subscription_id, dataset_id in pairs:
            self._connection.execute(
                delete(membership).where(
                    membership.c.subscription_id == subscription_id,
                    membership.c.dataset_id == dataset_id,
                )
            )

    def manifest(self, subscription_id: SubscriptionId) -> Iterator[DeliveredDataset]:
        """The datasets that a subscription delivers with their current versions, by id."""
        wanted = _MANIFEST.where(membership.c.subscription_id == subscription_id)
        rows = self._connection.execute(wanted.execution_options(yield_per=_AT_ONCE))
        return map(_delivered, rows.mappings())


_AT_ONCE = 200
"""Rows that a manifest fetches together."""

_MANIFEST = (
    select(
        membership.c.dataset_id.label("delivered"), *columns_of(version, VersionRow, prefix="v_")
    )
    .select_from(
        membership.join(dataset, dataset.c.id == membership.c.dataset_id).outerjoin(
            version,
            and_(
                version.c.dataset_id == dataset.c.id,
                version.c.version == dataset.c.current_version,
            ),
        )
    )
    .order_by(membership.c.dataset_id)
)


def _fields(row: SubscriptionRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "workspace_id": row.workspace_id,
        "name": row.name,
        "places": row.selection.places,
        "topics": row.selection.topics,
        "datasets": row.selection.datasets,
        "created_at": row.created_at,
    }


def _row(row: RowMapping) -> SubscriptionRow:
    return SubscriptionRow(
        id=row["id"],
        workspace_id=row["workspace_id"],
        name=row["name"],
        selection=Selection(places=row["places"], topics=row["topics"], datasets=row["datasets"]),
        created_at=row["created_at"],
    )


def _delivered(row: RowMapping) -> DeliveredDataset:
    return DeliveredDataset(
        dataset_id=row["delivered"],
        current=None if row["v_version"] is None else value_of(VersionRow, row, prefix="v_"),
    )
