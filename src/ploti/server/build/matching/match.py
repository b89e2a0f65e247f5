"""The stages of a matching, in their order."""

from __future__ import annotations

from ploti.model.version import Counts
from ploti.server.build.matching.continuation import link_continuations
from ploti.server.build.matching.equal_content import link_equal_content
from ploti.server.build.matching.evidence import find_continued
from ploti.server.build.matching.key_forms import link_new_forms
from ploti.server.build.matching.key_match import (
    count_null_keys,
    count_repeated_keys,
    link_equal_keys,
    link_returned,
)
from ploti.server.build.matching.links import begin, by_stage, count, rows_of
from ploti.server.build.matching.proof import prove
from ploti.server.build.matching.question import (
    Continuation,
    Gate,
    OverBudget,
    Proof,
    Question,
    Report,
    Run,
    Stage,
    Template,
)
from ploti.server.build.matching.repeated_keys import link_repeated_keys

LEAST_LEFT = 20
LEAST_SHARE = 0.01


def match(run: Run, question: Question) -> Report:
    """Match all rows; the links are in `match_links` then, proposals in `match_proposals`."""
    begin(run)
    if question.keyed_alike:
        link_equal_keys(run, question)
    return match_beyond(run, question)


def match_beyond(run: Run, question: Question) -> Report:
    """Match what the links by single equal keys, in `match_links` by now, have left."""
    keys = _proved(run, question)
    trusted = question.keyed_alike and not (keys and keys.dealt_anew)
    template: Template | None = None
    gate: Gate | None = None
    block: int | None = None
    broken: OverBudget | None = None
    try:
        if trusted:
            link_repeated_keys(run, question)
            if question.gone:
                link_returned(run, question)
        if runs_beyond(run, question, trusted=trusted):
            template, gate, block = match_rest(run, question)
    except OverBudget as error:
        broken = error
    return Report(
        base_rows=rows_of(run, question.base),
        new_rows=rows_of(run, question.new),
        null_keys=count_null_keys(run, question) if question.key_now else 0,
        repeated_keys=count_repeated_keys(run, question) if question.key_now else 0,
        keys=keys,
        links=by_stage(run),
        proposals=rows_of(run, "match_proposals"),
        template=template,
        gate=gate,
        block=block,
        over_budget=str(broken) if broken else None,
        limit=broken.limit if broken else None,
        continued=find_continued(run, question),
    )


def match_rest(run: Run, question: Question) -> tuple[Template | None, Gate | None, int | None]:
    """Match what is left by new forms of keys, content and likeness, in this order."""
    template = link_new_forms(run, question)
    link_equal_content(run, question)
    return template, *link_continuations(run, question)


def enough_moved(counts: Counts, *, base_rows: int, continuation: Continuation) -> bool:
    """Whether so many records went and came that more than the keys is looked at."""
    if continuation is Continuation.OFF:
        return False
    least = max(LEAST_LEFT, LEAST_SHARE * base_rows)
    return counts.removed >= least and counts.added >= LEAST_LEFT


def keys_need_proof(counts: Counts, *, base_rows: int) -> bool:
    """Whether so many records changed that their keys may have been dealt anew."""
    return counts.changed >= max(LEAST_LEFT, LEAST_SHARE * base_rows)


def runs_beyond(run: Run, question: Question, *, trusted: bool) -> bool:
    """Whether more than the keys is looked at.

    Without trusted keys always; with them where 1 % of the base's records, and 20, are gone and
    20 rows came, unless the declaration leaves it to the keys alone.
    """
    if not trusted:
        return True
    base = rows_of(run, question.base)
    kept = count(run, f"SELECT count(*) FROM match_links WHERE NOT stage = '{Stage.RETURNED}'")
    came = rows_of(run, question.new) - rows_of(run, "match_links")
    moved = Counts(added=came, changed=0, removed=base - kept)
    return enough_moved(moved, base_rows=base, continuation=question.continuation)


def _proved(run: Run, question: Question) -> Proof | None:
    """The proof of the links by key; they are let go where the keys were dealt anew."""
    if not question.keyed_alike:
        return None
    proof = prove(run, question, pairs="match_links")
    if proof.dealt_anew:
        run("DELETE FROM match_links")
    return proof
