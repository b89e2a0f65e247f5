"""A held version whose records could not be matched, matched without the limit that this broke."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from ploti.errors import Conflict, SourceError
from ploti.model.admin import Finding, HoldState
from ploti.model.event import HoldReason
from ploti.model.ids import HoldId
from ploti.model.wire import Instant
from ploti.server.build.candidate import Broken, BuildResult, Candidate, Unchanged
from ploti.server.build.limits import Limit
from ploti.server.ports.outside import Fetched, StoredBlob
from ploti.server.ports.rows import FileRow, HoldRow, StateRow, VersionContent
from ploti.server.ports.store import Transaction
from ploti.server.release.decide import review, schema_version
from ploti.server.release.known import Role
from ploti.server.service.check_source import (
    Parts,
    adopt_files,
    build_job,
    close_attempts,
    open_attempt,
)
from ploti.server.service.plan_check import Job, prepare
from ploti.server.service.release_version import propose_links
from ploti.server.service.review_hold import find_hold


async def match_held(parts: Parts, hold_id: HoldId) -> None:
    """Match the records of an open hold whose matching ended early, before its release (S-26).

    Nothing is done for another one. Raises NotFound, and Conflict where the records could not be
    matched again: the version stays held then.
    """
    hold = await parts.store.read(lambda tx: find_hold(tx, hold_id).hold)
    if not hold.matched and hold.state is HoldState.OPEN:
        async with parts.turns.of(hold.dataset_id):
            await _match(parts, hold)


async def _match(parts: Parts, hold: HoldRow) -> None:
    state = await parts.store.read(lambda tx: tx.states.of(hold.dataset_id)[Role.ON_HOLD])
    attempt = await open_attempt(parts, hold.dataset_id, reads=state.blob, number=hold.version)
    try:
        job = await parts.store.read(
            partial(prepare, attempt=attempt, now=parts.clock.now(), source=None)
        )
        job = replace(
            job, lifted=broken_limit(hold.findings), always=job.dataset.released_again is not None
        )
        async with parts.builder.folder() as folder:
            built = _matched(await build_job(parts, job, _fetched(state), folder), hold)
            files = await adopt_files(parts.blobs, attempt, built.files, folder)
            now = parts.clock.now()
            await parts.store.write(lambda tx: _keep(tx, job, hold, built, files, now=now))
    except SourceError as error:
        raise _stays(hold, error.detail) from error
    finally:
        await close_attempts(parts, [attempt])


def broken_limit(findings: list[Finding]) -> Limit | None:
    """The limit that a hold's matching broke; None where it failed otherwise."""
    for finding in findings:
        if finding.reason is HoldReason.PROCESSING and finding.subject:
            return Limit(finding.subject)
    return None


def _fetched(state: StateRow) -> Fetched:
    blob = StoredBlob(name=state.blob or "", bytes=0, sha256=state.sha256)
    return Fetched(blob=blob, name=state.name, validators=state.validators)


def _matched(result: BuildResult, hold: HoldRow) -> Candidate:
    match result:
        case Broken(detail=detail):
            raise _stays(hold, detail)
        case Unchanged():
            raise _stays(hold, "its records are those of the current version: discard it")
        case Candidate(unmatched=None):
            return result
        case Candidate(unmatched=why):
            raise _stays(hold, f"its records could not be matched again: {why}")


def _stays(hold: HoldRow, why: str) -> Conflict:
    return Conflict(f"{hold.id} stays on hold: {why}")


def _keep(
    tx: Transaction,
    job: Job,
    hold: HoldRow,
    built: Candidate,
    files: list[FileRow],
    *,
    now: Instant,
) -> None:
    """The held version with what the matching made of it; still on hold."""
    dataset = tx.datasets.lock(hold.dataset_id)
    version = tx.versions.get(hold.dataset_id, hold.version)
    stands = dataset is not None and tx.holds.open_of(hold.dataset_id) == hold
    if version is None or not stands or version.previous_version != _number(job):
        raise Conflict(f"{hold.id} changed while its records were matched: look at it again")
    verdict = review(
        built, base=job.base, holds=job.dataset.declaration.holds, accepted=job.accepted
    )
    filled = replace(
        version,
        attempt_id=job.attempt.id,
        schema_version=schema_version(built.schema_change, base=job.base),
        schema_change=built.schema_change,
        counts=built.counts,
        content_digest=built.content_digest,
    )
    tx.versions.fill(
        filled,
        content=VersionContent(schema=built.schema, buckets=built.buckets),
        files=files,
    )
    propose_links(tx, filled, built.proposed, now=now)
    tx.holds.save(replace(hold, matched=True, findings=verdict.findings))


def _number(job: Job) -> int | None:
    return job.base.version if job.base else None
