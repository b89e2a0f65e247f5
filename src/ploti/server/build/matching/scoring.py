"""The score of a pair of rows, in bits.

A compared pair holds what does not depend on the rates of agreement: `gain`, the bits of equal
values and half of those of close ones, and three bit masks of columns: `equal`, `different`, and
`missing` on one side. So a new set of rates scores all pairs again without another look at a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

from ploti.server.build.matching.links import whole
from ploti.server.build.matching.question import MatchColumn, Run
from ploti.server.build.matching.values import close

MOST_COLUMNS = 60
"""Columns that are compared at the most: as many as a mask has room for."""

LEAST_RATE, FIRST_RATE, MOST_RATE = 0.02, 0.9, 0.98
SHARE = 0.5
MARGIN = 4


def first_rates(columns: Sequence[MatchColumn]) -> list[float]:
    """How often the values of a column are equal in true pairs, before any is known."""
    return [FIRST_RATE] * len(columns)


def compare(columns: Sequence[MatchColumn], pairs: str, *, old: str, new: str) -> str:
    """A query of compared pairs (o, n, gain, heaviest, masks), from `pairs` of handles (o, n).

    `old` and `new` are weighted rows; `heaviest` is the total of the weightier row.
    """
    kinds = ", ".join(f"{_kind(i, column)} AS k{i}" for i, column in enumerate(columns))
    gains = ", ".join(f"{_gain(i)} AS g{i}" for i in range(len(columns)))
    inner = (
        f"SELECT p.o, p.n, greatest(a.total, b.total) AS heaviest, {kinds}, {gains} "
        f"FROM {pairs} AS p JOIN {old} AS a ON a.r = p.o JOIN {new} AS b ON b.r = p.n"
    )
    return f"SELECT o, n, heaviest, {_totals(len(columns))} FROM ({inner})"


def score(rates: Sequence[float]) -> str:
    """The score of a compared pair under these rates, as an expression."""
    terms = ["gain"]
    for i, rate in enumerate(rates):
        agree, differ = log2(rate), log2(1 - rate)
        terms.append(
            f"CASE WHEN equal & {1 << i} <> 0 THEN {agree!r} "
            f"WHEN different & {1 << i} <> 0 THEN {differ!r} "
            f"WHEN missing & {1 << i} <> 0 THEN {differ / 2!r} ELSE 0 END"
        )
    return " + ".join(terms)


def learn_rates(run: Run, pairs: str, *, columns: int) -> list[float]:
    """The rates of agreement in compared pairs; where a column tells nothing, the first one."""
    counts = ", ".join(
        f"count(*) FILTER (WHERE equal & {1 << i} <> 0), "
        f"count(*) FILTER (WHERE (equal | different | close) & {1 << i} <> 0)"
        for i in range(columns)
    )
    (row,) = run(f"SELECT {counts} FROM {pairs}")
    values = [whole(value) for value in row]
    return [_rate(values[2 * i], values[2 * i + 1]) for i in range(columns)]


def _rate(equal: int, known: int) -> float:
    if known == 0:
        return FIRST_RATE
    return min(max(equal / known, LEAST_RATE), MOST_RATE)


def _kind(i: int, column: MatchColumn) -> str:
    """0 no value, 1 a value on one side only, 2 equal, 3 close, 4 different."""
    return (
        f"CASE WHEN a.t{i} IS NULL AND b.t{i} IS NULL THEN 0 "
        f"WHEN a.t{i} IS NULL OR b.t{i} IS NULL THEN 1 WHEN a.t{i} = b.t{i} THEN 2 "
        f"WHEN {close(column, f'a.v{i}', f'b.v{i}')} THEN 3 ELSE 4 END::UTINYINT"
    )


def _gain(i: int) -> str:
    return f"least(a.w{i}, b.w{i})::DOUBLE"


def _totals(width: int) -> str:
    gain = " + ".join(
        f"CASE k{i} WHEN 2 THEN g{i} WHEN 3 THEN g{i} / 2 ELSE 0 END" for i in range(width)
    )
    masks = ", ".join(
        f"{' | '.join(_bit(i, kind) for i in range(width))} AS {name}"
        for kind, name in ((2, "equal"), (3, "close"), (4, "different"), (1, "missing"))
    )
    return f"{gain} AS gain, {masks}"


def _bit(i: int, kind: int) -> str:
    return f"CASE WHEN k{i} = {kind} THEN {1 << i} ELSE 0 END::UBIGINT"
