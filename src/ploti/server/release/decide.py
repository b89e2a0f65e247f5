"""The review of a candidate: what was found, whether it is held, and why subscribers load it."""

from __future__ import annotations

from collections.abc import Sequence

from ploti.model.admin import Finding
from ploti.model.event import HoldReason
from ploti.model.schema import FIRST, Level, SchemaChange
from ploti.model.version import ResyncReason
from ploti.model.wire import Value
from ploti.server.build.candidate import Base, Candidate, KeyFault
from ploti.server.release.accepted import Accepted, with_accepted
from ploti.server.release.thresholds import measured
from ploti.server.sources.declaration import Holds

_PRECEDENCE = list(HoldReason)


class Verdict(Value, kw_only=True):
    """A review's end: `reason` is None where the candidate is released at once.

    One that is not `matched` has no files yet.
    """

    reason: HoldReason | None
    findings: list[Finding]
    matched: bool


def review(
    candidate: Candidate,
    *,
    base: Base | None,
    holds: Holds,
    accepted: Sequence[Accepted] = (),
) -> Verdict:
    """Whether a candidate is released or held, with all that was found.

    What was accepted by the release of an earlier version holds this one only where it is worse.
    A first version is reviewed for its key alone. Of several reasons the first of `schema_review`,
    `data_check`, `processing` is shown.
    """
    found = [
        *candidate.findings,
        *_schema_findings(candidate.schema_change),
        *_key_findings(candidate.key_fault),
        *_unmatched(candidate),
        *measured(candidate, base=base, holds=holds),
    ]
    findings = with_accepted(found, accepted)
    reasons = [finding.reason for finding in findings if finding.reason is not None]
    return Verdict(
        reason=min(reasons, key=_PRECEDENCE.index, default=None),
        findings=findings,
        matched=candidate.unmatched is None,
    )


def resync_reason(
    change: SchemaChange | None,
    *,
    first: bool,
    ids_changed: bool = False,
    previous_unavailable: bool = False,
) -> ResyncReason | None:
    """Why a version is to be loaded; None for one to apply as changes (R-051 to R-057, S-22)."""
    if ids_changed:
        return ResyncReason.RECORD_IDS_CHANGED
    if first:
        return ResyncReason.FIRST_VERSION
    if change is None:
        return ResyncReason.PREVIOUS_UNAVAILABLE if previous_unavailable else None
    if change.key_columns is not None:
        return ResyncReason.KEY_COLUMNS_CHANGED
    if change.level is Level.MAJOR or previous_unavailable:
        return ResyncReason.SCHEMA_CHANGED
    return None


def schema_version(change: SchemaChange | None, *, base: Base | None) -> str:
    """The schema version of a candidate: its change's, else its base's, else the first."""
    if change is not None:
        return change.to
    return base.schema_version if base else str(FIRST)


def _schema_findings(change: SchemaChange | None) -> list[Finding]:
    if change is None or change.level is Level.MINOR:
        return []
    return [
        Finding(
            reason=HoldReason.SCHEMA_REVIEW,
            kind="schema_major",
            subject=_describe(change),
            message=f"The schema goes from {change.from_} to {change.to}: {_describe(change)}",
        )
    ]


def _describe(change: SchemaChange) -> str:
    parts = [
        *(f"{column.name} is gone" for column in change.removed),
        *(f"{column.name} was {column.from_}, is {column.to}" for column in change.retyped),
    ]
    if change.key_columns:
        parts.append(f"the key is {', '.join(change.key_columns.to) or 'gone'}")
    if change.geometry:
        parts.append("the geometry's column or CRS is another")
    return "; ".join(parts)


def _unmatched(candidate: Candidate) -> list[Finding]:
    """What the matching broke is the finding's subject: its release takes this limit away."""
    if candidate.unmatched is None:
        return []
    return [
        Finding(
            reason=HoldReason.PROCESSING,
            kind="unmatched",
            subject=candidate.limit or "",
            message="The records could not be matched to those of the version before: "
            f"{candidate.unmatched}",
        )
    ]


def _key_findings(fault: KeyFault | None) -> list[Finding]:
    if fault is None:
        return []
    parts = []
    if fault.repeated_keys:
        parts.append(f"keys that repeat: {fault.repeated_keys}")
    if fault.null_rows:
        parts.append(f"rows without a key: {fault.null_rows}")
    return [
        Finding(
            reason=HoldReason.DATA_CHECK,
            kind="key_fault",
            message=f"The key does not tell the rows apart; {', '.join(parts)}",
            examples=fault.examples,
            measure=fault.repeated_keys + fault.null_rows,
        )
    ]
