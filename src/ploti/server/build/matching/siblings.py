"""The nearest sibling of a row: the row of its own version that is most like it.

It is certainly another record, so a link that is hardly better than it proves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ploti.server.build.matching.candidates import block, fit, pair
from ploti.server.build.matching.links import drop, table
from ploti.server.build.matching.question import Budget, MatchColumn, Run
from ploti.server.build.matching.scoring import MARGIN, SHARE, compare, score


def find_siblings(
    run: Run,
    columns: Sequence[MatchColumn],
    *,
    judged: str,
    rows: str,
    into: str,
    rates: Sequence[float],
    budget: Budget,
    least: float,
) -> None:
    """Make the table `into (r, score, passes)`: what each judged row's siblings score at best.

    `judged` is a relation of handles r into `rows`, the weighted rows of its version; `passes`
    says whether a sibling reached `least` bits and the share that a link needs. A row without
    a sibling that could come near a link has no line. Raises OverBudget.
    """
    table(run, "match_judged", f"FROM {rows} SEMI JOIN {judged} AS j USING (r)")
    block(run, old="match_judged", new=rows, width=len(columns), least=2)
    pair(run, limit=fit(run, budget))
    others = "(FROM match_pairs WHERE o <> n)"
    # A table between, or DuckDB puts the masks' long expressions in wherever the score names them.
    near = f"gain > {least - MARGIN}"
    compared = compare(columns, others, old="match_judged", new=rows)
    table(run, "match_likened", f"FROM ({compared}) WHERE {near}")
    scored = f"SELECT o, heaviest, {score(rates)} AS score FROM match_likened"
    passes = f"score >= {least} AND score >= {SHARE} * heaviest"
    table(
        run,
        into,
        f"SELECT o AS r, max(score) AS score, bool_or({passes}) AS passes "
        f"FROM ({scored}) GROUP BY o",
    )
    drop(run, "match_judged", "match_pairs", "match_likened")
