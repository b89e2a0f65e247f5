"""Datasets in tables, and how the catalogue shows them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import (
    Connection,
    Exists,
    RowMapping,
    Select,
    and_,
    exists,
    false,
    insert,
    or_,
    outerjoin,
    select,
    true,
    update,
)
from sqlalchemy.sql import ColumnElement

from ploti.model.admin import HoldState
from ploti.model.ids import DatasetId, WorkspaceId
from ploti.server.adapters.store.columns import columns_of, fields_of, takes_in, value_of
from ploti.server.adapters.store.tables import (
    catalogue,
    dataset,
    hold,
    membership,
    subscription,
    version,
)
from ploti.server.eventlog.drafts import Standing, Waiting
from ploti.server.membership.rights import Filing, Rights
from ploti.server.ports.rows import DatasetRow, HoldRow, ListedDataset, VersionRow

_CURRENT = and_(
    version.c.dataset_id == dataset.c.id, version.c.version == dataset.c.current_version
)
_WAITING = and_(hold.c.dataset_id == dataset.c.id, hold.c.state == HoldState.OPEN)
_STANDING = outerjoin(outerjoin(dataset, version, _CURRENT), hold, _WAITING)


class SqlDatasets:
    """The port's `Datasets` over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def lock_catalogue(self, *, exclusive: bool) -> int:
        """Shared to change a subscription, exclusive to file a dataset or change coverage or plans.

        Gives the revision at which coverage and plans stand.
        """
        wanted = select(catalogue.c.revision).with_for_update(read=not exclusive)
        revision: int = self._connection.scalars(wanted).one()
        return revision

    def revision(self) -> int:
        """How often coverage and plans have changed."""
        revision: int = self._connection.scalars(select(catalogue.c.revision)).one()
        return revision

    def revise(self) -> None:
        """Count a change of coverage or plans, under the exclusive lock of the catalogue."""
        self._connection.execute(update(catalogue).values(revision=catalogue.c.revision + 1))

    def add(self, row: DatasetRow) -> None:
        """Keep a new dataset."""
        self._connection.execute(insert(dataset).values(_fields(row)))

    def save(self, row: DatasetRow) -> None:
        """Keep what changed of a dataset that was locked before."""
        self._connection.execute(update(dataset).where(dataset.c.id == row.id).values(_fields(row)))

    def get(self, dataset_id: DatasetId) -> DatasetRow | None:
        """A dataset; None where none was declared."""
        return self._one(_DATASET.where(dataset.c.id == dataset_id))

    def lock(self, dataset_id: DatasetId) -> DatasetRow | None:
        """A dataset that nobody else changes or joins until the transaction ends."""
        return self._one(_DATASET.where(dataset.c.id == dataset_id).with_for_update())

    def lock_standing(self, dataset_ids: Collection[DatasetId]) -> list[Standing]:
        """How datasets stand, by id; no release passes any of them until the transaction ends."""
        chosen = dataset.c.id.in_(sorted(dataset_ids))
        in_order = select(dataset.c.id).where(chosen).order_by(dataset.c.id)
        self._connection.execute(in_order.with_for_update(read=True))
        # In a statement of its own, since one that waited joins what it saw before it waited
        return self._standings(chosen)

    def filings(self) -> list[Filing]:
        """Where every dataset is filed."""
        return [Filing(**row) for row in self._connection.execute(_FILINGS).mappings()]

    def listed(
        self, dataset_id: DatasetId, *, workspaces: Collection[WorkspaceId]
    ) -> ListedDataset | None:
        """A dataset as the catalogue shows it to workspaces; staff look for none."""
        wanted = _listing(workspaces).where(dataset.c.id == dataset_id)
        found = self._connection.execute(wanted).mappings().first()
        return None if found is None else _listed(found)

    def page(
        self,
        *,
        workspaces: Collection[WorkspaceId],
        after: DatasetId | None,
        limit: int,
        place: str | None = None,
        topic: str | None = None,
        open_by: Sequence[Rights] | None = None,
    ) -> list[ListedDataset]:
        """Datasets by id; `place` and `topic` take in all below.

        With `open_by` only the deliverable ones that some of these rights open (a plan that cannot
        be read closes nothing), or that the workspaces' subscriptions deliver.
        """
        conditions: list[ColumnElement[bool]] = []
        if after is not None:
            conditions.append(dataset.c.id > after)
        if place is not None:
            conditions.append(takes_in(place, dataset.c.place))
        if topic is not None:
            conditions.append(takes_in(topic, dataset.c.topic))
        if open_by is not None:
            conditions += [dataset.c.deliverable, _is_open(open_by, workspaces)]
        wanted = _listing(workspaces).where(*conditions).order_by(dataset.c.id).limit(limit)
        return [_listed(row) for row in self._connection.execute(wanted).mappings()]

    def _standings(self, chosen: ColumnElement[bool]) -> list[Standing]:
        wanted = _SUMMARY.where(chosen).order_by(dataset.c.id)
        return [_standing(row) for row in self._connection.execute(wanted).mappings()]

    def _one(self, wanted: Select[Any]) -> DatasetRow | None:
        found = self._connection.execute(wanted).mappings().first()
        return None if found is None else value_of(DatasetRow, found)


