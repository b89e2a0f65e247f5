"""What the records of a `.shp` file say themselves: whether there is a shape, and all of it."""

from __future__ import annotations

from pathlib import Path
from struct import unpack_from

import numpy as np

from ploti.errors import SourceError

_POINTS = {1, 11, 21}
_MULTIPOINTS = {8, 18, 28}
_HEAD = 8
"""Bytes of a record's own number and length."""
_NOTHING = 4
"""Bytes of a record without a shape: its type, which is 0."""


class ShapeRecords:
    """The records that the index of a shapefile lists; both files stay open.

    GDAL gives null for a shape that it cannot read, and says nothing.
    """

    def __init__(self, shp: Path) -> None:
        """Raises SourceError where a listed record is beyond the end of the file."""
        index = np.fromfile(shp.with_suffix(".shx"), ">i4", offset=100)
        pairs = index[: len(index) // 2 * 2].reshape(-1, 2).astype(np.int64) * 2
        self._starts, self._lengths = pairs[:, 0] + _HEAD, pairs[:, 1]
        self._data = np.memmap(shp, np.uint8, "r")
        ends = self._starts + pairs[:, 1]
        if len(ends) and ends.max() > len(self._data):
            beyond = int((ends > len(self._data)).sum())
            raise SourceError(f"the .shp file is cut short: {beyond:,} of its shapes are missing")

    def __len__(self) -> int:
        return len(self._starts)

    def expect_none(self, number: int) -> None:
        """Raises SourceError where a record, counted from 0, has a shape after all.

        One without has the length that the index says, and no more in it than the type.
        """
        start, length = int(self._starts[number]), int(self._lengths[number])
        own = unpack_from(">i", self._data[start - 4 : start].tobytes().ljust(4, b"\0"))[0] * 2
        content = self._data[start : start + max(length, 44)].tobytes().ljust(44, b"\0")
        kind: int = unpack_from("<i", content)[0]
        points = unpack_from("<i", content, 36 if kind in _MULTIPOINTS else 40)[0]
        has_shape = kind and (kind in _POINTS or points)
        is_whole = own == length >= _NOTHING and (kind or not any(content[_NOTHING:length]))
        if has_shape or not is_whole:
            raise SourceError(f"the shape of record {number + 1:,} in the .shp file is broken")
