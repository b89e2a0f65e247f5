"""The few parts of FlatBuffers that a reader of known tables needs, with every offset checked."""

from __future__ import annotations

from struct import unpack_from

import numpy as np
import numpy.typing as npt

_WIDEST_GAP = 15
"""Bytes between two parts; they are aligned to 8, and no more is needed for that."""


class Table:
    """A table inside a buffer; fields are asked by their numbers in the schema.

    A field that is left out gives the default. Reading past the buffer raises IndexError,
    struct.error or ValueError.
    """

    def __init__(self, buffer: bytes, at: int, read: list[tuple[int, int]]) -> None:
        self._buffer = buffer
        self._at = at
        self._read = read
        (back,) = unpack_from("<i", buffer, at)
        self._fields = _inside(at - back, buffer)
        self._size, own = unpack_from("<HH", buffer, self._fields)
        read += [(at, at + own), (self._fields, self._fields + self._size)]

    @classmethod
    def root(cls, buffer: bytes) -> Table:
        """The table that a buffer begins with."""
        return cls(buffer, _inside(unpack_from("<I", buffer, 0)[0], buffer), [(0, 4)])

    def check_read(self) -> None:
        """Raise ValueError where bytes of the buffer belong to nothing that was asked for.

        A part that a damaged table leaves out is else as if it had never been there.
        """
        end = 0
        for start, stop in sorted([*self._read, (len(self._buffer), 0)]):
            if start - end > _WIDEST_GAP:
                raise ValueError(f"{start - end:,} of its bytes belong to nothing")
            end = max(end, stop)

    def number(self, field: int, kind: str, *, default: int = 0) -> int:
        """A whole number or truth value; `kind` is its letter in `struct`."""
        at = self._place(field)
        return default if at is None else int(unpack_from("<" + kind, self._buffer, at)[0])

    def text(self, field: int) -> str | None:
        """A text in UTF-8."""
        found = self.bytes_(field)
        return None if found is None else found.decode("utf-8")

    def bytes_(self, field: int) -> bytes | None:
        """A vector of bytes."""
        vector = self._vector(field, width=1)
        return None if vector is None else self._buffer[vector[0] : vector[0] + vector[1]]

    def doubles(self, field: int) -> npt.NDArray[np.float64] | None:
        """A vector of doubles."""
        vector = self._vector(field, width=8)
        return None if vector is None else np.frombuffer(self._buffer, "<f8", vector[1], vector[0])

    def indices(self, field: int) -> list[int]:
        """A vector of unsigned 32-bit numbers; empty where it is left out."""
        vector = self._vector(field, width=4)
        if vector is None:
            return []
        return [int(each) for each in np.frombuffer(self._buffer, "<u4", vector[1], vector[0])]

    def table(self, field: int) -> Table | None:
        """A table inside this one."""
        at = self._target(field)
        return None if at is None else Table(self._buffer, at, self._read)

    def tables(self, field: int) -> list[Table]:
        """A vector of tables; empty where it is left out."""
        vector = self._vector(field, width=4)
        if vector is None:
            return []
        start, count = vector
        places = [
            _inside(at + unpack_from("<I", self._buffer, at)[0], self._buffer)
            for at in range(start, start + 4 * count, 4)
        ]
        return [Table(self._buffer, at, self._read) for at in places]

    def _place(self, field: int) -> int | None:
        entry = 4 + 2 * field
        if entry + 2 > self._size:
            return None
        (offset,) = unpack_from("<H", self._buffer, self._fields + entry)
        return self._at + offset if offset else None

    def _target(self, field: int) -> int | None:
        at = self._place(field)
        if at is None:
            return None
        return _inside(at + unpack_from("<I", self._buffer, at)[0], self._buffer)

    def _vector(self, field: int, *, width: int) -> tuple[int, int] | None:
        """Where a vector's values begin, and how many there are."""
        at = self._target(field)
        if at is None:
            return None
        (count,) = unpack_from("<I", self._buffer, at)
        _inside(at + 4 + count * width - 1, self._buffer)
        self._read.append((at, at + 4 + count * width))
        return at + 4, count


def _inside(at: int, buffer: bytes) -> int:
    if not 0 <= at < max(len(buffer), 1):
        raise IndexError("an offset leads out of the buffer")
    return at
