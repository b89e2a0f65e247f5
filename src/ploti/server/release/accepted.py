"""Findings that a release accepted: they hold a later version only where they are worse."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from ploti.model.admin import Finding
from ploti.model.event import HoldReason
from ploti.model.ids import DatasetId, HoldId, MemberId
from ploti.model.wire import Instant, Value

_LEEWAY = 0.1
_LESS_IS_WORSE = {"few_rows", "emptied"}


class Accepted(Value, kw_only=True):
    """What the release of a version that was held for it accepted, and who released it."""

    id: str
    dataset_id: DatasetId
    kind: str
    subject: str
    measure: float | None
    message: str
    hold_id: HoldId
    accepted_at: Instant
    accepted_by: MemberId
    note: str | None


def with_accepted(findings: Iterable[Finding], accepted: Iterable[Accepted]) -> list[Finding]:
    """The findings, of which those that were accepted and are not worse give no reason to hold."""
    known = {(each.kind, each.subject): each.measure for each in accepted}
    return [
        replace(finding, reason=None, accepted=True) if _is_accepted(finding, known) else finding
        for finding in findings
    ]


def is_acceptable(finding: Finding) -> bool:
    """Whether a release accepts what a finding says; never that records were not matched (S-26)."""
    return finding.reason not in {None, HoldReason.PROCESSING}


def _is_accepted(finding: Finding, known: dict[tuple[str, str], float | None]) -> bool:
    place = (finding.kind, finding.subject)
    if not is_acceptable(finding) or place not in known:
        return False
    before, now = known[place], finding.measure
    if before is None or now is None:
        return True
    if finding.kind in _LESS_IS_WORSE:
        return now >= before * (1 - _LEEWAY)
    return now <= before * (1 + _LEEWAY)
