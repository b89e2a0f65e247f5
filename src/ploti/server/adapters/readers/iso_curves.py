"""Curves in well-known binary, drawn as short straight lines."""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack

import numpy as np
import numpy.typing as npt

from ploti.server.adapters.readers.esri_curves import straightened

STRAIGHT = {8: 2, 9: 2, 10: 3, 11: 5, 12: 6}
"""What each type of curves becomes: lines, polygons, and several of either."""

_PARTS = {9: 2, 10: 2, 11: 2, 12: 3, 15: 3, 16: 3}
"""What the parts of curves and surfaces are once they are drawn."""

_HEAD = 5

Positions = npt.NDArray[np.float64]


def arcs(positions: Positions) -> Positions:
    """A string of circular arcs, each by its ends and a point between, as positions on it.

    Heights and measures rise evenly from the start of an arc to its end. Raises ValueError where
    the positions are not those of arcs.
    """
    if len(positions) == 0:
        return positions
    if len(positions) % 2 == 0 or len(positions) < 3:
        raise ValueError(f"its arcs are told by {len(positions)} positions")
    pieces = [positions[:1]]
    for start, middle, end in zip(positions[:-2:2], positions[1::2], positions[2::2], strict=True):
        flat = straightened([start[:2].tolist(), {"c": [end[:2].tolist(), middle[:2].tolist()]}])
        places = np.array(flat[1:], np.float64)
        share = np.linspace(0, 1, len(flat))[1:, None]
        pieces.append(np.hstack([places, start[2:] + share * (end[2:] - start[2:])]))
    return np.vstack(pieces)


def joined(kind: int, parts: Sequence[bytes], *, size: int) -> bytes:
    """The body of a geometry whose parts are drawn already, in little-endian ISO WKB.

    The parts of a compound curve are one line, those of a curved polygon its rings; a surface is
    made of polygons. Raises ValueError for a part of a kind that does not belong there.
    """
    wanted = _PARTS.get(kind)
    if wanted and any(int.from_bytes(part[1:5], "little") % 1000 != wanted for part in parts):
        raise ValueError("it holds a geometry of a kind that does not belong there")
    if kind == 9:
        return counted(_one_line(parts, size=size))
    bodies = [part[_HEAD:] if kind == 10 else part for part in parts]
    return pack("<I", len(bodies)) + b"".join(bodies)


def counted(positions: Positions) -> bytes:
    """Positions as the body of a line."""
    return pack("<I", len(positions)) + positions.astype("<f8").tobytes()


def _one_line(parts: Sequence[bytes], *, size: int) -> Positions:
    lines = [np.frombuffer(part, "<f8", -1, _HEAD + 4).reshape(-1, size) for part in parts]
    joint = [
        line[1:] if before is not None and len(before) and (line[:1] == before[-1:]).all() else line
        for before, line in zip([None, *lines], lines, strict=False)
    ]
    return np.vstack([np.empty((0, size)), *joint])
