"""The place of geometries along a Hilbert curve over a box, 31 bits an axis."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ploti.server.adapters.engine import wkb
from ploti.server.adapters.engine.arrow import Column

_BITS = 31
_LAST = (1 << _BITS) - 1

LAST = np.iinfo(np.int64).max
"""The place of what has none."""

Numbers = npt.NDArray[np.int64]


def places(geometry: Column, box: tuple[float, float, float, float]) -> Numbers:
    """The place of the middle of each geometry's box; `LAST` where there is none."""
    middles = wkb.centres(geometry)
    found = np.full(len(geometry), LAST, np.int64)
    found[middles.known] = place(middles.values, box)
    return found


def place(centres: npt.NDArray[np.float64], box: tuple[float, float, float, float]) -> Numbers:
    """The place of each centre (x, y) in the box (least x, y, greatest x, y)."""
    return along(
        _scale(centres[:, 0], box[0], box[2]),
        _scale(centres[:, 1], box[1], box[3]),
    )


def _scale(values: npt.NDArray[np.float64], least: float, greatest: float) -> Numbers:
    # Halves, so that a box from end to end of what doubles hold has a width.
    width = greatest / 2 - least / 2
    if width <= 0:
        return np.zeros(len(values), np.int64)
    return np.minimum((values / 2 - least / 2) / width * _LAST, _LAST).astype(np.int64)


def along(x: Numbers, y: Numbers) -> Numbers:
    """The distance along the curve of whole coordinates from 0 to 2^31 - 1."""
    distance = np.zeros(len(x), np.int64)
    state = np.full(len(x), _START, np.int64)
    for shift in range(_BITS + 1 - _STEP, -1, -_STEP):
        cell = state << 8 | (x >> shift & 15) << 4 | (y >> shift & 15)
        distance = distance << 8 | _DISTANCES[cell]
        state = _STATES[cell]
    return distance


_STEP = 4
_START = 1
"""Eight steps of four bits are 32: the first bit, always 0, turns the curve, and is met turned."""


def _tables() -> tuple[Numbers, Numbers]:
    """For each state and four bits of either axis: the distance, and the state that follows.

    A state says whether what follows is seen with its axes swapped (1) or both mirrored (2).
    """
    state, x, y = (axis.ravel() for axis in np.indices((4, 16, 16)))
    distance = np.zeros_like(x)
    for bit in range(_STEP - 1, -1, -1):
        mirror, swap = state >> 1, state & 1
        right, up = (x >> bit & 1) ^ mirror, (y >> bit & 1) ^ mirror
        right, up = np.where(swap, up, right), np.where(swap, right, up)
        distance = distance << 2 | (3 * right) ^ up
        state = state ^ (1 - up) ^ ((1 - up) & right) << 1
    return distance, state


_DISTANCES, _STATES = _tables()
