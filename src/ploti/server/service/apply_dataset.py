"""A dataset declared, or its declaration changed, with the memberships that follow."""

from __future__ import annotations

import msgspec

from ploti.errors import Conflict, Fault, InvalidInput
from ploti.model.admin import Applied
from ploti.model.ids import DatasetId
from ploti.model.wire import Instant
from ploti.server.membership.selection import Filing
from ploti.server.ports.rows import DatasetRow
from ploti.server.ports.store import Transaction
from ploti.server.service.change_membership import bring_dataset
from ploti.server.sources.declaration import Declaration, parse_declaration
from ploti.server.sources.written import changed_settings


def apply_dataset(
    tx: Transaction,
    dataset_id: DatasetId,
    raw: dict[str, object],
    *,
    dry_run: bool,
    now: Instant,
) -> Applied:
    """Create or update a dataset from its declaration as written; a dry run keeps nothing.

    Raises InvalidInput for a declaration that cannot be taken or is another dataset's, Conflict
    for another key of a dataset that has a released version.
    """
    declaration = parse_declaration(raw)
    if declaration.id != dataset_id:
        message = f"is {declaration.id}, but the address names {dataset_id}: make them one"
        raise InvalidInput(f"id {message}", errors=(Fault("id", message),))
    tx.datasets.lock_catalogue(exclusive=True)
    before = tx.datasets.lock(dataset_id)
    if before is not None:
        _check_key(before, declaration)
    if not dry_run:
        _keep(tx, before, declaration, now=now)
    return Applied(
        dataset_id=dataset_id,
        created=before is None,
        changed=changed_settings(None if before is None else before.declaration, declaration),
        dry_run=dry_run,
    )


def _check_key(before: DatasetRow, after: Declaration) -> None:
    if before.current_version is not None and before.declaration.key != after.key:
        raise Conflict(
            f"The key of {before.id} is [{', '.join(before.declaration.key)}] and cannot be "
            "changed so far once a version is released: keep it, or declare another dataset"
        )


def _keep(
    tx: Transaction, before: DatasetRow | None, declaration: Declaration, *, now: Instant
) -> None:
    if before is None:
        after = _new(declaration)
        tx.datasets.add(after)
    else:
        after = msgspec.structs.replace(before, declaration=declaration)
        tx.datasets.save(after)
    filing = _filing(after)
    if before is None or filing != _filing(before):
        bring_dataset(tx, filing, now=now)


def _new(declaration: Declaration) -> DatasetRow:
    return DatasetRow(
        id=declaration.id,
        declaration=declaration,
        deliverable=True,
        next_number=1,
        current_version=None,
        last_checked_at=None,
    )


def _filing(dataset: DatasetRow) -> Filing:
    return Filing(
        dataset_id=dataset.id,
        place=dataset.declaration.place,
        topic=dataset.declaration.topic,
        deliverable=dataset.deliverable,
    )
