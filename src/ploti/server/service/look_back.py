"""After a release: records added that may go on from ones removed before, as a proposal."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial

import structlog
from msgspec.structs import replace

from ploti.model.admin import ProposalState
from ploti.model.ids import DatasetId
from ploti.model.wire import Instant
from ploti.server.build.candidate import Base, Broken, FileRole, Looked, LookOrder, Removal
from ploti.server.build.matching.question import Continuation
from ploti.server.ports.rows import AttemptRow, DatasetRow, FileRow, JobKind, VersionRow
from ploti.server.ports.store import Transaction
from ploti.server.service.check_source import Parts, adopt_files, close_attempts, open_attempt
from ploti.server.service.plan_check import find_base
from ploti.server.service.prune_old import KEPT
from ploti.server.service.release_version import make_proposal, plan_look

_LOG = structlog.get_logger()

_MOST = 30
"""Versions whose removed records are looked for, the latest."""

_MOST_ROWS = 2_000_000
"""Of a larger version the look would cost far more than its build: minutes of work a release."""

_AT_A_TIME = 500


async def look_back(parts: Parts, dataset_id: DatasetId) -> None:
    """Do the job of this dataset: propose what the current version's new records go on from.

    Nothing is ever linked by it. A crash leaves the job, which is done again; where a version was
    released meanwhile, it is planned anew.
    """
    now = parts.clock.now()
    order = await parts.store.write(partial(_begin, dataset_id=dataset_id, now=now))
    if order is None:
        return
    attempt = await open_attempt(parts, dataset_id, number=order.current.version)
    try:
        async with parts.builder.folder() as folder:
            found = await _look(parts, order, folder)
            if isinstance(found, Broken):
                _LOG.error("nothing could be looked back at", of=dataset_id, detail=found.detail)
                found = Looked(files=[], proposed=None)
            files = await adopt_files(parts.blobs, attempt, found.files, folder)
        await parts.store.write(partial(_end, attempt=attempt, found=found, files=files, now=now))
    finally:
        await close_attempts(parts, [attempt])


async def _look(parts: Parts, order: LookOrder, folder: str) -> Looked | Broken:
    """Have the order carried out, with paths in place of the names of blobs."""
    async with AsyncExitStack() as stack:
        paths = {
            blob: await stack.enter_async_context(parts.blobs.local(blob)) for blob in order.reads
        }
        return await parts.builder.look(
            replace(
                order,
                folder=folder,
                current=replace(order.current, snapshot=paths[order.current.snapshot]),
                removals=[
                    replace(
                        each,
                        before=replace(each.before, snapshot=paths[each.before.snapshot]),
                        after=paths[each.after],
                    )
                    for each in order.removals
                ],
            )
        )


def _begin(tx: Transaction, *, dataset_id: DatasetId, now: Instant) -> LookOrder | None:
    """What is to be looked at, with the names of blobs; where nothing is, the job is done."""
    dataset = tx.datasets.lock(dataset_id)
    current = None if dataset is None else find_base(tx, dataset, dataset.current_version)
    if dataset is None or current is None:
        tx.jobs.drop(JobKind.LOOK_BACK, dataset_id)
        return None
    replaced = max(tx.versions.replaced(dataset_id, after=0), default=0)
    order = LookOrder(
        dataset_id=dataset_id,
        declaration=dataset.declaration,
        current=current,
        since=max(dataset.looked_back, replaced),
        removals=_removals(tx, dataset, current, after=replaced, now=now),
        folder="",
    )
    needless = (
        dataset.declaration.continuation == Continuation.OFF
        or current.row_count > _MOST_ROWS
        or not order.removals
        or tx.proposals.of_version(dataset_id, current.version)
    )
    if needless:
        _looked(tx, dataset, current.version, now=now)
        return None
    return order


def _removals(
    tx: Transaction, dataset: DatasetRow, current: Base, *, after: int, now: Instant
) -> list[Removal]:
    """The versions above a number that removed records under the current MAJOR schema version."""
    lately = tx.versions.first_since(dataset.id, Instant.of(now - KEPT)) - 1
    after, found = max(after, lately), list[Removal]()
    while page := tx.versions.released(dataset.id, after=after, limit=_AT_A_TIME):
        after = page[-1].version
        found += [each for row in page if (each := _removal(tx, dataset, row, current))]
    return found[-_MOST:]


def _removal(
    tx: Transaction, dataset: DatasetRow, row: VersionRow, current: Base
) -> Removal | None:
    """What a version removed, while both its snapshot and that of the one before are kept."""
    if row.previous_version is None or (row.counts is not None and not row.counts.removed):
        return None
    if not all(_is_kept(tx, dataset, each) for each in (row.previous_version, row.version)):
        return None
    before, own = (find_base(tx, dataset, each) for each in (row.previous_version, row.version))
    if before is None or own is None:
        return None
    majors = {each.schema_version.partition(".")[0] for each in (before, own, current)}
    if len(majors) > 1:
        return None
    return Removal(version=row.version, before=before, after=own.snapshot)


def _is_kept(tx: Transaction, dataset: DatasetRow, number: int) -> bool:
    return any(each.role is FileRole.SNAPSHOT for each in tx.versions.files(dataset.id, number))


def _end(
    tx: Transaction, *, attempt: AttemptRow, found: Looked, files: list[FileRow], now: Instant
) -> None:
    """Keep what was found as a proposal of the version that was looked at."""
    dataset = tx.datasets.lock(attempt.dataset_id)
    if dataset is None:
        return
    if found.proposed is not None and not tx.proposals.of_version(dataset.id, attempt.version):
        of = dataset.id, attempt.version
        made = make_proposal(attempt.id, found.proposed, of=of, now=now)
        tx.versions.add_files(files)
        tx.proposals.add(replace(made, state=ProposalState.OPEN))
    _looked(tx, dataset, attempt.version, now=now)


def _looked(tx: Transaction, dataset: DatasetRow, number: int, *, now: Instant) -> None:
    """The job is done for this version; a later one that is current meanwhile has its own."""
    tx.datasets.save(replace(dataset, looked_back=number))
    tx.jobs.drop(JobKind.LOOK_BACK, dataset.id)
    if dataset.current_version != number:
        plan_look(tx, dataset, now=now)
