"""Part of a build: what a state changes in its base, by its keys where they tell, else matched."""

from __future__ import annotations

from typing import NamedTuple, cast

from ploti.model.admin import Finding
from ploti.model.version import Counts
from ploti.server.build import diff
from ploti.server.build.candidate import Base, KeyFault
from ploti.server.build.gone import (
    RETURNS_CLEAR_SQL,
    Gone,
    no_returns_sql,
    returns_by_key_sql,
    returns_by_links_sql,
)
from ploti.server.build.limits import Limit
from ploti.server.build.matching.differences import (
    changed_sample_sql,
    differences_sql,
    link_keys_sql,
    question_of,
    sample_keys_sql,
)
from ploti.server.build.matching.links import begin
from ploti.server.build.matching.match import keys_need_proof, keys_suffice, match_beyond
from ploti.server.build.matching.proof import prove, prove_by_changed
from ploti.server.build.matching.question import (
    Budget,
    Continuation,
    OverBudget,
    Question,
    Report,
)
from ploti.server.build.shape import Shape
from ploti.server.ports.building import Engine
from ploti.server.release.matched import matching_findings
from ploti.server.service.shape_state import State


class Matched(NamedTuple):
    """How a state was matched; its differences are in the table `DIFF`, what came back in another.

    With `same_keys` records are those of equal keys alone. `unmatched` says why the matching ended
    early, for a limit or because it failed; there are no differences then. `proposals` are pairs
    that were not linked, `estimate` the share of false ones that kept the scored ones out.
    """

    same_keys: bool = True
    findings: tuple[Finding, ...] = ()
    proposals: int = 0
    estimate: float | None = None
    unmatched: str | None = None
    limit: Limit | None = None


class Sides(NamedTuple):
    """A state, the version whose records it is matched to, and those removed lately.

    `lifted` is the limit that does not bind this matching.
    """

    state: State
    base: Base
    gone: Gone | None
    continuation: Continuation
    lifted: Limit | None

    @property
    def tables(self) -> tuple[str, str, Shape]:
        """Both relations, and the state's columns."""
        snapshot = diff.snapshot_relation(self.base.snapshot)
        return self.state.kept.relation, snapshot, self.state.shape

    @property
    def question(self) -> Question:
        """What the matching is asked."""
        types = self.state.shape.named_types
        return question_of(
            *self.tables,
            base=self.base.schema,
            gone=self.gone.typed(types) if self.gone else None,
            continuation=self.continuation,
            budget=Budget(pairs=None) if self.lifted is Limit.PAIRS else None,
        )


def match_state(sides: Sides, engine: Engine, *, fault: KeyFault | None) -> Matched:
    """Match a state to its base; leave what differs in `DIFF`, what came back in `RETURNED`."""
    try:
        if fault is None and _keys_tell(sides, engine) and _returns_are_clear(sides, engine):
            return Matched()
        return _match(sides, engine)
    except OverBudget as error:
        return Matched(unmatched=str(error), limit=error.limit)


def _returns_are_clear(sides: Sides, engine: Engine) -> bool:
    """Whether the keys alone say what came back, which is in `RETURNED` then."""
    if sides.gone is None:
        engine.run(no_returns_sql())
        return True
    engine.run(returns_by_key_sql(sides.state.kept.relation, sides.state.shape, sides.gone))
    return bool(engine.rows(RETURNS_CLEAR_SQL)[0][0])


def _keys_tell(sides: Sides, engine: Engine) -> bool:
    """Whether a plain join by the key, which leaves `DIFF`, has said all that there is to say."""
    state, base = sides.state, sides.base
    if not state.shape.key or list(state.shape.key) != base.schema.key_columns:
        return False
    engine.run(diff.diff_sql(*sides.tables, base=base.schema))
    counts = count_differences(engine)
    off = sides.continuation is Continuation.OFF
    return keys_suffice(
        counts, base_rows=base.row_count, new_rows=state.kept.rows, off=off
    ) and _keys_hold(sides, engine, counts=counts)


def _keys_hold(sides: Sides, engine: Engine, *, counts: Counts) -> bool:
    """Whether equal keys still mean the same record, by a sample of them where many changed."""
    if not keys_need_proof(counts, base_rows=sides.base.row_count):
        return True
    with engine.matching() as run:
        begin(run)
        pairs = sides.base.row_count - counts.removed
        if counts.changed * 2 <= pairs:
            proof = prove_by_changed(run, sides.question, positions=changed_sample_sql())
            if proof is not None:
                return not proof.dealt_anew
        run(sample_keys_sql(*sides.tables, base=sides.base.schema))
        return not prove(run, sides.question, pairs="match_links").dealt_anew


def count_differences(engine: Engine) -> Counts:
    """How many records `DIFF` adds, changes and removes."""
    added, changed, removed = cast("tuple[int, ...]", engine.rows(diff.COUNTS_SQL)[0])
    return Counts(added=added, changed=changed, removed=removed)


def _match(sides: Sides, engine: Engine) -> Matched:
    question = sides.question
    report = _ask(sides, question, engine)
    if report.over_budget:
        return Matched(unmatched=report.over_budget, limit=report.limit)
    engine.run(differences_sql(*sides.tables, base=sides.base.schema))
    engine.run(returns_by_links_sql())
    findings = matching_findings(report, continuation=question.continuation, key=question.key_now)
    return Matched(
        same_keys=False,
        findings=tuple(findings),
        proposals=report.proposals,
        estimate=report.gate.estimate if report.gate and not report.gate.stands else None,
    )


def _ask(sides: Sides, question: Question, engine: Engine) -> Report:
    with engine.matching() as run:
        begin(run)
        if question.keyed_alike:
            run(link_keys_sql(*sides.tables, base=sides.base.schema))
        return match_beyond(run, question)
