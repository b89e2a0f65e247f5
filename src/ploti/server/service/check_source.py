"""One look at a source, or one state pushed: bytes, build, decision, end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace

from ploti.errors import Conflict, SourceError, TooLarge, Unavailable
from ploti.model.admin import Outcome, OutcomeKind
from ploti.model.ids import DatasetId
from ploti.model.wire import Instant
from ploti.server.build.candidate import Base, BuildOrder, BuildResult, BuiltFile, Replacement
from ploti.server.build.progress import Tell
from ploti.server.ports.measures import Meters
from ploti.server.ports.outside import Blobs, Builder, Clock, Fetched, Fetcher, Ids, Plans
from ploti.server.ports.rows import AttemptId, AttemptRow, FileRow
from ploti.server.ports.store import Store, Transaction
from ploti.server.service.note_progress import noting
from ploti.server.service.plan_check import (
    Job,
    Plan,
    Take,
    plan,
    prepare,
    recognise,
    trusted_state,
)
from ploti.server.service.plan_jobs import plan_retry
from ploti.server.service.prune_old import plan_pruning
from ploti.server.service.raise_alert import alert_failing
from ploti.server.service.send_alert import Alerting
from ploti.server.service.settle_check import Arrival, settle
from ploti.server.service.show_dataset import find_dataset, lock_dataset
from ploti.server.service.sweep_blobs import file_blob, source_blob, sweep_blobs
from ploti.server.service.tell_outcome import failed, outcome
from ploti.server.service.watch_disk import expect_room
from ploti.server.sources.source import Source

_ROUNDS = 5
"""How often a build is done again when a review or a declaration comes between."""


class Turns:
    """One check at a time of each dataset; others wait."""

    def __init__(self) -> None:
        self._locks: dict[DatasetId, asyncio.Lock] = {}

    def of(self, dataset_id: DatasetId) -> asyncio.Lock:
        """The lock of a dataset."""
        return self._locks.setdefault(dataset_id, asyncio.Lock())


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a check needs of the world.

    `max_source` is the most bytes of a state, `min_free` how many must be free for a check to
    begin; `alerting` is None where the operator wants no alerts.
    """

    store: Store
    blobs: Blobs
    fetcher: Fetcher
    builder: Builder
    clock: Clock
    ids: Ids
    plans: Plans
    meters: Meters
    max_source: int
    min_free: int = 0
    alerting: Alerting | None = None
    turns: Turns = field(default_factory=Turns)


Bring = Callable[[str, Tell], Awaitable[Arrival]]
"""Brings a state's bytes into the blob of this name, and tells how far it is.

Raises SourceError with the reason.
"""


async def check_source(parts: Parts, dataset_id: DatasetId, *, full: bool = False) -> Outcome:
    """Look at a dataset's source now, and release or hold what is new.

    The source is asked whether the state that it is known by still stands; `full` reads it whole.
    Raises NotFound, Conflict for a dataset without a source, and Unavailable where the disk has
    too little room. What keeps the source from being read is an outcome, not an error.
    """
    source = (await parts.store.read(lambda tx: find_dataset(tx, dataset_id))).declaration.source
    if source.kind is None:
        raise Conflict(f"{dataset_id} has no source to check: push a state instead")

    await _expect_room(parts)

    async def bring(into: str, tell: Tell) -> Arrival:
        now = parts.clock.now()
        state = None
        if not full:
            state = await parts.store.read(lambda tx: trusted_state(tx, dataset_id, now=now))
        known = state.validators if state else None
        found = await parts.fetcher.fetch(source, into=into, known=known, tell=tell)
        if isinstance(found, Fetched):
            return _arrived(parts, found)
        if state is None:
            raise SourceError("The source says that nothing changed, and was not asked")
        return Arrival(fetched=None, sha256=state.sha256, fetched_at=parts.clock.now())

    ended = await carry_out(parts, dataset_id, bring, source=source)
    if ended.outcome is OutcomeKind.FAILED:
        now = parts.clock.now()
        await parts.store.write(lambda tx: _note_failure(tx, dataset_id, ended.detail, now=now))
    return ended


