"""CSV of a large version: made by one job once it is asked for, and kept like its other files."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import timedelta

import structlog

from ploti.model.ids import DatasetId
from ploti.model.wire import Instant
from ploti.server.build.candidate import Broken, Exported, ExportedFile, ExportOrder
from ploti.server.ports.rows import AttemptId, AttemptRow, FileRow, JobKind
from ploti.server.ports.store import Transaction
from ploti.server.service.check_source import Parts, adopt_files
from ploti.server.service.show_version import without_csv
from ploti.server.service.sweep_blobs import source_blob, sweep_blobs

_LOG = structlog.get_logger()

_AGAIN = timedelta(minutes=10)
"""How long after a failure it is tried again, however often it is asked for meanwhile."""


def plan_export(tx: Transaction, dataset_id: DatasetId, number: int, *, now: Instant) -> None:
    """Have the CSV of a version made, unless that is planned or done already."""
    subject = f"{dataset_id}/{number}"
    if not tx.jobs.is_planned(JobKind.EXPORT, subject) and _missing(tx, dataset_id, number):
        tx.jobs.put(JobKind.EXPORT, subject, at=now)


async def export_version(parts: Parts, subject: str) -> None:
    """Do the job of this subject; its files lie below an attempt of its own, as a build's do."""
    dataset, _, number = subject.rpartition("/")
    attempt_id = AttemptId(parts.ids.token("att_"))
    attempt = AttemptRow(
        id=attempt_id,
        dataset_id=DatasetId(dataset),
        version=int(number),
        source_blob=source_blob(DatasetId(dataset), attempt_id),
        started_at=parts.clock.now(),
    )
    await parts.store.write(lambda tx: tx.builds.add(attempt))
    try:
        await _export(parts, attempt, subject)
    finally:
        await parts.store.write(lambda tx: tx.builds.end(attempt.id))
        await sweep_blobs(parts.store, parts.blobs)


async def _export(parts: Parts, attempt: AttemptRow, subject: str) -> None:
    files = await parts.store.read(lambda tx: _missing(tx, attempt.dataset_id, attempt.version))
    made: list[FileRow] = []
    if files:
        async with parts.builder.folder() as folder:
            done = await _build(parts, attempt, files, folder)
            if isinstance(done, Broken):
                await _put_off(parts, subject, done)
                return
            made = await adopt_files(parts.blobs, attempt, done.files, folder)
    await parts.store.write(lambda tx: _keep(tx, attempt, made, subject))


async def _build(
    parts: Parts, attempt: AttemptRow, files: list[FileRow], folder: str
) -> Exported | Broken:
    content = await parts.store.read(
        lambda tx: tx.versions.content(attempt.dataset_id, attempt.version)
    )
    async with AsyncExitStack() as stack:
        paths = [await stack.enter_async_context(parts.blobs.local(each.blob)) for each in files]
        order = ExportOrder(
            dataset_id=attempt.dataset_id,
            version=attempt.version,
            schema=content.schema,
            files=[
                ExportedFile(role=file.role, path=path, rows=file.rows)
                for file, path in zip(files, paths, strict=True)
            ],
            folder=folder,
        )
        return await parts.builder.export(order)


async def _put_off(parts: Parts, subject: str, broken: Broken) -> None:
    _LOG.error("no CSV could be made", version=subject, detail=broken.detail)
    again = Instant.of(parts.clock.now() + _AGAIN)
    await parts.store.write(lambda tx: tx.jobs.put(JobKind.EXPORT, subject, at=again))


def _keep(tx: Transaction, attempt: AttemptRow, made: list[FileRow], subject: str) -> None:
    """Only what is still missing: retention may have taken the file that it was made of."""
    missing = {file.role for file in _missing(tx, attempt.dataset_id, attempt.version)}
    tx.versions.add_files([file for file in made if file.role in missing])
    tx.jobs.drop(JobKind.EXPORT, subject)


def _missing(tx: Transaction, dataset_id: DatasetId, number: int) -> list[FileRow]:
    return without_csv(tx.versions.files(dataset_id, number))
