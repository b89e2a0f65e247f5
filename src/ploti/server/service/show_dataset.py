"""Datasets as the catalogue and staff see them."""

from __future__ import annotations

from ploti.errors import NotFound
from ploti.model.admin import AdminDataset, BuildUnderWay
from ploti.model.dataset import CurrentVersion, Dataset, HoldNotice
from ploti.model.ids import DatasetId
from ploti.model.wire import UNSET, Unset
from ploti.server.membership.access import unknown_dataset
from ploti.server.membership.rights import Filing
from ploti.server.ports.rows import DatasetRow, HoldRow, ListedDataset, VersionRow
from ploti.server.ports.store import Transaction
from ploti.server.sources.written import as_written


def find_dataset(tx: Transaction, dataset_id: DatasetId) -> DatasetRow:
    """A declared dataset; raises NotFound."""
    found = tx.datasets.get(dataset_id)
    if found is None:
        raise unknown_dataset(dataset_id)
    return found


def lock_dataset(tx: Transaction, dataset_id: DatasetId) -> DatasetRow:
    """A declared dataset, locked; raises NotFound."""
    found = tx.datasets.lock(dataset_id)
    if found is None:
        raise unknown_dataset(dataset_id)
    return found


def filing_of(dataset: DatasetRow) -> Filing:
    """Where a dataset is filed, and whether it is delivered at all."""
    return Filing(
        dataset_id=dataset.id,
        place=dataset.declaration.place,
        topic=dataset.declaration.topic,
        deliverable=dataset.deliverable,
    )


def no_version(dataset_id: DatasetId, number: int | None = None) -> NotFound:
    """The answer for a number that was never released, or where none was yet."""
    if number is None:
        return NotFound(f"{dataset_id} has no released version yet")
    return NotFound(f"{dataset_id} has no released version {number}: its list of versions has them")


def show_dataset(listed: ListedDataset, *, subscribed: bool | Unset = UNSET) -> Dataset:
    """A dataset as subscribers see it."""
    declared = listed.dataset.declaration
    return Dataset(
        id=listed.dataset.id,
        title=declared.title,
        place=declared.place,
        topic=declared.topic,
        license=declared.license,
        attribution=declared.attribution,
        key_columns=listed.key_columns,
        current=_current(listed.current),
        last_checked_at=listed.dataset.last_checked_at,
        next_check_by=listed.dataset.next_check_by,
        hold=_notice(listed.hold),
        subscribed=subscribed,
    )


def show_to_staff(listed: ListedDataset, building: BuildUnderWay | None) -> AdminDataset:
    """A dataset with its declaration, and what is under way for it."""
    seen = show_dataset(listed)
    return AdminDataset(
        **{name: getattr(seen, name) for name in seen.__struct_fields__},
        deliverable=listed.dataset.deliverable,
        building=building,
        declaration=as_written(listed.dataset.declaration),
    )


def _current(version: VersionRow | None) -> CurrentVersion | None:
    if version is None or version.published_at is None:
        return None
    return CurrentVersion(
        version=version.version,
        schema_version=version.schema_version,
        published_at=version.published_at,
        row_count=version.row_count,
    )


def _notice(hold: HoldRow | None) -> HoldNotice | None:
    return None if hold is None else HoldNotice(reason=hold.reason, since=hold.since)
