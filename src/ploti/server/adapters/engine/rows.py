"""Arrow rows on their way into a file: cut to size, numbered, boxed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ploti.server.adapters.engine import wkb
from ploti.server.adapters.engine.arrow import Column, Doubles, buffer, is_there

_DIGITS = 10


BATCH = 30_000
"""Rows that go from DuckDB to a file at a time."""


class Rows:
    """Rows out of a stream of batches, taken so many at a time."""

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._schema = schema
        self._held: list[pa.RecordBatch] = []
        self._count = 0

    @classmethod
    def of(cls, reader: pa.RecordBatchReader) -> Rows:
        """The rows of a reader."""
        return cls(reader.schema, iter(reader))

    def take(self, rows: int) -> pa.Table:
        """The next rows, fewer only at the end."""
        while self._count < rows and (batch := next(self._batches, None)) is not None:
            self._held.append(batch)
            self._count += batch.num_rows
        table = pa.Table.from_batches(self._held, self._schema)
        rest = table.slice(rows)
        self._held, self._count = rest.to_batches(), rest.num_rows
        return table.slice(0, rows)

    def parts(self, rows: int) -> Iterator[pa.Table]:
        """All that is left, so many rows at a time."""
        while (table := self.take(rows)).num_rows:
            yield table

    def drain(self) -> None:
        """Read to the end, so that what the rows come from lets go of all that it holds."""
        self._held, self._count = [], 0
        for _ in self._batches:
            pass


def record_ids(version: int, *, start: int, count: int) -> Column:
    """The ids of a version's new records from number `start` on, as `model.ids` makes them."""
    prefix = np.frombuffer(f"rec_{version:08d}".encode(), np.uint8)
    size = len(prefix) + _DIGITS
    text = np.empty((count, size), np.uint8)
    text[:, : len(prefix)] = prefix
    numbers = np.arange(start, start + count, dtype=np.int64)
    for place in range(_DIGITS):
        text[:, size - 1 - place] = numbers // 10**place % 10 + ord("0")
    offsets = np.arange(count + 1, dtype=np.int32) * size
    return pa.Array.from_buffers(pa.string(), count, [None, buffer(offsets), buffer(text)])


BOX = pa.struct([(name, pa.float32()) for name in ("xmin", "ymin", "xmax", "ymax")])


def float_boxes(geometry: Column) -> pa.StructArray:
    """The box of each geometry in single precision, rounded outward.

    It is null where the geometry is, and of an empty one has no sides.
    """
    found = wkb.boxes(geometry)
    missing = np.isnan(found[:, 0])
    sides = [_outward(found[:, side], towards=-np.inf if side < 2 else np.inf) for side in range(4)]
    return pa.StructArray.from_arrays(
        [pa.array(side, pa.float32(), mask=missing) for side in sides],
        fields=list(BOX),
        mask=pa.array(~is_there(geometry)),
    )


def _outward(values: Doubles, *, towards: float) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):
        near = values.astype(np.float32)
    inside = near > values if towards < 0 else near < values
    return np.where(inside, np.nextafter(near, np.float32(towards)), near)
