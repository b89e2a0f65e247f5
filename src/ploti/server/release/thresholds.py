"""A version measured against its base: what falls, turns over, empties or strays."""

from __future__ import annotations

from ploti.model.admin import Finding
from ploti.model.event import HoldReason
from ploti.server.build.candidate import Base, Candidate
from ploti.server.build.measures import Measures
from ploti.server.sources.declaration import Holds

ENOUGH = 20
"""A threshold needs at least this many records to say anything (domain, 'Holds')."""


def measured(candidate: Candidate, *, base: Base | None, holds: Holds) -> list[Finding]:
    """All that the dataset's thresholds hold a candidate for; a first version passes them all."""
    if base is None:
        return []
    findings = []
    if base.row_count >= ENOUGH:
        findings += _few_rows(candidate.row_count, base=base, ratio=holds.min_row_ratio)
        findings += _turnover(candidate, base=base, most=holds.max_id_turnover)
    if candidate.before and candidate.after:
        findings += _emptied(candidate.before, candidate.after, ratio=holds.min_filled_ratio)
        findings += _strayed(candidate.before, candidate.after, most=holds.max_extent_shift)
    return findings


def _few_rows(rows: int, *, base: Base, ratio: float | None) -> list[Finding]:
    if ratio is None or rows >= ratio * base.row_count:
        return []
    return [
        Finding(
            reason=HoldReason.DATA_CHECK,
            kind="few_rows",
            message=f"{rows} rows, where the version before has {base.row_count}: "
            f"less than {ratio:.0%} of them",
            measure=rows,
        )
    ]


def _turnover(candidate: Candidate, *, base: Base, most: float | None) -> list[Finding]:
    if most is None or candidate.counts is None:
        return []
    removed = candidate.counts.removed
    if removed <= most * base.row_count:
        return []
    return [
        Finding(
            reason=HoldReason.DATA_CHECK,
            kind="id_turnover",
            message=f"{removed} of {base.row_count} record ids would go: more than {most:.0%}",
            measure=removed / base.row_count,
        )
    ]


def _emptied(before: Measures, after: Measures, *, ratio: float | None) -> list[Finding]:
    """A finding a column whose share of values that are not null fell to the ratio or below."""
    if ratio is None or not after.rows:
        return []
    findings = []
    for name in before.filled.keys() & after.filled.keys():
        was, now = before.filled[name] / before.rows, after.filled[name] / after.rows
        if before.filled[name] >= ENOUGH and now < was and now <= ratio * was:
            findings.append(
                Finding(
                    reason=HoldReason.DATA_CHECK,
                    kind="emptied",
                    subject=name,
                    message=f"{name} has values in {now:.1%} of the rows, where {was:.1%} had one",
                    measure=now,
                )
            )
    return sorted(findings, key=lambda finding: finding.subject)


def _strayed(before: Measures, after: Measures, *, most: float | None) -> list[Finding]:
    """A finding where the box reaches beyond the base's by more than that one's own size."""
    if most is None or before.box is None or after.box is None or before.rows < ENOUGH:
        return []
    (left, low, right, high), (new_left, new_low, new_right, new_high) = before.box, after.box
    size = max(right - left, high - low)
    beyond = max(left - new_left, low - new_low, new_right - right, new_high - high)
    if not size or beyond <= most * size:
        return []
    return [
        Finding(
            reason=HoldReason.DATA_CHECK,
            kind="extent_shift",
            message=f"The box reaches {beyond / size:.1f} times its size beyond that of the "
            "version before",
            examples=[f"before: {_shown(before.box)}", f"now: {_shown(after.box)}"],
            measure=beyond / size,
        )
    ]


def _shown(box: tuple[float, float, float, float]) -> str:
    return ", ".join(f"{corner + 0.0:g}" for corner in box)  # no -0
