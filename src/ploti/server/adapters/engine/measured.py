"""Geometry with measures (M), which GEOS drops: its WKB taken apart, changed and put together."""

from __future__ import annotations

from collections.abc import Callable
from struct import pack, unpack_from
from typing import NamedTuple

import numpy as np

from ploti.server.adapters.engine.arrow import Doubles

Change = Callable[[Doubles], Doubles]
"""Takes coordinates, a row each: x, y and z where there is one; gives as many."""

_POINT, _LINE, _POLYGON = 1, 2, 3
_DOUBLE = 8


class _Node(NamedTuple):
    """A geometry: its ISO type, the coordinates of its point, line or rings, and its parts."""

    code: int
    lines: list[Doubles]
    parts: list[_Node]

    @property
    def kind(self) -> int:
        return self.code % 1000


def mapped(wkb: bytes, change: Change) -> bytes:
    """A measured geometry with other coordinates; its measures stay."""
    return _write(_map(_parse(wkb), change))


def canonical(wkb: bytes, change: Change) -> bytes:
    """A measured geometry in canonical form (digest.md), its coordinates changed before."""
    return _write(_normal(_map(_parse(wkb), change)))


def _parse(wkb: bytes) -> _Node:
    return _read(wkb, 0)[0]


def _read(wkb: bytes, at: int) -> tuple[_Node, int]:
    (code,) = unpack_from("<I", wkb, at + 1)
    at += 5
    kind, size = code % 1000, 2 + (code // 1000 + 1) // 2
    if kind == _POINT:
        point, at = _read_line(wkb, at, count=1, size=size)
        return _Node(code, [point], []), at
    (count,) = unpack_from("<I", wkb, at)
    at += 4
    if kind == _LINE:
        line, at = _read_line(wkb, at, count=count, size=size)
        return _Node(code, [line], []), at
    lines: list[Doubles] = []
    parts: list[_Node] = []
    for _ in range(count):
        if kind == _POLYGON:
            (length,) = unpack_from("<I", wkb, at)
            ring, at = _read_line(wkb, at + 4, count=length, size=size)
            lines.append(ring)
        else:
            part, at = _read(wkb, at)
            parts.append(part)
    return _Node(code, lines, parts), at


def _read_line(wkb: bytes, at: int, *, count: int, size: int) -> tuple[Doubles, int]:
    values = np.frombuffer(wkb, "<f8", count * size, at).reshape(count, size)
    return values, at + count * size * _DOUBLE


def _write(node: _Node) -> bytes:
    head = pack("<BI", 1, node.code)
    if node.kind == _POINT:
        return head + _bytes(node.lines[0])
    if node.kind == _LINE:
        return head + _counted(node.lines[0])
    if node.kind == _POLYGON:
        return head + pack("<I", len(node.lines)) + b"".join(map(_counted, node.lines))
    return head + pack("<I", len(node.parts)) + b"".join(map(_write, node.parts))


def _counted(line: Doubles) -> bytes:
    return pack("<I", len(line)) + _bytes(line)


def _bytes(line: Doubles) -> bytes:
    """The numbers, with one NaN and one zero."""
    return np.where(np.isnan(line), np.nan, line + 0.0).astype("<f8").tobytes()


def _map(node: _Node, change: Change) -> _Node:
    lines = [np.hstack([change(line[:, :-1]), line[:, -1:]]) for line in node.lines]
    return _Node(node.code, lines, [_map(part, change) for part in node.parts])


def _normal(node: _Node) -> _Node:
    if node.kind == _POLYGON and node.lines:
        shell, *holes = node.lines
        turned = [_turned(hole, anticlockwise=False) for hole in holes]
        rings = [_turned(shell, anticlockwise=True), *sorted(turned, key=_counted)]
        return _Node(node.code, rings, [])
    return _Node(node.code, node.lines, sorted(map(_normal, node.parts), key=_write))


def _turned(ring: Doubles, *, anticlockwise: bool) -> Doubles:
    """A ring in the direction wanted, from its least vertex; of several, the least as a whole."""
    if len(ring) == 0:
        return ring
    x, y = (ring[:, side] - ring[0, side] for side in (0, 1))
    area = float(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1]))
    vertices = [tuple(vertex) for vertex in (ring if (area >= 0) == anticlockwise else ring[::-1])]
    vertices.pop()
    least = min(vertices)
    starts = [place for place, vertex in enumerate(vertices) if vertex == least]
    best = min(vertices[start:] + vertices[:start] for start in starts)
    return np.array([*best, best[0]], np.float64)
