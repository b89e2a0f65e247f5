"""What a check tells the one who asked for it."""

from __future__ import annotations

from typing import assert_never

from ploti.model.admin import HoldRef, Outcome, OutcomeKind
from ploti.model.ids import HoldId
from ploti.model.version import Counts
from ploti.server.build.columns import missing_key
from ploti.server.ports.rows import HoldRow
from ploti.server.release.known import Role
from ploti.server.service.plan_check import Failed, Job, Plan, Same, Take


def outcome(job: Job, planned: Plan, *, hold_id: HoldId | None = None) -> Outcome:
    """What a check tells; without an id for a hold that it would open, as a dry run tells it."""
    match planned:
        case Failed(detail=detail):
            return failed(detail, hold=job.hold)
        case Same(role=role):
            return _unchanged(job, role)
        case Take(verdict=verdict):
            told = _released if verdict.reason is None else _held
            return told(job, planned, hold_id)
        case _:
            assert_never(planned)


def failed(detail: str, *, hold: HoldRow | None) -> Outcome:
    """What a check tells whose source could not be read."""
    return _told(OutcomeKind.FAILED, detail, hold=_ref(hold))


def _unchanged(job: Job, role: Role) -> Outcome:
    current = job.dataset.current_version
    match role:
        case Role.CURRENT:
            detail = f"The source is as in version {current}, which is current"
            if job.hold is not None:
                detail += f"; version {job.hold.version}, which waited for review, is discarded"
            if job.base is not None:
                names = [column.name for column in job.base.schema.columns]
                said = missing_key(job.dataset.declaration, names)
                detail += f". But {said}" if said else ""
            return _told(OutcomeKind.UNCHANGED, detail, version=current)
        case Role.ON_HOLD:
            detail = "The source is as in the version that waits for review"
        case Role.DISCARDED:
            detail = "The source is as in the version that was discarded last"
        case _:
            assert_never(role)
    return _told(OutcomeKind.UNCHANGED, detail, version=current, hold=_ref(job.hold))


def _released(job: Job, taken: Take, _hold_id: HoldId | None) -> Outcome:
    counts = taken.candidate.counts
    detail = f"{taken.candidate.row_count} rows"
    if counts is not None:
        detail += f": {counts.added} added, {counts.changed} changed, {counts.removed} removed"
    hints = [finding.message for finding in taken.verdict.findings]
    detail = ". ".join([detail, *hints])
    return _told(OutcomeKind.RELEASED, detail, version=job.dataset.next_number, counts=counts)


def _held(job: Job, taken: Take, hold_id: HoldId | None) -> Outcome:
    verdict = taken.verdict
    found = [finding.message for finding in verdict.findings if finding.reason is not None]
    reference = None
    if hold_id is not None and verdict.reason is not None:
        reference = HoldRef(id=hold_id, reason=verdict.reason)
    return _told(
        OutcomeKind.HELD,
        f"Waits for review ({verdict.reason}). {'. '.join(found)}",
        version=job.dataset.next_number,
        counts=taken.candidate.counts,
        hold=reference,
    )


def _ref(hold: HoldRow | None) -> HoldRef | None:
    return None if hold is None else HoldRef(id=hold.id, reason=hold.reason)


def _told(
    kind: OutcomeKind,
    detail: str,
    *,
    version: int | None = None,
    counts: Counts | None = None,
    hold: HoldRef | None = None,
) -> Outcome:
    return Outcome(outcome=kind, version=version, counts=counts, hold=hold, detail=detail)
