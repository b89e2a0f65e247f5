"""Which pairs of rows are worth a score: those that share a rare value, or two.

A row's blocks are its rarest values that occur on both sides, each alone and in pairs; a pair of
rows is a candidate where both have a block that is small enough.
"""

from __future__ import annotations

from ploti.server.build.limits import Limit
from ploti.server.build.matching.links import count, drop, table
from ploti.server.build.matching.question import Budget, OverBudget, Run

RAREST = 6


def block(run: Run, *, old: str, new: str, width: int, least: int = 1) -> None:
    """Make `match_blocks (block, o, n)` of two tables' rows, and each side's rows by block.

    A value serves where it is in at least one row of `old` and in `least` rows of `new`.
    """
    for side, rows in (("old", old), ("new", new)):
        values = ", ".join(f"t{i}" for i in range(width))
        tokens = f"SELECT r, unnest([{values}]) AS t FROM {rows}"
        table(run, f"match_{side}_tokens", f"SELECT r, t FROM ({tokens}) WHERE t IS NOT NULL")
    table(
        run,
        "match_shared",
        f"SELECT t, o.rows * n.rows AS pairs FROM {_sizes('match_old_tokens', 't')} AS o "
        f"JOIN {_sizes('match_new_tokens', 't')} AS n USING (t) WHERE n.rows >= {least}",
    )
    for side in ("old", "new"):
        table(run, f"match_{side}_blocks", _blocks(f"match_{side}_tokens"))
        drop(run, f"match_{side}_tokens")
    drop(run, "match_shared")
    table(
        run,
        "match_blocks",
        f"SELECT block, o.rows AS o, n.rows AS n FROM {_sizes('match_old_blocks', 'block')} AS o "
        f"JOIN {_sizes('match_new_blocks', 'block')} AS n USING (block)",
    )


def fit(run: Run, budget: Budget) -> int:
    """The limit of a block under which all pairs fit the budget; raises OverBudget."""
    limit = budget.block
    while budget.pairs is not None:
        pairs = f"SELECT coalesce(sum(o * n), 0)::BIGINT FROM match_blocks WHERE o * n <= {limit}"
        if count(run, pairs) <= budget.pairs:
            break
        limit //= 2
        if limit < budget.least_block:
            raise OverBudget(
                f"more than {budget.pairs:,} pairs of rows are alike in what they have: "
                "there is too little to tell the records apart by",
                limit=Limit.PAIRS,
            )
    return limit


def pair(run: Run, *, limit: int) -> None:
    """Make `match_pairs (o, n)`, each candidate once, and drop the blocks."""
    table(
        run,
        "match_pairs",
        "SELECT DISTINCT o.r AS o, n.r AS n "
        f"FROM (SELECT block FROM match_blocks WHERE o * n <= {limit}) AS b "
        "JOIN match_old_blocks AS o USING (block) JOIN match_new_blocks AS n USING (block)",
    )
    drop(run, "match_blocks", "match_old_blocks", "match_new_blocks")


def _sizes(rows: str, by: str) -> str:
    return f"(SELECT {by}, count(*) AS rows FROM {rows} GROUP BY {by})"


def _blocks(tokens: str) -> str:
    ranked = "list_sort(list(struct_pack(pairs := pairs, t := t)))"
    rare = (
        f"SELECT r, list_sort(list_transform(({ranked})[:{RAREST}], lambda x: x.t)) AS rare "
        f"FROM {tokens} JOIN match_shared USING (t) GROUP BY r"
    )
    both = "flatten([[hash(x, y) for y in rare if x < y] for x in rare])"
    return f"SELECT r, unnest(list_concat(rare, {both})) AS block FROM ({rare})"
