"""Stage 5: pairs that are clearly the same record, and clearly better than the next best.

All of these: each is the best of the other; enough bits for so many rows; at least half of what
the weightier row has in all; four bits over the second best and over the nearest sibling, on both
sides. Then the gate judges all links of the version together.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

import msgspec

from ploti.model.columns import RECORD_ID
from ploti.server.build.matching.candidates import block, fit, pair
from ploti.server.build.matching.evidence import evidence_of
from ploti.server.build.matching.links import (
    POSITION,
    count,
    drop,
    link,
    new_left,
    old_left,
    propose,
    rows_of,
    table,
    whole,
)
from ploti.server.build.matching.question import Gate, MatchColumn, Question, Run, Stage
from ploti.server.build.matching.scoring import (
    MARGIN,
    MOST_COLUMNS,
    SHARE,
    compare,
    first_rates,
    learn_rates,
    score,
)
from ploti.server.build.matching.siblings import find_siblings
from ploti.server.build.matching.values import prepared
from ploti.server.build.matching.weights import weigh

TRAINED = 2
_TABLES = (
    "match_old",
    "match_new",
    "match_old_left",
    "match_new_left",
    "match_compared",
    "match_best",
    "match_passing",
    "match_old_siblings",
    "match_new_siblings",
    "match_found",
)


def link_continuations(run: Run, question: Question) -> tuple[Gate | None, int | None]:
    """Link what continues, or propose it where the gate is shut; the gate and the block's limit.

    Raises OverBudget where the rows are too much alike to be compared.
    """
    columns = scored_columns(question)
    left = [rows_of(run, old_left(question)), rows_of(run, new_left(question))]
    if not columns or 0 in left:
        return None, None
    _prepare(run, question, columns)
    least = log2(max(_rows(run), 1)) + 5
    limit = _compare(run, question, columns, least=least)
    rates = _train(run, columns, least=least)
    _pass(run, rates, least=least)
    for side, handle in (("old", "o"), ("new", "n")):
        find_siblings(
            run,
            columns,
            judged=f"(SELECT {handle} AS r FROM match_passing)",
            rows=f"match_{side}",
            into=f"match_{side}_siblings",
            rates=rates,
            budget=msgspec.structs.replace(question.budget, block=limit),
            least=least,
        )
    _find(run)
    gate = _gate(run)
    write = link if gate.stands else propose
    write(run, evidence_of(columns, rates), stage=Stage.CONTINUATION, evidence="evidence")
    drop(run, *_TABLES)
    return gate, limit


def scored_columns(question: Question) -> tuple[MatchColumn, ...]:
    """The columns that both versions have; a key of one column is never equal here, so not it."""
    alone = question.key_now if question.keyed_alike and len(question.key_now) == 1 else ()
    return tuple(c for c in question.columns if c.name not in alone)[:MOST_COLUMNS]


def _prepare(run: Run, question: Question, columns: Sequence[MatchColumn]) -> None:
    in_order = f"row_number() OVER (ORDER BY {RECORD_ID})"
    table(run, "match_old", prepared(columns, question.base, handle=in_order, name=RECORD_ID))
    table(run, "match_new", prepared(columns, question.new, handle=POSITION, name="NULL"))
    weigh(run, columns, old="match_old", new="match_new")
    for side, given, linked in (("old", "name", "record_id"), ("new", "r", "position")):
        left = f"FROM match_{side} AS x ANTI JOIN match_links AS l ON x.{given} = l.{linked}"
        table(run, f"match_{side}_left", left)


def _rows(run: Run) -> int:
    return max(rows_of(run, "match_old"), rows_of(run, "match_new"))


def _compare(run: Run, question: Question, columns: Sequence[MatchColumn], *, least: float) -> int:
    """Compare all candidates; what cannot come within the margin of a link is let go at once."""
    block(run, old="match_old_left", new="match_new_left", width=len(columns))
    limit = fit(run, question.budget)
    pair(run, limit=limit)
    compared = compare(columns, "match_pairs", old="match_old_left", new="match_new_left")
    table(run, "match_compared", f"FROM ({compared}) WHERE gain > {least - MARGIN}")
    drop(run, "match_pairs")
    return limit


def _train(run: Run, columns: Sequence[MatchColumn], *, least: float) -> list[float]:
    rates = first_rates(columns)
    for _ in range(TRAINED):
        _pass(run, rates, least=least)
        rates = learn_rates(run, "match_passing", columns=len(columns))
    return rates


def _pass(run: Run, rates: Sequence[float], *, least: float) -> None:
    """Make `match_passing`: the pairs that are best of each other, with score, share and margin."""
    table(run, "match_best", f"SELECT *, {score(rates)} AS score FROM match_compared")
    old, new = (
        f"(SELECT {side}, max(score, 2) AS top FROM match_best GROUP BY {side})"
        for side in ("o", "n")
    )
    table(
        run,
        "match_passing",
        f"SELECT b.*, o.top[2] AS old_second, n.top[2] AS new_second FROM match_best AS b "
        f"JOIN {old} AS o ON b.o = o.o AND b.score = o.top[1] "
        f"JOIN {new} AS n ON b.n = n.n AND b.score = n.top[1] "
        f"WHERE b.score >= {least} AND b.score >= {SHARE} * b.heaviest "
        f"AND b.score - coalesce(o.top[2], '-inf'::DOUBLE) >= {MARGIN} "
        f"AND b.score - coalesce(n.top[2], '-inf'::DOUBLE) >= {MARGIN}",
    )


def _find(run: Run) -> None:
    """Make `match_found`: what passes and is better than the nearest sibling on both sides."""
    table(
        run,
        "match_found",
        "SELECT p.*, o.score AS old_sibling, n.score AS new_sibling FROM match_passing AS p "
        "LEFT JOIN match_old_siblings AS o ON o.r = p.o "
        "LEFT JOIN match_new_siblings AS n ON n.r = p.n "
        f"WHERE p.score - coalesce(o.score, '-inf'::DOUBLE) >= {MARGIN} "
        f"AND p.score - coalesce(n.score, '-inf'::DOUBLE) >= {MARGIN}",
    )


def _gate(run: Run) -> Gate:
    (counts,) = run(
        "SELECT (SELECT count(*) FROM match_passing), "
        "(SELECT count(*) FROM match_old_siblings WHERE passes), "
        "(SELECT count(*) FROM match_new_siblings WHERE passes)"
    )
    passing, old, new = map(whole, counts)
    return Gate(
        links=count(run, "SELECT count(*) FROM match_found"),
        old=rows_of(run, "match_old_left"),
        new=rows_of(run, "match_new_left"),
        rows=_rows(run),
        sibling_share=max(old, new, 1) / max(passing, 1),
    )