async def push_state(
    parts: Parts,
    dataset_id: DatasetId,
    *,
    name: str,
    chunks: AsyncIterator[bytes],
    dry_run: bool,
) -> Outcome:
    """Take bytes, called `name`, as the source's new state, and release or hold it.

    A dry run does the whole build and keeps nothing. Raises NotFound, TooLarge for a state over
    the limit, and Unavailable where the disk has too little room.
    """
    await _expect_room(parts)

    async def bring(into: str, tell: Tell) -> Arrival:
        del tell  # the one who sends them knows how many there are
        try:
            blob = await parts.blobs.receive(into, chunks, limit=parts.max_source)
        except SourceError as error:
            raise TooLarge(error.detail) from error
        return _arrived(parts, Fetched(blob=blob, name=name))

    await parts.store.read(lambda tx: find_dataset(tx, dataset_id))
    return await carry_out(parts, dataset_id, bring, dry_run=dry_run)


async def _expect_room(parts: Parts) -> None:
    await expect_room(parts.store, parts.blobs, parts.clock, needed=parts.min_free)


async def end_left_attempts(parts: Parts) -> None:
    """At the start: end what a crash left open, let its jobs go, and remove what it left."""
    now = parts.clock.now()

    def end(tx: Transaction) -> None:
        tx.builds.end_open()
        tx.jobs.free(now=now)
        plan_pruning(tx, now=now)

    await parts.store.write(end)
    await sweep_blobs(parts.store, parts.blobs)


def _note_failure(tx: Transaction, dataset_id: DatasetId, detail: str, *, now: Instant) -> None:
    """Keep since when a source fails, and plan the next try; `last_checked_at` stays (S-08)."""
    dataset = lock_dataset(tx, dataset_id)
    failing = replace(
        dataset,
        failing_since=dataset.failing_since or now,
        failures=dataset.failures + 1,
        failure=detail,
    )
    tx.datasets.save(failing)
    plan_retry(tx, failing, now=now)
    if dataset.failing_since is None:
        alert_failing(tx, failing, now=now)


async def carry_out(
    parts: Parts,
    dataset_id: DatasetId,
    bring: Bring,
    *,
    source: Source | None = None,
    dry_run: bool = False,
    reads: str | None = None,
    always: bool = False,
    restores: int | None = None,
) -> Outcome:
    """Bring a state, build it and settle what becomes of it, one at a time of each dataset.

    `source` is where the state comes from, `reads` the blob that it is in already; with `always` it
    ends as a version, even where nothing differs. `restores` is the version whose snapshot it is.
    """
    async with parts.turns.of(dataset_id):
        opened = [await open_attempt(parts, dataset_id, reads=reads)]
        try:
            async with noting(parts.store, opened[0]) as tell:
                arrival = await bring(opened[0].source_blob, tell)
            for _ in range(_ROUNDS):
                job = await parts.store.read(
                    partial(
                        prepare,
                        attempt=opened[-1],
                        now=parts.clock.now(),
                        source=source,
                        always=always,
                        restores=restores,
                    )
                )
                ended = await _round(parts, job, arrival, dry_run=dry_run)
                if ended is not None:
                    return _counted(parts, ended, dry_run=dry_run)
                opened.append(await open_attempt(parts, dataset_id, reads=opened[-1].source_blob))
            raise Unavailable(f"{dataset_id} was changed again and again meanwhile: try again")
        except SourceError as error:
            detail = error.detail
            hold = await parts.store.read(lambda tx: tx.holds.open_of(dataset_id))
            return _counted(parts, failed(detail, hold=hold), dry_run=dry_run)
        finally:
            await close_attempts(parts, opened)


def _counted(parts: Parts, ended: Outcome, *, dry_run: bool) -> Outcome:
    if not dry_run:
        parts.meters.ended(ended.outcome)
    return ended


def _arrived(parts: Parts, fetched: Fetched) -> Arrival:
    return Arrival(fetched=fetched, sha256=fetched.blob.sha256, fetched_at=parts.clock.now())


async def close_attempts(parts: Parts, opened: list[AttemptRow]) -> None:
    """End a check's attempts, and remove what they left and what lost its use by them."""

    def end(tx: Transaction) -> None:
        for attempt in opened:
            tx.builds.end(attempt.id)

    await parts.store.write(end)
    await sweep_blobs(parts.store, parts.blobs)


