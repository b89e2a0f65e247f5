"""The few parts of FlatBuffers that a reader of known tables needs, with every offset checked."""

from __future__ import annotations

from struct import unpack_from

import numpy as np
import numpy.typing as npt


class Table:
    """A table inside a buffer; fields are asked by their numbers in the schema.

    A field that is left out gives the default. Reading past the buffer raises IndexError,
    struct.error or ValueError.
    """

    def __init__(self, buffer: bytes, at: int) -> None:
        self._buffer = buffer
        self._at = at
        (back,) = unpack_from("<i", buffer, at)
        self._fields = _inside(at - back, buffer)
        (self._size,) = unpack_from("<H", buffer, self._fields)

    @classmethod
    def root(cls, buffer: bytes) -> Table:
        """The table that a buffer begins with."""
        return cls(buffer, _inside(unpack_from("<I", buffer, 0)[0], buffer))

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
        return None if at is None else Table(self._buffer, at)

    def tables(self, field: int) -> list[Table]:
        """A vector of tables; empty where it is left out."""
        vector = self._vector(field, width=4)
        if vector is None:
            return []
        start, count = vector
        return [
            Table(self._buffer, _inside(at + unpack_from("<I", self._buffer, at)[0], self._buffer))
            for at in range(start, start + 4 * count, 4)
        ]

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
        return at + 4, count


def _inside(at: int, buffer: bytes) -> int:
    if not 0 <= at < max(len(buffer), 1):
        raise IndexError("an offset leads out of the buffer")
    return at
