"""The place of points along a Hilbert curve over a box, 31 bits an axis."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_BITS = 31
_LAST = (1 << _BITS) - 1

Numbers = npt.NDArray[np.int64]


def place(
    centres: npt.NDArray[np.float64], box: tuple[float, float, float, float]
) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """The place of each centre (x, y) in the box (least x, y, greatest x, y), and which have one."""
    known = ~np.isnan(centres).any(axis=1)
    places = np.zeros(len(centres), np.int64)
    x = _scale(centres[known, 0], box[0], box[2])
    y = _scale(centres[known, 1], box[1], box[3])
    places[known] = along(x, y)
    return places, known


def _scale(values: npt.NDArray[np.float64], least: float, greatest: float) -> Numbers:
    # Halves, so that a box from end to end of what doubles hold has a width.
    width = greatest / 2 - least / 2
    if width <= 0:
        return np.zeros(len(values), np.int64)
    return np.minimum((values / 2 - least / 2) / width * _LAST, _LAST).astype(np.int64)


def along(x: Numbers, y: Numbers) -> Numbers:
    """The distance along the curve of whole coordinates from 0 to 2^31 - 1."""
    distance = np.zeros_like(x)
    for bit in range(_BITS - 1, -1, -1):
        right, up = x >> bit & 1, y >> bit & 1
        distance = distance << 2 | (3 * right) ^ up
        flip = (1 - up) * right
        mirror = -flip & _LAST
        x, y = x ^ mirror, y ^ mirror
        swap = up == 0
        x, y = np.where(swap, y, x), np.where(swap, x, y)
    return distance
