"""Geometry in columns of coordinates, as GeoArrow and GeoParquet's own encodings lay it out."""

from __future__ import annotations

from collections.abc import Callable
from struct import pack
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from ploti.errors import SourceError
from ploti.server.adapters.readers.arrow_text import AnyArray

_KINDS = {"point": 1, "linestring": 2, "polygon": 3}
ENCODINGS = frozenset({*_KINDS, *(f"multi{kind}" for kind in _KINDS)})
"""The encodings that are read: lists around positions, one more for several of a kind."""

_RAISED = {"xy": 0, "xyz": 1000, "xym": 2000, "xyzm": 3000}
"""What the numbers of a position add to a type's code."""

_SIDE_BY_SIDE = {2: "xy", 3: "xyz", 4: "xyzm"}

_Body = Callable[[int], bytes]
"""Writes what follows the head of the geometry, or of its part, at a place."""


def to_wkb(column: AnyArray, *, encoding: str) -> list[bytes | None]:
    """The geometries of a column as little-endian ISO WKB.

    Positions are structs of `x`, `y` and perhaps `z`, `m`, or lists of as many numbers. Raises
    SourceError where the column is not laid out as its `encoding` says.
    """
    kind = _KINDS[encoding.removeprefix("multi")]
    is_multi = encoding.startswith("multi")
    inner: Any = column
    lists: list[list[int]] = []
    for _ in range(kind - 1 + is_multi):
        if not types.is_list(inner.type) and not types.is_large_list(inner.type):
            raise _otherwise(column, encoding)
        lists.append(inner.offsets.to_pylist())
        inner = inner.values
    named = _named(inner.type)
    if named not in _RAISED:
        raise _otherwise(column, encoding)
    code = kind + _RAISED[named]
    write = _body(kind, lists, _positions(inner, len(named)))
    if is_multi:
        write = _holding(write, lists[0], head=pack("<BI", 1, code))
        code += 3
    head = pack("<BI", 1, code)
    known = column.is_valid().to_pylist()
    return [head + write(row) if known[row] else None for row in range(len(column))]


def _body(kind: int, lists: list[list[int]], positions: npt.NDArray[np.float64]) -> _Body:
    def line(place: int) -> bytes:
        start, end = lists[-1][place : place + 2]
        return pack("<I", end - start) + positions[start:end].tobytes()

    match kind:
        case 1:
            return lambda place: positions[place].tobytes()
        case 2:
            return line
        case _:
            return _holding(line, lists[-2])


def _holding(part: _Body, starts: list[int], *, head: bytes = b"") -> _Body:
    def write(place: int) -> bytes:
        start, end = starts[place : place + 2]
        return pack("<I", end - start) + b"".join(head + part(each) for each in range(start, end))

    return write


def _named(of: pa.DataType) -> str | None:
    """The numbers of a position, a letter each; None where these are no positions."""
    if types.is_struct(of):
        names = [field.name for field in of]
        numbers = all(types.is_float64(field.type) for field in of)
        return "".join(names) if numbers else None
    if types.is_fixed_size_list(of) and types.is_float64(of.value_type):
        return _SIDE_BY_SIDE.get(of.list_size)  # Parquet does not keep what its numbers are called
    return None


def _positions(column: Any, size: int) -> npt.NDArray[np.float64]:  # noqa: ANN401 - of two classes
    """A row each; one that is null is of no numbers, as that of an empty point."""
    if types.is_struct(column.type):
        numbers = [column.field(each) for each in range(size)]
        return np.column_stack([each.to_numpy(zero_copy_only=False) for each in numbers])
    start = column.offset * size
    flat = column.values[start : start + len(column) * size]
    return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(-1, size)


def _otherwise(column: AnyArray, encoding: str) -> SourceError:
    return SourceError(f"the geometry is said to be of '{encoding}', and is {column.type}")
