"""Keeps the rows of a query for the time of a build: a Parquet file that is cheap to write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_FEW = 0.2
"""The share of different texts below which they are kept as numbers of a dictionary, which
costs as much to write; what reads the column looks at each text once."""


class Counted(NamedTuple):
    """How many rows a file has, and how many nulls each of its columns."""

    rows: int
    nulls: Mapping[str, int]


def write_kept(rows: pa.RecordBatchReader, path: Path) -> Counted:
    """Write rows as they are, each batch as a row group.

    Nothing is packed or measured: the file is read a few times and goes with the build.
    """
    first = next(rows, None)
    batches = chain([first], rows) if first else []
    count, nulls = 0, Counter(dict.fromkeys(rows.schema.names, 0))
    with pq.ParquetWriter(
        path,
        rows.schema,
        compression="none",
        use_dictionary=_repeating(first) if first else [],  # type: ignore[arg-type]  # the stubs know only bool
        write_statistics=False,
        store_schema=False,
    ) as file:
        for batch in batches:
            file.write_batch(batch)
            count += batch.num_rows
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                nulls[name] += column.null_count
    return Counted(rows=count, nulls=nulls)


def _repeating(rows: pa.RecordBatch) -> list[str]:
    """The columns of texts that come again and again."""
    most = rows.num_rows * _FEW
    return [
        field.name
        for field in rows.schema
        if field.type == pa.string() and pc.count_distinct(rows.column(field.name)).as_py() < most
    ]
