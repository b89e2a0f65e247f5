"""Part of a build: what a state changes in its base, by its keys where they tell, else matched."""

from __future__ import annotations

from typing import NamedTuple, cast

from msgspec.structs import replace

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
from ploti.server.build.matching import shared_keys
from ploti.server.build.matching.differences import (
    changed_sample_sql,
    differences_sql,
    link_keys_sql,
    question_of,
    sample_keys_sql,
)
from ploti.server.build.matching.key_match import link_returned
from ploti.server.build.matching.links import begin, drop, table
from ploti.server.build.matching.match import enough_moved, keys_need_proof, match_beyond
from ploti.server.build.matching.proof import prove, prove_by_changed
from ploti.server.build.matching.question import (
    Budget,
    Continuation,
    OverBudget,
    Question,
    Report,
)
from ploti.server.build.matching.repeated_keys import link_repeated_keys
from ploti.server.build.shape import Shape
from ploti.server.ports.building import Engine
from ploti.server.release.matched import matching_findings
from ploti.server.service.shape_state import State

_JOINED = 2_500_000
"""Rows of the base that are joined at a time: some 200 MB."""


class Matched(NamedTuple):
    """How a state was matched; its differences are in the table `DIFF`, what came back in another.

    With `same_keys` records are those of equal keys alone. `unmatched` says why the matching ended
    early, for a limit or because it failed; there are no differences then. `proposals` are pairs
    that were not linked, `estimate` the share of false ones that kept the scored ones out.
    `sharing` is a table of the base's rows that go and whose keys others have, where there is one.
    """

    same_keys: bool = True
    sharing: str | None = None
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
        shaped, snapshot, _ = self.tables
        return self.question_of(shaped, snapshot)

    def question_of(self, shaped: str, snapshot: str) -> Question:
        """What the matching of some rows of either side is asked."""
        shape = self.state.shape
        return question_of(
            shaped,
            snapshot,
            shape,
            base=self.base.schema,
            gone=self.gone.typed(shape.named_types) if self.gone else None,
            continuation=self.continuation,
            budget=Budget(pairs=None) if self.lifted is Limit.PAIRS else None,
        )


def match_state(sides: Sides, engine: Engine, *, fault: KeyFault | None) -> Matched:
    """Match a state to its base; leave what differs in `DIFF`, what came back in `RETURNED`."""
    try:
        return _match_by_key(sides, engine, shared=fault is not None) or _match(sides, engine)
    except OverBudget as error:
        return Matched(unmatched=str(error), limit=error.limit)


def _match_by_key(sides: Sides, engine: Engine, *, shared: bool) -> Matched | None:
    """Match by keys alone, which may be `shared` by rows of the state; None where it takes more."""
    state, base = sides.state, sides.base
    if not state.shape.key or list(state.shape.key) != base.schema.key_columns:
        return None
    if shared:
        return _match_shared(sides, engine)
    join_by_key(engine, *sides.tables, base=base)
    counts = count_differences(engine)
    if state.kept.rows - base.row_count != counts.added - counts.removed:
        # Rows of the base share a key: the join counts wrong.
        return _match_shared(sides, engine)
    pairs = base.row_count - counts.removed
    told = _keys_tell(sides, engine, counts=counts, pairs=pairs, changed=diff.DIFF)
    return Matched() if told and _returns_are_clear(sides, engine) else None


def join_by_key(engine: Engine, shaped: str, snapshot: str, shape: Shape, *, base: Base) -> None:
    """Leave in `DIFF` what a join by the keys gives; it holds all rows of a part of the base."""
    before = diff.base_rows(snapshot, shape, base.schema)
    after = diff.state_rows(shaped, shape, base.schema)
    parts = base.row_count // _JOINED + 1
    if parts > 1:
        before = f"FROM {engine.keep(before, name='narrow').relation}"
    for part in range(parts):
        engine.run(diff.diff_sql(before, after, shape, base=base.schema, part=part, parts=parts))


def _match_shared(sides: Sides, engine: Engine) -> Matched | None:
    """Match by keys that several rows have, these rows told apart; None where it takes more."""
    base, (shaped, snapshot, shape) = sides.base.schema, sides.tables
    with engine.matching() as run:
        rows = sides.base.row_count
        run(shared_keys.share_base_keys_sql(snapshot, shape, base=base, rows=rows))
        run(shared_keys.join_sql(*sides.tables, base=base))
        if leave_out := shared_keys.leave_equal_out_sql(shape, base=base):
            run(leave_out)
    added, changed, removed, left = cast("tuple[int, ...]", engine.rows(shared_keys.COUNTS_SQL)[0])
    counts = Counts(added=added, changed=changed, removed=removed)
    pairs = sides.base.row_count - left
    if not _keys_tell(sides, engine, counts=counts, pairs=pairs, changed=shared_keys.CHANGED):
        return None
    with engine.matching() as run:
        begin(run)
        run(shared_keys.sharing_sql(snapshot, base=base))
        sharing = sides.question_of(shared_keys.sharing_state(shaped), shared_keys.SHARING)
        table(run, "match_sharing_state", f"FROM {sharing.new}")
        held = replace(sharing, new="match_sharing_state")
        link_repeated_keys(run, held)
        drop(run, held.new)
        if sides.gone:
            left_over = shared_keys.left_of_state(shaped)
            link_returned(run, sides.question_of(left_over, snapshot))
    engine.run(shared_keys.differences_sql(shape, base=base))
    engine.run(shared_keys.GOING_SQL)
    engine.run(shared_keys.LET_GO_SQL)
    engine.run(returns_by_links_sql())
    return Matched(same_keys=False, sharing=shared_keys.GOING)


def _returns_are_clear(sides: Sides, engine: Engine) -> bool:
    """Whether the keys alone say what came back, which is in `RETURNED` then."""
    if sides.gone is None:
        engine.run(no_returns_sql())
        return True
    engine.run(returns_by_key_sql(sides.state.kept.relation, sides.state.shape, sides.gone))
    return bool(engine.rows(RETURNS_CLEAR_SQL)[0][0])


def _keys_tell(sides: Sides, engine: Engine, *, counts: Counts, pairs: int, changed: str) -> bool:
    """Whether nothing is left to ask but the keys, by which there are so many `pairs`.

    Where many `changed`, a sample of them must show that equal keys still mean the same record.
    """
    rows = sides.base.row_count
    if enough_moved(counts, base_rows=rows, continuation=sides.continuation):
        return False
    if not keys_need_proof(counts, base_rows=rows):
        return True
    with engine.matching() as run:
        begin(run)
        if counts.changed * 2 <= pairs:
            positions = changed_sample_sql(changed)
            proof = prove_by_changed(run, sides.question, positions=positions)
            if proof is not None:
                return not proof.dealt_anew
        if changed != diff.DIFF:
            return False
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
