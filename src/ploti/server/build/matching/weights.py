"""What an equal value is worth, in bits, and rows that carry these bits.

A value counts log2(rows / rows that have it), in the version where it is commoner. A weighted row
is a prepared one with `w<i> FLOAT` beside each value (null where there is none) and `total`, the
sum of its bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from ploti.server.build.matching.links import drop, rows_of, table
from ploti.server.build.matching.question import MatchColumn, Run


def weigh(run: Run, columns: Sequence[MatchColumn], *, old: str, new: str) -> None:
    """Put the bits into the prepared rows of the tables `old` and `new`."""
    width = len(columns)
    rows = {name: max(rows_of(run, name), 1) for name in (old, new)}
    counts = " UNION ALL ".join(
        f"SELECT {i} AS i, t{i} AS t, log2({rows[name]} / count(*)) AS bits "
        f"FROM {name} WHERE t{i} IS NOT NULL GROUP BY t{i}"
        for name in (old, new)
        for i in range(width)
    )
    table(run, "match_bits", f"SELECT i, t, min(bits)::FLOAT AS bits FROM ({counts}) GROUP BY i, t")
    for name in (old, new):
        table(run, f"{name}_weighed", _weighed(name, width))
        drop(run, name)
        run(f"ALTER TABLE {name}_weighed RENAME TO {name}")
    drop(run, "match_bits")


def _weighed(name: str, width: int) -> str:
    bits = ", ".join(f"b{i}.bits AS w{i}" for i in range(width))
    total = " + ".join(f"coalesce(b{i}.bits, 0)::DOUBLE" for i in range(width))
    joins = " ".join(
        f"LEFT JOIN (SELECT t, bits FROM match_bits WHERE i = {i}) AS b{i} ON x.t{i} = b{i}.t"
        for i in range(width)
    )
    return f"SELECT x.*, {bits}, {total} AS total FROM {name} AS x {joins}"
