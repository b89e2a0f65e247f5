"""Stage: how many rows the row groups of a snapshot have, from the base's and the changes alone."""

from __future__ import annotations

from collections.abc import Sequence

FULL = 120_000
"""Rows of a full row group."""

_SMALL = FULL // 2
_LARGE = FULL + _SMALL


def group_sizes(kept: Sequence[int], *, added: int) -> list[int]:
    """The sizes of a snapshot's row groups, in order.

    `kept` are the rows that are left of each group of the base (none for a first version): the
    borders stay, but a group under half size joins the one before it. `added` rows follow: they
    fill the last group up before a new one begins, or ninety daily versions would leave ninety
    tiny groups.
    """
    sizes: list[int] = []
    for rows in kept:
        if sizes and (rows < _SMALL or sizes[-1] < _SMALL) and sizes[-1] + rows <= _LARGE:
            sizes[-1] += rows
        elif rows:
            sizes.append(rows)
    if sizes and added:
        room = max(0, min(FULL - sizes[-1], added))
        sizes[-1] += room
        added -= room
    return sizes + [FULL] * (added // FULL) + ([added % FULL] if added % FULL else [])
