"""Ids replaced as a proposal says: the current version's records under other ids, released."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from ploti.errors import Conflict, SourceError
from ploti.model.admin import Outcome, OutcomeKind, ProposalKind, ProposalState
from ploti.model.ids import ProposalId
from ploti.model.wire import Instant
from ploti.server.build.candidate import Broken, BuildResult, Candidate, FileRole, Replacement
from ploti.server.membership.principal import Principal
from ploti.server.ports.outside import Fetched, StoredBlob
from ploti.server.ports.proposals import ProposalRow
from ploti.server.ports.rows import AttemptRow, DatasetRow, FileRow, StateRow
from ploti.server.ports.store import Transaction
from ploti.server.release.known import Role
from ploti.server.service.check_source import (
    Parts,
    adopt_files,
    build_job,
    close_attempts,
    open_attempt,
)
from ploti.server.service.plan_check import Job, prepare
from ploti.server.service.propose_ids import find_open, keep_decided
from ploti.server.service.release_version import release_version, take_number
from ploti.server.service.show_dataset import find_dataset


async def approve_proposal(
    parts: Parts, proposal_id: ProposalId, *, by: Principal, note: str
) -> Outcome:
    """Build and release the current version's records under the ids proposed (S-25).

    It is a version even though the source is unchanged, to be loaded, with the map that leads from
    the ids before (R-059, R-104). Raises NotFound; Conflict where the proposal was decided, a
    version waits for review, or the ids cannot be replaced as proposed.
    """
    proposal = await parts.store.read(lambda tx: find_open(tx, proposal_id))
    async with parts.turns.of(proposal.dataset_id):
        state = await parts.store.read(lambda tx: _current_state(tx, proposal))
        attempt = await open_attempt(parts, proposal.dataset_id, reads=state.blob)
        try:
            return await _replace(parts, proposal, state, attempt, by=by, note=note)
        except SourceError as error:
            raise Conflict(f"{proposal_id} cannot be carried out: {error.detail}") from error
        finally:
            await close_attempts(parts, [attempt])


async def _replace(
    parts: Parts,
    proposal: ProposalRow,
    state: StateRow,
    attempt: AttemptRow,
    *,
    by: Principal,
    note: str,
) -> Outcome:
    job = await parts.store.read(
        partial(prepare, attempt=attempt, now=parts.clock.now(), source=None)
    )
    if job.hold is not None:
        raise Conflict(
            f"Version {job.hold.version} of {proposal.dataset_id} waits for review:"
            f" release or discard {job.hold.id} first"
        )
    replaces = await parts.store.read(lambda tx: _replacement(tx, proposal))
    job = replace(job, replaces=replaces, matched_to=None)
    async with parts.builder.folder() as folder:
        built = _built(await build_job(parts, job, _fetched(state), folder), proposal)
        files = await adopt_files(parts.blobs, attempt, built.files, folder)
        now = parts.clock.now()
        ended = replace(
            proposal,
            state=ProposalState.APPROVED,
            decided_at=now,
            decided_by=by.member_id,
            note=note or None,
        )
        return await parts.store.write(lambda tx: _settle(tx, job, ended, built, files, now=now))


def _current_state(tx: Transaction, proposal: ProposalRow) -> StateRow:
    state = tx.states.of(find_dataset(tx, proposal.dataset_id).id).get(Role.CURRENT)
    if state is None or state.blob is None:
        raise Conflict(f"The source state of {proposal.dataset_id}'s current version is not kept")
    return state


def _replacement(tx: Transaction, proposal: ProposalRow) -> Replacement:
    """What the child is told; `links` is the name of a blob until a path is put in its place."""
    if proposal.kind is ProposalKind.REPLACE:
        return Replacement(version=proposal.version, column=proposal.column)
    files = tx.versions.files(proposal.dataset_id, proposal.version)
    links = next(file.blob for file in files if file.role is FileRole.LINKS)
    return Replacement(version=proposal.version, links=links)


def _fetched(state: StateRow) -> Fetched:
    blob = StoredBlob(name=state.blob or "", bytes=0, sha256=state.sha256)
    return Fetched(blob=blob, name=state.name, validators=state.validators)


def _built(result: BuildResult, proposal: ProposalRow) -> Candidate:
    match result:
        case Candidate():
            return result
        case Broken(detail=detail):
            raise Conflict(f"{proposal.id} cannot be carried out: {detail}")
        case _:
            raise Conflict(
                f"{proposal.id} would change nothing any more: none of its records is there still"
            )


def _settle(
    tx: Transaction,
    job: Job,
    ended: ProposalRow,
    built: Candidate,
    files: list[FileRow],
    *,
    now: Instant,
) -> Outcome:
    dataset = tx.datasets.lock(ended.dataset_id)
    find_open(tx, ended.id)
    if dataset is None or _stands(dataset) != _stands(job.dataset):
        raise Conflict(f"{ended.dataset_id} changed meanwhile: approve {ended.id} again")
    state = replace(_current_state(tx, ended), role=Role.ON_HOLD, attempt_id=job.attempt.id)
    keep_decided(tx, ended)
    version = take_number(tx, dataset, built, base=job.base, state=state, files=files, now=now)
    release_version(tx, version, now=now)
    return Outcome(
        outcome=OutcomeKind.RELEASED,
        version=version.version,
        counts=built.counts,
        hold=None,
        detail=f"{_replaced(files)} records have other ids; the version's id map leads there",
    )


def _stands(dataset: DatasetRow) -> tuple[int | None, ...]:
    return dataset.next_number, dataset.current_version


def _replaced(files: list[FileRow]) -> int:
    return next(file.rows for file in files if file.role is FileRole.ID_MAP)
