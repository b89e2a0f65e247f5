"""Arcs and curves in the geometries of ArcGIS servers, drawn as short straight lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import atan2, ceil, cos, hypot, pi, sin, tau
from typing import NamedTuple

_LINES = 96
"""Straight lines for a whole circle: its area comes out within 0.1 %."""

_BEZIER_LINES = 24
_ABOUT = 1e-9


def straightened(part: object) -> list[list[object]]:
    """A path or ring of positions and curves as positions alone.

    Raises ValueError for a curve of a kind that is not known.
    """
    drawn: list[list[object]] = []
    for piece in listed(part, otherwise="a part of its geometry is no list"):
        match piece:
            case Mapping() if drawn:
                drawn += _curve(_pair(drawn[-1]), piece)
            case list():
                drawn.append(piece)
            case _:
                raise ValueError("its geometry has neither a position nor a curve where one begins")
    return drawn


def listed(value: object, *, otherwise: str) -> list[object]:
    """A value that is a list; raises ValueError saying `otherwise` what it is."""
    match value:
        case list():
            return value
        case _:
            raise ValueError(otherwise)


def _curve(start: tuple[float, float], piece: Mapping[str, object]) -> list[list[object]]:
    match dict(piece):
        case {"c": [list(end), list(through)]}:
            points = _through(start, _pair(through), _pair(end))
        case {"a": [list(end), list(center), minor, clockwise, *rest]}:
            ellipse = _Ellipse.of(_pair(center), rest)
            points = ellipse.arc(start, _pair(end), minor=bool(minor), clockwise=bool(clockwise))
        case {"b": [list(end), list(one), list(other)]}:
            points = _bezier(start, _pair(one), _pair(other), _pair(end))
        case _:
            raise ValueError(f"its geometry has a curve of an unknown kind ({', '.join(piece)})")
    return [*([x, y] for x, y in points), end]


def _through(
    start: tuple[float, float], middle: tuple[float, float], end: tuple[float, float]
) -> Iterator[tuple[float, float]]:
    """The points between the ends of a circular arc that passes a point; on a line, none."""
    (ax, ay), (bx, by), (cx, cy) = start, middle, end
    if start == end:  # a whole circle, whose middle is across
        x, y = (ax + bx) / 2, (ay + by) / 2
        yield from _Ellipse((x, y)).swept(start, tau)
        return
    double = 2 * (ax * (by - cy) + bx * (cy - ay) + cx * (ay - by))
    if abs(double) < 1e-12 * (hypot(cx - ax, cy - ay) ** 2):
        return
    a, b, c = ax * ax + ay * ay, bx * bx + by * by, cx * cx + cy * cy
    x = (a * (by - cy) + b * (cy - ay) + c * (ay - by)) / double
    y = (a * (cx - bx) + b * (ax - cx) + c * (bx - ax)) / double
    first, passed, last = (atan2(py - y, px - x) for px, py in (start, middle, end))
    sweep = (last - first) % tau
    if (passed - first) % tau > sweep:
        sweep -= tau
    yield from _Ellipse((x, y)).swept(start, sweep)


class _Ellipse(NamedTuple):
    """An ellipse about a center: how far it is turned, and its shorter axis's share of the other.

    A circle is one whose axes are equal.
    """

    center: tuple[float, float]
    turn: float = 0.0
    ratio: float = 1.0

    @classmethod
    def of(cls, center: tuple[float, float], rest: Sequence[object]) -> _Ellipse:
        """The ellipse that a curve tells after its direction: turn, half an axis, ratio."""
        match rest:
            case [int() | float() as turn, int() | float(), int() | float() as ratio] if ratio:
                return cls(center, float(turn), float(ratio))
            case _:
                return cls(center)

    def arc(
        self, start: tuple[float, float], end: tuple[float, float], *, minor: bool, clockwise: bool
    ) -> Iterator[tuple[float, float]]:
        """The points between two of its points, which are one where all of it is meant.

        The way is clockwise or the other; a `minor` arc that would be more than half is the rest.
        """
        first, last = self._angle(start), self._angle(end)
        sweep = (last - first) % tau or tau
        if clockwise:
            sweep = sweep - tau if sweep < tau else -tau
        if minor and abs(sweep) > pi + _ABOUT and start != end:
            sweep += tau if sweep < 0 else -tau
        yield from self.swept(start, sweep)

    def swept(self, start: tuple[float, float], sweep: float) -> Iterator[tuple[float, float]]:
        """The points between a point and the one that is so many radians further."""
        along, across = self._pressed(start)
        steps = max(2, ceil(abs(sweep) / tau * _LINES))
        for step in range(1, steps):
            angle = sweep * step / steps
            u = along * cos(angle) - across * sin(angle)
            v = (along * sin(angle) + across * cos(angle)) * self.ratio
            yield (
                self.center[0] + u * cos(self.turn) - v * sin(self.turn),
                self.center[1] + u * sin(self.turn) + v * cos(self.turn),
            )

    def _angle(self, point: tuple[float, float]) -> float:
        along, across = self._pressed(point)
        return atan2(across, along)

    def _pressed(self, point: tuple[float, float]) -> tuple[float, float]:
        """A point as on the circle that the ellipse is pressed from, along its axes."""
        x, y = point[0] - self.center[0], point[1] - self.center[1]
        along = x * cos(self.turn) + y * sin(self.turn)
        return along, (y * cos(self.turn) - x * sin(self.turn)) / self.ratio


def _bezier(
    start: tuple[float, float],
    one: tuple[float, float],
    other: tuple[float, float],
    end: tuple[float, float],
) -> Iterator[tuple[float, float]]:
    for step in range(1, _BEZIER_LINES):
        t = step / _BEZIER_LINES
        weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
        points = (start, one, other, end)
        yield (
            sum(weight * x for weight, (x, _) in zip(weights, points, strict=True)),
            sum(weight * y for weight, (_, y) in zip(weights, points, strict=True)),
        )


def _pair(position: Sequence[object]) -> tuple[float, float]:
    match position:
        case [int() | float() as x, int() | float() as y, *_]:
            return float(x), float(y)
        case _:
            raise ValueError("its geometry has a position without numbers")
