"""Part of a build: what a state changes in its base, by its keys where they tell, else matched."""

from __future__ import annotations

from typing import NamedTuple, cast

from ploti.model.admin import Finding
from ploti.model.version import Counts
from ploti.server.build import diff
from ploti.server.build.candidate import Base, KeyFault
from ploti.server.build.matching.differences import (
    differences_sql,
    link_keys_sql,
    question_of,
    sample_keys_sql,
)
from ploti.server.build.matching.links import begin
from ploti.server.build.matching.match import keys_need_proof, keys_suffice, match_beyond
from ploti.server.build.matching.proof import prove
from ploti.server.build.matching.question import Continuation, OverBudget, Question, Report
from ploti.server.ports.building import Engine
from ploti.server.release.matched import matching_findings
from ploti.server.service.shape_state import State
from ploti.server.sources.declaration import Declaration


class Matched(NamedTuple):
    """How a state was matched; its differences are in the table `DIFF`.

    With `same_keys` records are those of equal keys alone. `unmatched` says why the matching ended
    early; there are no differences then.
    """

    same_keys: bool = True
    findings: tuple[Finding, ...] = ()
    unmatched: str | None = None


def match_state(
    state: State, base: Base, declaration: Declaration, engine: Engine, *, fault: KeyFault | None
) -> Matched:
    """Match a state to its base, and leave what differs in `DIFF`."""
    try:
        if fault is None and _keys_tell(state, base, declaration, engine):
            return Matched()
        return _match(state, base, declaration, engine)
    except OverBudget as error:
        return Matched(unmatched=str(error))


def _keys_tell(state: State, base: Base, declaration: Declaration, engine: Engine) -> bool:
    """Whether a plain join by the key, which leaves `DIFF`, has said all that there is to say."""
    key = list(state.shape.key)
    if not key or key != base.schema.key_columns:
        return False
    snapshot = diff.snapshot_relation(base.snapshot)
    engine.run(diff.diff_sql(state.kept.relation, snapshot, state.shape, base=base.schema))
    counts = count_differences(engine)
    off = declaration.continuation == Continuation.OFF
    return keys_suffice(
        counts, base_rows=base.row_count, new_rows=state.kept.rows, off=off
    ) and _keys_hold(state, base, declaration, engine, counts=counts)


def _keys_hold(
    state: State, base: Base, declaration: Declaration, engine: Engine, *, counts: Counts
) -> bool:
    """Whether equal keys still mean the same record, by a sample of them where many changed."""
    if not keys_need_proof(counts, base_rows=base.row_count):
        return True
    tables = (state.kept.relation, diff.snapshot_relation(base.snapshot), state.shape)
    question = question_of(*tables, base=base.schema, continuation=_continuation(declaration))
    begin(engine.match)
    engine.match(sample_keys_sql(*tables, base=base.schema))
    return not prove(engine.match, question, pairs="match_links").dealt_anew


def count_differences(engine: Engine) -> Counts:
    """How many records `DIFF` adds, changes and removes."""
    added, changed, removed = cast("tuple[int, ...]", engine.rows(diff.COUNTS_SQL)[0])
    return Counts(added=added, changed=changed, removed=removed)


def _match(state: State, base: Base, declaration: Declaration, engine: Engine) -> Matched:
    tables = (state.kept.relation, diff.snapshot_relation(base.snapshot), state.shape)
    question = question_of(*tables, base=base.schema, continuation=_continuation(declaration))
    report = _ask(question, link_keys_sql(*tables, base=base.schema), engine)
    if report.over_budget:
        return Matched(unmatched=report.over_budget)
    engine.run(differences_sql(*tables, base=base.schema))
    findings = matching_findings(report, continuation=question.continuation, key=question.key_now)
    return Matched(same_keys=False, findings=tuple(findings))


def _ask(question: Question, link_keys: str, engine: Engine) -> Report:
    begin(engine.match)
    if question.keyed_alike:
        engine.match(link_keys)
    return match_beyond(engine.match, question)


def _continuation(declaration: Declaration) -> Continuation:
    return Continuation(declaration.continuation)
