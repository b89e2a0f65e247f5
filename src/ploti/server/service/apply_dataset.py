"""A dataset declared, or its declaration changed, with the memberships that follow."""

from __future__ import annotations

import msgspec

from ploti.errors import Fault, InvalidInput
from ploti.model.admin import Applied
from ploti.model.ids import DatasetId
from ploti.model.wire import Instant
from ploti.server.membership.rights import PlanReading
from ploti.server.ports.rows import DatasetRow
from ploti.server.ports.store import Transaction
from ploti.server.service.change_membership import bring_dataset
from ploti.server.service.plan_jobs import due_again, plan_jobs
from ploti.server.service.read_plans import lock_membership
from ploti.server.service.show_dataset import filing_of
from ploti.server.sources.declaration import Declaration, parse_declaration
from ploti.server.sources.written import changed_settings


def apply_dataset(
    tx: Transaction,
    dataset_id: DatasetId,
    raw: dict[str, object],
    *,
    plans: PlanReading,
    dry_run: bool,
    now: Instant,
) -> Applied:
    """Create or update a dataset from its declaration as written; a dry run keeps nothing.

    A dataset that was removed comes back.
    Raises InvalidInput for a declaration that cannot be taken or is another dataset's.
    """
    declaration = parse_declaration(raw)
    if declaration.id != dataset_id:
        message = f"is {declaration.id}, but the address names {dataset_id}: make them one"
        raise InvalidInput(f"id {message}", errors=(Fault("id", message),))
    lock_membership(tx, plans, exclusive=True)
    before = tx.datasets.lock(dataset_id)
    if before is not None:
        declaration = _still_paused(before, declaration)
    if not dry_run:
        _keep(tx, before, declaration, plans=plans, now=now)
    return Applied(
        dataset_id=dataset_id,
        created=before is None,
        changed=_changed(before, declaration),
        dry_run=dry_run,
    )


def _keep(
    tx: Transaction,
    before: DatasetRow | None,
    declaration: Declaration,
    *,
    plans: PlanReading,
    now: Instant,
) -> None:
    if before is None:
        after = _new(declaration, now=now)
        tx.datasets.add(after)
    else:
        after = msgspec.structs.replace(before, declaration=declaration, deliverable=True)
        after = due_again(before, after, now=now)
        tx.datasets.save(after)
    if before is None or _timing(before) != _timing(after):
        plan_jobs(tx, after)
    filing = filing_of(after)
    if before is None or filing != filing_of(before):
        bring_dataset(tx, filing, plans=plans, now=now)


def _still_paused(before: DatasetRow, declaration: Declaration) -> Declaration:
    """A declaration that does not say whether it is paused leaves that as it is."""
    if declaration.paused is not None:
        return declaration
    return msgspec.structs.replace(declaration, paused=before.declaration.paused)


def _changed(before: DatasetRow | None, declaration: Declaration) -> list[str]:
    if before is None:
        return changed_settings(None, declaration)
    settings = changed_settings(before.declaration, declaration)
    return settings if before.deliverable else sorted([*settings, "deliverable"])


def _timing(dataset: DatasetRow) -> tuple[object, ...]:
    return dataset.next_check_by, dataset.declaration.source


def _new(declaration: Declaration, *, now: Instant) -> DatasetRow:
    return DatasetRow(
        id=declaration.id,
        declaration=declaration,
        deliverable=True,
        next_number=1,
        current_version=None,
        last_checked_at=None,
        due_since=now,
    )