_DATASET = select(*columns_of(dataset, DatasetRow))
_FILINGS = select(
    dataset.c.id.label("dataset_id"), dataset.c.place, dataset.c.topic, dataset.c.deliverable
)
_SUMMARY = select(
    dataset.c.id,
    dataset.c.current_version,
    version.c.schema_version,
    hold.c.reason,
    hold.c.since,
).select_from(_STANDING)


def _fields(row: DatasetRow) -> dict[str, Any]:
    filed = {"place": row.declaration.place, "topic": row.declaration.topic}
    return fields_of(row) | filed


def _standing(row: RowMapping) -> Standing:
    waiting = None
    if row["reason"] is not None:
        waiting = Waiting(reason=row["reason"], since=row["since"])
    return Standing(
        dataset_id=row["id"],
        version=row["current_version"],
        schema_version=row["schema_version"],
        waiting=waiting,
    )


def _is_open(rights: Sequence[Rights], workspaces: Collection[WorkspaceId]) -> ColumnElement[bool]:
    return or_(_subscribed(workspaces), *map(_is_open_by, rights))


def _is_open_by(rights: Rights) -> ColumnElement[bool]:
    """What `Rights` decides of one filing, as a condition on all."""
    covered = true() if rights.coverage is None else _lies_in(rights.coverage, dataset.c.place)
    plan = rights.plan
    if plan is None or (plan.topics is None and plan.datasets is None):
        return covered
    named = dataset.c.id.in_(plan.datasets or [])
    return and_(covered, or_(named, _lies_in(plan.topics or [], dataset.c.topic)))


def _lies_in(listed: Sequence[str], path: ColumnElement[str]) -> ColumnElement[bool]:
    return or_(false(), *(takes_in(each, path) for each in listed))


def _listing(workspaces: Collection[WorkspaceId]) -> Select[Any]:
    return select(
        *columns_of(dataset, DatasetRow, prefix="dataset_"),
        *columns_of(version, VersionRow, prefix="version_"),
        *columns_of(hold, HoldRow, prefix="hold_"),
        version.c.schema.label("schema"),
        _subscribed(workspaces).label("subscribed"),
    ).select_from(_STANDING)


def _subscribed(workspaces: Collection[WorkspaceId]) -> Exists:
    return exists().where(
        membership.c.dataset_id == dataset.c.id,
        membership.c.subscription_id == subscription.c.id,
        subscription.c.workspace_id.in_(sorted(workspaces)),
    )


def _listed(row: RowMapping) -> ListedDataset:
    declared = value_of(DatasetRow, row, prefix="dataset_")
    schema = row["schema"]
    return ListedDataset(
        dataset=declared,
        current=None if schema is None else value_of(VersionRow, row, prefix="version_"),
        key_columns=declared.declaration.key if schema is None else schema.key_columns,
        hold=None if row["hold_id"] is None else value_of(HoldRow, row, prefix="hold_"),
        subscribed=bool(row["subscribed"]),
    )
