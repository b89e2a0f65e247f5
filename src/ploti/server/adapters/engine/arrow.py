"""Arrow columns and numpy arrays, from one to the other without a copy."""

from __future__ import annotations

from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Column: TypeAlias = "pa.Array[Any]"
"""A column of any type, in one piece."""

Mask: TypeAlias = npt.NDArray[np.bool_]
Doubles: TypeAlias = npt.NDArray[np.float64]


def whole(column: Column | pa.ChunkedArray[Any]) -> Column:
    """A column in one piece."""
    if isinstance(column, pa.ChunkedArray):
        return pa.concat_arrays(column.chunks) if column.num_chunks else column.combine_chunks()
    return column


def buffer(array: npt.NDArray[Any]) -> pa.Buffer:
    """An array's bytes as a buffer of Arrow."""
    return pa.py_buffer(np.ascontiguousarray(array).data)


def numbers(found: pa.Buffer | None, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """A buffer's bytes as numbers; none where Arrow has no buffer."""
    return np.frombuffer(b"" if found is None else memoryview(found), kind)


def all_finite(rows: Doubles) -> Mask:
    """Which rows of an array have no infinite value and no NaN."""
    # By column: numpy's own way along rows takes ten times as long for two of them.
    found: Mask = reduce(np.logical_and, map(np.isfinite, rows.T))
    return found


def is_there(column: Column) -> Mask:
    """Which values are not null."""
    found: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    return found
