"""The review of a matching: keys that were dealt anew, records that go on under other keys."""

from __future__ import annotations

from collections.abc import Sequence

from ploti.model.admin import Finding
from ploti.model.event import HoldReason
from ploti.server.build.matching.question import Continuation, Gate, Proof, Report, Stage, Template


def matching_findings(
    report: Report, *, continuation: Continuation, key: Sequence[str]
) -> list[Finding]:
    """What staff are told of a matching; `key` is the one declared now, empty for none.

    Keys dealt anew hold, and so do records of a keyed dataset that only the scorer found, unless
    `continuation` is `auto`.
    """
    findings = []
    if report.keys and report.keys.dealt_anew:
        findings.append(_dealt_anew(report.keys))
    if report.template:
        findings.append(_new_form(report.template))
    if key and Stage.CONTINUATION in report.links:
        findings.append(_continued(report, held=continuation is not Continuation.AUTO))
    if report.gate and not report.gate.stands:
        findings.append(_doubtful(report.gate))
    return findings


def _dealt_anew(proof: Proof) -> Finding:
    return Finding(
        reason=HoldReason.DATA_CHECK,
        kind="keys_dealt_anew",
        message=f"The keys seem to have been dealt anew: of {proof.pairs} records looked at only"
        f" {proof.agreeing} agree with the one that had their key before, and of {proof.changed}"
        f" that changed {proof.moved} have what another key had",
    )


def _new_form(template: Template) -> Finding:
    return Finding(
        reason=None,
        kind="key_form",
        message=f"The keys are the former ones written otherwise: {template.form}",
        examples=[f"{old} is now {new}" for old, new in template.examples],
    )


def _continued(report: Report, *, held: bool) -> Finding:
    links = report.links[Stage.CONTINUATION]
    return Finding(
        reason=HoldReason.DATA_CHECK if held else None,
        kind="continuations",
        message=f"{links} records seem to go on under other keys, by what else they have",
        examples=[
            f"{old} is now {new}" + (f" (another {different})" if different else "")
            for old, new, different in report.continued
        ],
        measure=links,
    )


def _doubtful(gate: Gate) -> Finding:
    return Finding(
        reason=None,
        kind="doubtful_continuations",
        message=f"{gate.links} records might go on under other keys, but too many of these links"
        f" are likely to be false ({min(gate.estimate, 1):.0%}): they are new records",
        measure=gate.links,
    )
