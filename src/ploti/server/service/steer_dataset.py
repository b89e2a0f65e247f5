"""A dataset's checks paused and resumed, and a dataset taken out of delivery, by staff."""

from __future__ import annotations

from msgspec.structs import replace

from ploti.model.admin import AdminDataset
from ploti.model.ids import DatasetId
from ploti.model.wire import Instant
from ploti.server.membership.rights import PlanReading
from ploti.server.ports.rows import DatasetRow
from ploti.server.ports.store import Transaction
from ploti.server.service.change_membership import bring_dataset
from ploti.server.service.plan_jobs import due_again, plan_jobs
from ploti.server.service.read_datasets import get_admin_dataset
from ploti.server.service.read_plans import lock_membership
from ploti.server.service.show_dataset import filing_of, lock_dataset


def pause_dataset(tx: Transaction, dataset_id: DatasetId, *, now: Instant) -> AdminDataset:
    """Have no check of a dataset due until it is resumed; raises NotFound."""
    return _set_paused(tx, dataset_id, paused=True, now=now)


def resume_dataset(tx: Transaction, dataset_id: DatasetId, *, now: Instant) -> AdminDataset:
    """Have a paused dataset's checks due again, from now on; raises NotFound."""
    return _set_paused(tx, dataset_id, paused=None, now=now)


def remove_dataset(
    tx: Transaction, dataset_id: DatasetId, *, plans: PlanReading, now: Instant
) -> AdminDataset:
    """Make a dataset not deliverable: it leaves every subscription (R-069); raises NotFound.

    Its versions stay until retention, and declaring it again brings it back.
    """
    lock_membership(tx, plans, exclusive=True)
    before = lock_dataset(tx, dataset_id)
    if before.deliverable:
        after = replace(before, deliverable=False)
        _keep(tx, before, after, now=now)
        bring_dataset(tx, filing_of(after), plans=plans, now=now)
    return get_admin_dataset(tx, dataset_id)


def _set_paused(
    tx: Transaction, dataset_id: DatasetId, *, paused: bool | None, now: Instant
) -> AdminDataset:
    before = lock_dataset(tx, dataset_id)
    if bool(before.declaration.paused) != bool(paused):
        declaration = replace(before.declaration, paused=paused)
        _keep(tx, before, replace(before, declaration=declaration), now=now)
    return get_admin_dataset(tx, dataset_id)


def _keep(tx: Transaction, before: DatasetRow, after: DatasetRow, *, now: Instant) -> None:
    kept = due_again(before, after, now=now)
    tx.datasets.save(kept)
    plan_jobs(tx, kept)
