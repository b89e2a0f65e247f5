"""What each kind of job does when its time has come."""

from __future__ import annotations

from datetime import timedelta
from typing import assert_never

from msgspec.structs import replace

from ploti.model.ids import DatasetId
from ploti.model.wire import Instant
from ploti.server.eventlog.drafts import overdue
from ploti.server.ports.alerts import AlertId
from ploti.server.ports.rows import AttemptId, JobKind, JobRow
from ploti.server.ports.store import Transaction
from ploti.server.service.bring_workspace import bring_workspace
from ploti.server.service.check_source import Parts, check_source
from ploti.server.service.export_version import export_version
from ploti.server.service.look_back import look_back
from ploti.server.service.plan_jobs import plan_jobs, stale_at
from ploti.server.service.prune_old import end_pruned, prune
from ploti.server.service.send_alert import send_alert
from ploti.server.service.sweep_blobs import sweep_blobs
from ploti.server.service.watch_disk import watch_disk

_ROOM_AGAIN = timedelta(minutes=1)
"""When a check looks again whether the disk has room."""


async def run_job(parts: Parts, job: JobRow) -> None:
    """Do a claimed job; what it does plans the next one, or drops it, in its own transaction.

    One that raises is left to its lease, and done again when that has run out.
    """
    dataset_id = DatasetId(job.subject)
    match job.kind:
        case JobKind.CHECK:
            await _check(parts, dataset_id)
        case JobKind.STALE:
            now = parts.clock.now()
            await parts.store.write(lambda tx: tell_stale(tx, dataset_id, now=now))
        case JobKind.PRUNE:
            now = parts.clock.now()
            await parts.store.write(lambda tx: prune(tx, now=now))
        case JobKind.ALERT:
            await send_alert(
                parts.alerting,
                AlertId(job.subject),
                store=parts.store,
                clock=parts.clock,
                ids=parts.ids,
            )
        case JobKind.EXPORT:
            await export_version(parts, job.subject)
        case JobKind.MEMBERSHIP:
            await bring_workspace(parts.store, parts.plans, parts.clock, job)
        case JobKind.LOOK_BACK:
            await look_back(parts, dataset_id)
        case JobKind.SWEEP:
            await parts.store.write(lambda tx: end_pruned(tx, AttemptId(job.subject)))
            await sweep_blobs(parts.store, parts.blobs)
        case _:
            assert_never(job.kind)


def tell_stale(tx: Transaction, dataset_id: DatasetId, *, now: Instant) -> None:
    """Send `stale` where the source is a day past its due check (R-043, S-07, S-08).

    While a version waits for review nothing is sent: the end of the hold plans it anew.
    """
    dataset = tx.datasets.lock(dataset_id)
    due = None if dataset is None else dataset.next_check_by
    if dataset is None or due is None or dataset.stale_for == due or tx.holds.open_of(dataset_id):
        tx.jobs.drop(JobKind.STALE, dataset_id)
    elif now < stale_at(due):
        tx.jobs.put(JobKind.STALE, dataset_id, at=stale_at(due))
    else:
        tx.log.append_to_members(
            overdue(dataset_id, dataset.last_checked_at), dataset_id=dataset_id, now=now
        )
        tx.datasets.save(replace(dataset, stale_for=due))
        tx.jobs.drop(JobKind.STALE, dataset_id)


async def _check(parts: Parts, dataset_id: DatasetId) -> None:
    now = parts.clock.now()
    if not await parts.store.write(lambda tx: _is_due(tx, dataset_id, now=now)):
        return
    disk = await watch_disk(parts.store, parts.blobs, parts.clock, needed=parts.min_free)
    if disk.checks_wait:
        later = Instant.of(now + _ROOM_AGAIN)
        await parts.store.write(lambda tx: tx.jobs.put(JobKind.CHECK, dataset_id, at=later))
    else:
        await check_source(parts, dataset_id)


def _is_due(tx: Transaction, dataset_id: DatasetId, *, now: Instant) -> bool:
    """Whether a check is due; else it is planned for when it will be."""
    dataset = tx.datasets.get(dataset_id)
    if dataset is None:
        tx.jobs.drop(JobKind.CHECK, dataset_id)
        return False
    due = dataset.next_check_by
    if due is not None and due <= now and dataset.declaration.source.kind is not None:
        return True
    plan_jobs(tx, dataset)
    return False
