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
    borders stay, but a group under half size joins its neighbour, and one to which many rows came
    back is cut. `added` rows follow: they fill
    the last group up, however small it is, before a new one begins, or ninety daily versions would
    leave ninety tiny groups.
    """
    *earlier, last = [part for rows in kept for part in _cut(rows)] or [0]
    sizes = _joined(earlier)
    if sizes and sizes[-1] < _SMALL and sizes[-1] + last <= _LARGE:
        last += sizes.pop()
    filled = max(last, min(FULL, last + added))
    added -= filled - last
    return [size for size in (*sizes, filled, *_full(added)) if size]


def _cut(rows: int) -> list[int]:
    if rows <= _LARGE:
        return [rows] if rows else []
    return [size for size in _full(rows) if size]


def _joined(groups: Sequence[int]) -> list[int]:
    sizes: list[int] = []
    for rows in groups:
        if sizes and min(rows, sizes[-1]) < _SMALL and sizes[-1] + rows <= _LARGE:
            sizes[-1] += rows
        else:
            sizes.append(rows)
    return sizes


def _full(rows: int) -> list[int]:
    return [FULL] * (rows // FULL) + [rows % FULL]
