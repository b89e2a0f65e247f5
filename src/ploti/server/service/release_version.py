"""A built version takes its number; from there it is released, or its hold ends otherwise."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from ploti.model.admin import HoldState, ProposalKind, ProposalState
from ploti.model.ids import DatasetId, ProposalId
from ploti.model.wire import Instant
from ploti.server.build.candidate import Base, Candidate, FileRole, Proposed
from ploti.server.build.matching.question import Continuation
from ploti.server.eventlog.drafts import Release, released
from ploti.server.ports.proposals import ProposalRow
from ploti.server.ports.rows import (
    AttemptId,
    DatasetRow,
    FileRow,
    HoldRow,
    JobKind,
    StateRow,
    VersionContent,
    VersionRow,
    VersionState,
)
from ploti.server.ports.store import Transaction
from ploti.server.release.decide import resync_reason, schema_version
from ploti.server.release.known import Role

_LOOK_LATER = timedelta(minutes=10)
"""When after a release it is looked at what it added: versions in between are looked at as one."""

_ENDS = {
    HoldState.RELEASED: VersionState.RELEASED,
    HoldState.DISCARDED: VersionState.DISCARDED,
    HoldState.REPLACED: VersionState.REPLACED,
}


def take_number(
    tx: Transaction,
    dataset: DatasetRow,
    candidate: Candidate,
    *,
    base: Base | None,
    state: StateRow,
    files: list[FileRow],
    now: Instant,
) -> VersionRow:
    """Keep a candidate as the next version of a dataset that is locked, not released yet.

    `state` is the source's, in the role of the one on hold. The number is never used again.
    """
    version = VersionRow(
        dataset_id=dataset.id,
        version=dataset.next_number,
        state=VersionState.HELD,
        attempt_id=state.attempt_id,
        previous_version=dataset.current_version,
        schema_version=schema_version(candidate.schema_change, base=base),
        schema_change=candidate.schema_change,
        row_count=candidate.row_count,
        counts=candidate.counts,
        reason=None,
        content_digest=candidate.content_digest,
        built_at=now,
        published_at=None,
        source_fetched_at=state.fetched_at,
    )
    content = VersionContent(schema=candidate.schema, buckets=candidate.buckets)
    tx.versions.add(version, content=content, files=files)
    propose_links(tx, version, candidate.proposed, now=now)
    tx.states.put(state)
    tx.datasets.save(replace(dataset, next_number=version.version + 1))
    return version


def propose_links(
    tx: Transaction, version: VersionRow, proposed: Proposed | None, *, now: Instant
) -> None:
    """Keep what the matching of a version proposes, until the version is released."""
    if proposed is not None:
        attempt = version.attempt_id
        of = version.dataset_id, version.version
        tx.proposals.add(make_proposal(attempt, proposed, of=of, now=now))


def make_proposal(
    attempt: AttemptId, proposed: Proposed, *, of: tuple[DatasetId, int], now: Instant
) -> ProposalRow:
    """What an attempt found of a version, which waits for its release; the id tells the attempt."""
    dataset_id, version = of
    return ProposalRow(
        id=ProposalId(f"prop_{attempt.removeprefix('att_')}"),
        dataset_id=dataset_id,
        kind=ProposalKind.CONTINUE,
        state=ProposalState.WAITING,
        version=version,
        column=None,
        proposed=proposed,
        made_at=now,
        made_by=None,
    )


def attempt_of(proposal: ProposalRow) -> AttemptId:
    """The attempt that left the links of what it found."""
    return AttemptId(f"att_{proposal.id.removeprefix('prop_')}")


def plan_look(tx: Transaction, dataset: DatasetRow, *, now: Instant) -> None:
    """Have what releases added looked at later, unless that is planned already."""
    if not tx.jobs.is_planned(JobKind.LOOK_BACK, dataset.id):
        tx.jobs.put(JobKind.LOOK_BACK, dataset.id, at=Instant.of(now + _LOOK_LATER))


def release_version(tx: Transaction, version: VersionRow, *, now: Instant) -> VersionRow:
    """Make a version that has its number the current one, and tell every subscription.

    Its dataset is locked. What was discarded last is forgotten (S-27), and the source's state that
    was current loses its use. Of the lists of removed records the base's is kept besides, since a
    build may still read it.
    """
    dataset = tx.datasets.get(version.dataset_id)
    if dataset is None or dataset.current_version != version.previous_version:
        raise RuntimeError(f"version {version.version} of {version.dataset_id} lost its base")
    files = tx.versions.files(version.dataset_id, version.version)
    reason = resync_reason(
        version.schema_change,
        first=version.previous_version is None,
        ids_changed=any(file.role is FileRole.ID_MAP for file in files),
        previous_unavailable=dataset.released_again is not None,
    )
    if reason is not None:
        tx.versions.drop_changes(version.dataset_id, version.version)
        tx.builds.end(version.attempt_id)
    current = replace(version, state=VersionState.RELEASED, reason=reason, published_at=now)
    tx.versions.save(current)
    tx.datasets.save(replace(dataset, current_version=version.version, released_again=None))
    _make_current(tx, version)
    for proposal in tx.proposals.of_version(version.dataset_id, version.version):
        tx.proposals.save(replace(proposal, state=ProposalState.OPEN, made_at=now))
    off = dataset.declaration.continuation == Continuation.OFF
    if version.previous_version and not off and (version.counts is None or version.counts.added):
        plan_look(tx, dataset, now=now)
    for attempt in tx.versions.drop_gone(version.dataset_id, before=version.previous_version or 0):
        tx.builds.end(attempt)
    drafts = released(
        Release(
            dataset_id=version.dataset_id,
            version=version.version,
            previous_version=version.previous_version,
            schema_version=version.schema_version,
            schema_change=version.schema_change,
            counts=version.counts,
            reason=reason,
        )
    )
    tx.log.append_to_members(drafts, dataset_id=version.dataset_id, now=now)
    return current


def end_hold(
    tx: Transaction,
    hold: HoldRow,
    end: HoldState,
    *,
    by: str | None,
    note: str | None,
    now: Instant,
) -> None:
    """End an open hold: release its version, or give up its files and its source state."""
    version = tx.versions.get(hold.dataset_id, hold.version)
    if version is None:
        raise RuntimeError(f"{hold.id} holds a version that is not there")
    tx.holds.save(replace(hold, state=end, decided_at=now, decided_by=by, note=note or None))
    if end is HoldState.RELEASED:
        release_version(tx, version, now=now)
        return
    for proposal in tx.proposals.of_version(version.dataset_id, version.version):
        tx.proposals.drop(proposal.id)
    tx.versions.save(replace(version, state=_ENDS[end]))
    tx.versions.drop_files(version.dataset_id, version.version)
    _give_up_state(tx, version, remember=end is HoldState.DISCARDED)


def _make_current(tx: Transaction, version: VersionRow) -> None:
    states = tx.states.of(version.dataset_id)
    if Role.CURRENT in states:
        tx.builds.end(states[Role.CURRENT].attempt_id)
    tx.states.put(replace(states[Role.ON_HOLD], role=Role.CURRENT))
    tx.states.drop(version.dataset_id, Role.ON_HOLD)
    tx.states.drop(version.dataset_id, Role.DISCARDED)


def _give_up_state(tx: Transaction, version: VersionRow, *, remember: bool) -> None:
    state = tx.states.of(version.dataset_id)[Role.ON_HOLD]
    tx.states.drop(version.dataset_id, Role.ON_HOLD)
    if remember:
        tx.states.put(replace(state, role=Role.DISCARDED, blob=None))
    tx.builds.end(state.attempt_id)
