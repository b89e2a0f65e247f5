"""Brings rows in order: by a place, and by columns where places are equal.

Rows are spread by bounds of their places over the parts of a file, and each part is sorted by
itself, so that memory holds one of them however many rows there are. DuckDB, whose sort spills but
costs more, has what places do not divide: rows without any, and a part with too many of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ploti.model.sql import identifier
from ploti.server.adapters.engine import hilbert
from ploti.server.adapters.engine.hilbert import Numbers
from ploti.server.adapters.engine.rows import BATCH, Rows
from ploti.server.build.diff import PLACE, Box, NewRows
from ploti.server.build.names import GEOMETRY

PART = 100_000
"""Rows that a part is to have."""

_LARGE = 4 * PART
_HEAVY = 128 << 20
"""Rows, and bytes, from which on a part is not sorted in memory."""

_DRAWN = 200
"""Rows a part that are drawn to find the bounds of places."""

Batches = Iterable[pa.RecordBatch]


def changed_rows(
    connection: duckdb.DuckDBPyConnection, sql: str, *, places: Numbers, path: Path
) -> Rows:
    """The rows of a query in the order of its column `PLACE`, which are these `places`."""
    found = connection.sql(sql).to_arrow_reader(BATCH)
    spread = Spread(path, found.schema, bounds=places[PART::PART])
    for batch in found:
        spread.add(batch)
    return _without({PLACE}, found.schema, spread.in_order(connection, ()))


def new_rows(connection: duckdb.DuckDBPyConnection, new: NewRows, *, path: Path) -> Rows:
    """New records in the order of their numbers; the connection is theirs until all are taken."""
    found = connection.sql(new.sql)
    if new.box is None:
        batches = found.order(_by(new.by)).to_arrow_reader(BATCH)
        return _without(new.aside, batches.schema, batches)
    bounds = _bounds(connection, new, new.box)
    unplaced = found.to_arrow_reader(BATCH)
    spread = Spread(path, unplaced.schema.append(pa.field(PLACE, pa.int64())), bounds=bounds)
    for batch in unplaced:
        places = hilbert.places(batch.column(GEOMETRY), new.box)
        spread.add(batch.append_column(PLACE, pa.array(places)))
    return _without({PLACE, *new.aside}, unplaced.schema, spread.in_order(connection, new.by))


@dataclass(slots=True)
class _Size:
    rows: int = 0
    bytes: int = 0

    def add(self, piece: pa.RecordBatch) -> None:
        self.rows += piece.num_rows
        self.bytes += piece.nbytes


class Spread:
    """Rows in parts, from one bound of places to the next, on their way through an Arrow file."""

    def __init__(self, path: Path, schema: pa.Schema, *, bounds: Numbers) -> None:
        self._path = path
        self._schema = schema
        self._bounds = bounds
        self._writer = pa.ipc.new_file(str(path), schema)
        self._written = 0
        self._pieces: list[list[int]] = [[] for _ in range(len(bounds) + 1)]
        self._sizes = [_Size() for _ in self._pieces]

    def add(self, rows: pa.RecordBatch) -> None:
        """Take rows with their places in the column `PLACE`."""
        part = np.searchsorted(self._bounds, rows.column(PLACE).to_numpy(), side="right")
        # Numbers of 16 bits are sorted by their digits.
        order = pa.array(np.argsort(part.astype(np.uint16), kind="stable"), pa.int64())
        spread, start = rows.take(order), 0
        for number, size in enumerate(np.bincount(part).tolist()):
            if size:
                piece = spread.slice(start, size)
                self._writer.write_batch(piece)
                self._pieces[number].append(self._written)
                self._sizes[number].add(piece)
                self._written += 1
                start += size

    def in_order(
        self, connection: duckdb.DuckDBPyConnection, by: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """All rows, once, by their places and then by these columns."""
        self._writer.close()
        with self._read() as file:
            reader = pa.ipc.open_file(file)
            for size, pieces in zip(self._sizes, self._pieces, strict=True):
                part = pa.RecordBatchReader.from_batches(
                    self._schema, map(reader.get_batch, pieces)
                )
                if size.rows < _LARGE and size.bytes < _HEAVY:
                    yield from _sorted(part.read_all(), by).to_batches()
                else:
                    found = connection.from_arrow(part).order(_by([PLACE, *by]))
                    yield from found.to_arrow_reader(BATCH)

    @contextmanager
    def _read(self) -> Iterator[pa.NativeFile]:
        """The file, which is gone afterwards."""
        with pa.OSFile(str(self._path), "rb") as file:
            self._path.unlink()
            yield file


def _sorted(part: pa.Table, by: Sequence[str]) -> pa.Table:
    part = part.combine_chunks()  # so that its pieces are freed before its rows are taken
    # As fields: a mere name that begins with a dot is taken for a path.
    keys = [(pc.field(name), "ascending") for name in (PLACE, *by)]
    order = pc.sort_indices(part, sort_keys=keys)  # type: ignore[arg-type]  # the stubs know names
    return part.take(order)


def _by(columns: Sequence[str]) -> str:
    """SQL of an order as Arrow has it."""
    return ", ".join(f"{identifier(name)} NULLS LAST" for name in columns)


def _bounds(connection: duckdb.DuckDBPyConnection, new: NewRows, box: Box) -> Numbers:
    """The places that divide rows into parts about alike, none for few; any would do."""
    parts = -(-new.rows // PART)
    if parts < 2:
        return np.empty(0, np.int64)
    found = connection.sql(
        f"SELECT {GEOMETRY} FROM ({new.sql})"
        f" USING SAMPLE reservoir({parts * _DRAWN} ROWS) REPEATABLE (1)"
    )
    drawn = found.to_arrow_table().column(0)
    places = np.sort(np.concatenate([hilbert.places(chunk, box) for chunk in drawn.chunks]))
    return np.unique(places[_DRAWN::_DRAWN])


def _without(names: Iterable[str], schema: pa.Schema, batches: Batches) -> Rows:
    kept = [name for name in schema.names if name not in set(names)]
    rows = (batch.select(kept) for batch in batches)
    return Rows(pa.schema([schema.field(name) for name in kept]), rows)
