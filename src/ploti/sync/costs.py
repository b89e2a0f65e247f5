"""Which of two right ways is the cheaper: the chain of changes, or the current snapshot.

Takes values, gives values, does no IO. Costs are in bytes of a snapshot that is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ploti.model.version import Version, VersionSummary

GRACE = 1024 * 1024
"""What changes may cost more than a load: they leave the rows untouched that are right already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What changes cost a destination, measured against loading a snapshot into it.

    Each version costs `step` bytes in itself (requests, a transaction), a byte of changes as much
    as `change` bytes of a snapshot, and `table` is the share of the whole that each version costs.
    """

    step: int = 512 * 1024
    change: float = 2.5
    table: float = 0.02


def is_dearer(ahead: Sequence[VersionSummary], current: Version, weights: Weights) -> bool:
    """Whether the chain of all versions `ahead` costs more than loading the current one.

    A chain with a version that is to be loaded leads to a load in any case. A snapshot that cannot
    be had is never cheaper.
    """
    if current.files.snapshot is None:
        return False
    if any(version.resync_required for version in ahead):
        return True
    whole = sum(file.bytes for file in current.files.snapshot)
    row = whole / max(current.row_count, 1)
    chain = sum(_cost(version, whole, row, weights) for version in ahead)
    return chain > weights.step + whole + GRACE


def _cost(version: VersionSummary, whole: int, row: float, weights: Weights) -> float:
    rows = version.counts.total if version.counts else 0
    return weights.step + weights.change * row * rows + weights.table * whole
