"""When a dataset's source is due its next check, and when it would be stale, as durable jobs."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from ploti.model.wire import Instant
from ploti.server.ports.rows import DatasetRow, JobKind
from ploti.server.ports.store import Transaction

STALE_AFTER = timedelta(hours=24)
"""Past `next_check_by`, a source is stale (R-043)."""

_FIRST_RETRY = 300
_DOUBLINGS = 10


def due_again(before: DatasetRow, after: DatasetRow, *, now: Instant) -> DatasetRow:
    """A dataset of which checks may be due only from now on, where none was due before."""
    return after if before.next_check_by is not None else replace(after, due_since=now)


def plan_jobs(tx: Transaction, dataset: DatasetRow) -> None:
    """Plan a dataset's check and its `stale`, in the transaction that changed when it is due."""
    due = dataset.next_check_by
    if due is None or dataset.declaration.source.kind is None:
        tx.jobs.drop(JobKind.CHECK, dataset.id)
    else:
        tx.jobs.put(JobKind.CHECK, dataset.id, at=due)
    plan_stale(tx, dataset)


def plan_stale(tx: Transaction, dataset: DatasetRow) -> None:
    """Plan `stale` for the check that is due, once for each (R-045, S-08)."""
    due = dataset.next_check_by
    if due is None or dataset.stale_for == due:
        tx.jobs.drop(JobKind.STALE, dataset.id)
    else:
        tx.jobs.put(JobKind.STALE, dataset.id, at=stale_at(due))


def plan_retry(tx: Transaction, dataset: DatasetRow, *, now: Instant) -> None:
    """Plan the check after one that failed: soon at first, and as often as it is due at last."""
    every = dataset.declaration.check_every
    if every is None or dataset.next_check_by is None or dataset.declaration.source.kind is None:
        return
    pause = min(every, _FIRST_RETRY * 2 ** min(dataset.failures - 1, _DOUBLINGS))
    tx.jobs.put(JobKind.CHECK, dataset.id, at=Instant.of(now + timedelta(seconds=pause)))


def stale_at(due: Instant) -> Instant:
    """When a source that was due a check then is stale."""
    return Instant.of(due + STALE_AFTER)