async def open_attempt(
    parts: Parts, dataset_id: DatasetId, *, reads: str | None = None, number: int | None = None
) -> AttemptRow:
    """Record an attempt before its first byte; one that starts again reads the same blob.

    It builds the version `number`, or the one whose number is next.
    """
    attempt_id = AttemptId(parts.ids.token("att_"))

    def open_attempt(tx: Transaction) -> AttemptRow:
        attempt = AttemptRow(
            id=attempt_id,
            dataset_id=dataset_id,
            version=number or find_dataset(tx, dataset_id).next_number,
            source_blob=reads or source_blob(dataset_id, attempt_id),
            started_at=parts.clock.now(),
        )
        tx.builds.add(attempt)
        return attempt

    return await parts.store.write(open_attempt)


async def _round(parts: Parts, job: Job, arrival: Arrival, *, dry_run: bool) -> Outcome | None:
    """One build, and its end; None where what it rested on moved meanwhile."""
    async with AsyncExitStack() as stack:
        planned: Plan | None = recognise(job, arrival.sha256)
        files: list[FileRow] = []
        if planned is None:
            if arrival.fetched is None:
                raise Unavailable("What the source was known by changed meanwhile: check again")
            folder = await stack.enter_async_context(parts.builder.folder())
            planned = plan(job, await build_job(parts, job, arrival.fetched, folder))
            if isinstance(planned, Take) and not dry_run:
                files = await adopt_files(parts.blobs, job.attempt, planned.candidate.files, folder)
    if dry_run:
        return outcome(job, planned)
    now = parts.clock.now()
    hold_id = parts.ids.hold()
    ended = replace(arrival, files=files)
    return await parts.store.write(
        lambda tx: settle(tx, job, planned, ended, hold_id=hold_id, now=now)
    )


async def build_job(parts: Parts, job: Job, fetched: Fetched, folder: str) -> BuildResult:
    """Build what a job says out of the bytes fetched, in a folder of its own."""
    async with AsyncExitStack() as stack:
        base, matched_to = [
            each and await _brought(parts.blobs, each, stack) for each in (job.base, job.matched_to)
        ]
        source = await stack.enter_async_context(parts.blobs.local(fetched.blob.name))
        order = BuildOrder(
            dataset_id=job.dataset.id,
            declaration=job.dataset.declaration,
            version=job.attempt.version,
            base=base,
            source=source,
            source_name=fetched.name,
            folder=folder,
            always=job.always,
            restores=job.restores and replace(job.restores, snapshot=source),
            matched_to=matched_to,
            gone_since=job.gone_since,
            replaces=job.replaces and await _brought_links(parts.blobs, job.replaces, stack),
            id_maps=[
                await stack.enter_async_context(parts.blobs.local(name)) for name in job.id_maps
            ],
            lifted=job.lifted,
        )
        tell = await stack.enter_async_context(noting(parts.store, job.attempt))
        return await parts.builder.build(order, tell=tell)


async def _brought_links(blobs: Blobs, replaces: Replacement, stack: AsyncExitStack) -> Replacement:
    links = replaces.links and await stack.enter_async_context(blobs.local(replaces.links))
    return replace(replaces, links=links)


async def _brought(blobs: Blobs, base: Base, stack: AsyncExitStack) -> Base:
    """A base with paths in place of the names of its blobs."""
    snapshot = await stack.enter_async_context(blobs.local(base.snapshot))
    gone = base.gone and await stack.enter_async_context(blobs.local(base.gone))
    return replace(base, snapshot=snapshot, gone=gone)


async def adopt_files(
    blobs: Blobs, attempt: AttemptRow, built: list[BuiltFile], folder: str
) -> list[FileRow]:
    """Keep what a child left as blobs below its attempt; their rows."""
    rows: list[FileRow] = []
    for file in built:
        if "/" in file.name:
            raise SourceError(f"The build named a file outside its folder: {file.name}")
        name = file_blob(attempt, file.name)
        await blobs.adopt(name, f"{folder}/{file.name}")
        rows.append(_file_row(attempt, file, name))
    return rows


def _file_row(attempt: AttemptRow, file: BuiltFile, blob: str) -> FileRow:
    return FileRow(
        dataset_id=attempt.dataset_id,
        version=attempt.version,
        role=file.role,
        format=file.format,
        blob=blob,
        rows=file.rows,
        bytes=file.bytes,
        sha256=file.sha256,
    )
