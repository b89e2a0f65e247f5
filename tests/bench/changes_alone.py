"""The walk of a build that writes the changes file alone, without the snapshot beside it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from ploti.model.columns import CHANGE, OP, RECORD_ID
from ploti.model.schema import Schema
from ploti.server.adapters.engine.duck import DuckEngine
from ploti.server.adapters.engine.ordering import new_rows
from ploti.server.adapters.engine.parquet import ParquetFile
from ploti.server.adapters.engine.rows import BATCH
from ploti.server.adapters.engine.snapshot import new_records, with_boxes
from ploti.server.adapters.engine.walk import Walk
from ploti.server.ports.building import NextVersion


class DiffEngine(DuckEngine):
    """The engine, for a version of which only the changes are written."""

    def write_changes(self, step: NextVersion, *, schema: Schema, version: int) -> int:
        """Write the changes file; how many rows it has."""
        walk = ChangesWalk(
            self._connection,
            self._beside,
            step,
            folder=Path(self.folder),
            schema=schema,
            version=version,
            telling=self.telling,
        )
        return walk.write_changes()


class ChangesWalk(Walk):
    """The walk over the base's ids alone."""

    def write_changes(self) -> int:
        """Write the changes file; how many rows it has."""
        with self._open(self._folder / "changes.parquet", (RECORD_ID, OP, CHANGE)) as listed:
            self._write_deletes(listed)
            start = 0
            for batch in self._base.iter_batches(BATCH, columns=[RECORD_ID]):
                changed = self._touched.within(start, start + batch.num_rows).changed
                start += batch.num_rows
                values = self._changed.take(len(changed))
                ids = batch.column(0).take(pa.array(changed))
                now = with_boxes(values.append_column(RECORD_ID, ids), schema=self._schema)
                self._list(listed, now, "changed")
            self._give_back()
            start = 0
            path = self._folder / "added.arrow"
            for values in new_rows(self._connection, self._step.added, path=path).parts(BATCH):
                rows = new_records(values, schema=self._schema, version=self._version, start=start)
                start += rows.num_rows
                self._list(listed, rows, "added")
        return listed.rows

    def _list(self, listed: ParquetFile, rows: pa.Table, change: str) -> None:
        for name, word in ((OP, "upsert"), (CHANGE, change)):
            rows = rows.append_column(name, pa.array([word] * rows.num_rows, pa.string()))
        listed.add(rows)
