"""KML's shapes as little-endian ISO WKB, coordinate for coordinate."""

from __future__ import annotations

import re
from struct import pack

_COMMA = re.compile(r"\s*,\s*")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_CODES = {"Point": 1, "LineString": 2, "LinearRing": 2, "Polygon": 3}
_COLLECTION = 7
_Z = 1000
_MULTI = 3


class Shape:
    """One shape with its positions, or with its parts: rings, or the shapes of a collection."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.positions: list[list[float]] = []
        self.parts: list[Shape] = []

    def wkb(self) -> bytes:
        """The shape as WKB, with Z if any position of it has a height; a missing one is 0.

        A collection of one type is a multi-geometry. Raises ValueError for a point of several
        positions.
        """
        return self.write(_Z if self.has_height() else 0)

    def has_height(self) -> bool:
        """Whether any position in it has a height."""
        return any(len(position) > 2 for position in self.positions) or any(
            part.has_height() for part in self.parts
        )

    def write(self, z: int) -> bytes:
        """The shape as WKB, its type code raised by `z`."""
        size = 3 if z else 2
        if self.kind == "MultiGeometry":
            parts = [part.write(z) for part in self.parts]
            return pack("<BII", 1, self._collection_code() + z, len(parts)) + b"".join(parts)
        head = pack("<BI", 1, _CODES[self.kind] + z)
        if self.kind == "Polygon":
            rings = [_line(part.positions, size) for part in self.parts]
            return head + pack("<I", len(rings)) + b"".join(rings)
        if self.kind != "Point":
            return head + _line(self.positions, size)
        if len(self.positions) > 1:
            raise ValueError(f"its Point has {len(self.positions)} positions")
        return head + _numbers(self.positions or [[float("nan")] * size], size)

    def _collection_code(self) -> int:
        kinds = {_CODES.get(part.kind) for part in self.parts}
        only = kinds.pop() if len(kinds) == 1 else None
        return only + _MULTI if only else _COLLECTION


def coordinates(text: str) -> list[list[float]]:
    """The positions in a text of `longitude,latitude[,height]`, parted by blanks.

    Raises ValueError with the one that is none.
    """
    return [_position(each) for each in _COMMA.sub(",", text).split()]


def _position(text: str) -> list[float]:
    numbers = text.split(",")
    if not 2 <= len(numbers) <= 3:
        raise ValueError(f"'{text[:60]}' is no position")
    if not all(map(_NUMBER.fullmatch, numbers)):
        raise ValueError(f"'{text[:60]}' is no position")
    return [float(number) for number in numbers]


def _line(positions: list[list[float]], size: int) -> bytes:
    return pack("<I", len(positions)) + _numbers(positions, size)


def _numbers(positions: list[list[float]], size: int) -> bytes:
    flat = [number for position in positions for number in [*position, 0.0][:size]]
    return pack(f"<{len(flat)}d", *flat)
