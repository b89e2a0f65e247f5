"""One walk over the base's row groups that writes the next snapshot, its changes and its digest."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ploti.errors import SourceError
from ploti.model.columns import BBOX, CHANGE, OP, RECORD_ID
from ploti.model.digest import NO_ROWS, Buckets, digest_sql
from ploti.model.schema import Schema
from ploti.model.sql import identifier
from ploti.server.adapters.engine.ordering import changed_rows, new_rows
from ploti.server.adapters.engine.parquet import ParquetFile, kept_encodings
from ploti.server.adapters.engine.rows import BATCH, BOX, Rows
from ploti.server.adapters.engine.sealing import seal
from ploti.server.adapters.engine.snapshot import digest_file, file_format, new_records, with_boxes
from ploti.server.build.candidate import BuiltFile, FileRole
from ploti.server.build.groups import FULL, group_sizes
from ploti.server.build.layout import Layout, choose_encodings
from ploti.server.build.progress import Telling
from ploti.server.ports.building import NextVersion, Written

_GATHERED = 40_000
"""Rows that are digested at a time."""

Positions = npt.NDArray[np.int64]


class Touched(NamedTuple):
    """The rows of the base that change and those that go, by position."""

    changed: Positions
    removed: Positions

    def within(self, start: int, stop: int) -> Touched:
        """Those of a stretch of rows, counted from its start."""
        changed, removed = (
            places[np.searchsorted(places, start) : np.searchsorted(places, stop)] - start
            for places in self
        )
        return Touched(changed=changed, removed=removed)


class Ledger:
    """The sum of the digests of rows, taken many at a time."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, schema: Schema) -> None:
        self._connection = connection.cursor()
        self._sql = digest_sql(schema, "gathered")
        self._waiting: list[pa.Table] = []
        self._buckets = NO_ROWS

    def add(self, rows: pa.Table) -> None:
        """Take in rows."""
        self._waiting += [rows] if rows.num_rows else []
        if sum(table.num_rows for table in self._waiting) >= _GATHERED:
            self._sum()

    @property
    def buckets(self) -> Buckets:
        """The buckets of all rows taken in."""
        self._sum()
        return self._buckets

    def _sum(self) -> None:
        if not self._waiting:
            return
        self._connection.register("gathered", pa.concat_tables(self._waiting))
        found = self._connection.execute(self._sql).fetchall()
        self._connection.unregister("gathered")
        self._buckets = self._buckets.plus(Buckets.from_sql(found))
        self._waiting = []


class Walk:
    """The making of one version out of its base; `write` does it once."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        beside: duckdb.DuckDBPyConnection,
        step: NextVersion,
        *,
        folder: Path,
        schema: Schema,
        version: int,
        telling: Telling,
    ) -> None:
        self._connection = connection
        self._telling = telling
        self._step = step
        self._folder = folder
        self._schema = schema
        self._version = version
        self._base = pq.ParquetFile(step.base.snapshot, pre_buffer=False)
        self._touched = self._read_touched()
        self._changed = changed_rows(
            connection, step.changed, places=self._touched.changed, path=folder / "changed.arrow"
        )
        self._returned = Rows.of(beside.sql(step.returned).to_arrow_reader(BATCH))
        self._returned_ids = self._read_returned_ids()
        encodings = choose_encodings(schema, kept=self._kept_encodings(), distinct={})
        self._layout = Layout(schema=schema, encodings=encodings)
        self._old = Ledger(connection, step.base.schema)
        self._new = Ledger(connection, schema)

    def _kept_encodings(self) -> dict[str, str]:
        """The base's encodings, but of retyped columns."""
        before = {column.name: column.type for column in self._step.base.schema.columns}
        same = {
            column.name for column in self._schema.columns if before.get(column.name) == column.type
        }
        found = kept_encodings(self._step.base.snapshot)
        return {name: encoding for name, encoding in found.items() if name in same}

    def _read_touched(self) -> Touched:
        found = self._connection.sql(self._step.touched).to_arrow_table()
        places = found.column("base_pos").to_numpy()
        removed = found.column("removed").to_numpy()
        return Touched(changed=places[~removed], removed=places[removed])

    def _read_returned_ids(self) -> list[str]:
        sql = f"SELECT {identifier(RECORD_ID)} FROM ({self._step.returned}) ORDER BY 1"
        return [str(found) for (found,) in self._connection.sql(sql).fetchall()]

    def write(self) -> Written:
        """Write the snapshot and, unless the version is to be loaded, the changes file."""
        snapshot, changes = self._folder / "snapshot.parquet", self._folder / "changes.parquet"
        with ExitStack() as stack:
            out = stack.enter_context(self._open(snapshot, (RECORD_ID,)))
            listed = None
            if self._step.with_changes:
                listed = stack.enter_context(self._open(changes, (RECORD_ID, OP, CHANGE)))
                self._write_deletes(listed)
            self._write_kept(out, listed)
            self._give_back()
            self._write_added(out, listed)
        self._give_back()
        return Written(
            snapshot=self._seal(snapshot, FileRole.SNAPSHOT, out),
            changes=self._seal(changes, FileRole.CHANGES, listed) if listed else None,
            buckets=self._digest(snapshot),
            geometry_types=sorted(out.extent.kinds),
        )

    def _open(self, path: Path, envelope: tuple[str, ...]) -> ParquetFile:
        sizes = repeat(FULL) if OP in envelope else iter(self._sizes())
        return ParquetFile(path, layout=self._layout, envelope=envelope, sizes=sizes)

    def _seal(self, path: Path, role: FileRole, file: ParquetFile) -> BuiltFile:
        return seal(path, role=role, format_=file_format(self._schema), rows=file.rows)

    def _sizes(self) -> list[int]:
        kept = [
            stop - start - len(self._touched.within(start, stop).removed)
            for start, stop in self._stretches()
        ]
        placed = 0
        for group in range(len(kept)):
            upto = bisect_right(self._returned_ids, self._last_id(group))
            kept[group] += upto - placed
            placed = upto
        left = len(self._returned_ids) - placed
        return group_sizes(kept, added=self._step.added.rows + left)

    def _last_id(self, group: int) -> str:
        """The greatest record id of a row group of the base, which is in order of them."""
        place = self._base.schema_arrow.get_field_index(RECORD_ID)
        chunk = self._base.metadata.row_group(group).column(place)
        if chunk.statistics is None:
            raise RuntimeError("a snapshot has no statistics of its record ids")
        return str(chunk.statistics.max)

    def _stretches(self) -> Iterator[tuple[int, int]]:
        """Where each row group of the base begins and ends."""
        start = 0
        for group in range(self._base.num_row_groups):
            stop = start + self._base.metadata.row_group(group).num_rows
            yield start, stop
            start = stop

    def _write_deletes(self, listed: ParquetFile) -> None:
        """The ids of what goes come first, so they are read apart."""
        for group, (start, stop) in enumerate(self._stretches()):
            removed = self._touched.within(start, stop).removed
            if len(removed):
                ids = self._base.read_row_group(group, columns=[RECORD_ID]).take(removed)
                listed.add(_deletes(ids, listed.schema))

    def _write_kept(self, out: ParquetFile, listed: ParquetFile | None) -> None:
        start = 0
        for batch in self._base.iter_batches(BATCH):
            touched = self._touched.within(start, start + batch.num_rows)
            start += batch.num_rows
            before = pa.Table.from_batches([batch])
            back = self._take_returned(up_to=str(batch.column(RECORD_ID)[-1]))
            self._write_batch(before, touched, back, out, listed)
            self._telling.reach_rows(out.rows)
        self._write_back(self._take_returned(up_to=None), out, listed)
        self._changed.drain()

    def _take_returned(self, *, up_to: str | None) -> pa.Table:
        """The records that come back next, up to an id."""
        ids = self._returned_ids
        count = len(ids) if up_to is None else bisect_right(ids, up_to)
        del ids[:count]
        return with_boxes(self._returned.take(count), schema=self._schema)

    def _write_back(self, back: pa.Table, out: ParquetFile, listed: ParquetFile | None) -> None:
        """Write records that came back after all of the base's."""
        self._new.add(back)
        out.add(back)
        if listed:
            listed.add(_upserts(back, "added"))

    def _write_batch(
        self,
        before: pa.Table,
        touched: Touched,
        back: pa.Table,
        out: ParquetFile,
        listed: ParquetFile | None,
    ) -> None:
        rows = self._recast(before)
        if not (len(touched.changed) or len(touched.removed) or back.num_rows):
            out.add(rows)
            return
        old = before.take(np.concatenate([touched.changed, touched.removed]))
        values = self._changed.take(len(touched.changed))
        now = self._renewed(old.slice(0, len(touched.changed)), values)
        self._old.add(old)
        self._new.add(now)
        self._new.add(back)
        kept = _replace(rows, now.select(rows.column_names), touched)
        out.add(_in_order(kept, back.select(rows.column_names).cast(rows.schema)))
        if listed:
            listed.add(_in_order(_upserts(now, "changed"), _upserts(back, "added")))

    def _renewed(self, old: pa.Table, values: pa.Table) -> pa.Table:
        """The new values of changed records under the ids that they keep."""
        for name in self._schema.key_columns if self._step.same_keys else ():
            if not values.column(name).equals(old.column(name).cast(values.column(name).type)):
                raise SourceError("two different keys have one hash, which cannot be matched")
        return with_boxes(
            values.append_column(RECORD_ID, old.column(RECORD_ID)), schema=self._schema
        )

    def _recast(self, rows: pa.Table) -> pa.Table:
        """The base's rows in the version's columns."""
        if self._step.recast is None:
            return rows
        values = [f"{sql} AS {identifier(name)}" for name, sql in self._step.recast.items()]
        has_boxes = BBOX in rows.column_names
        if self._schema.geometry and has_boxes:
            values.append(identifier(BBOX))
        cursor = self._connection.cursor()
        cursor.register("kept", rows)
        sql = f"SELECT {identifier(RECORD_ID)}, {', '.join(values)} FROM kept"
        recast: pa.Table = cursor.sql(sql).to_arrow_table()
        if self._schema.geometry and not has_boxes:
            recast = recast.append_column(BBOX, pa.nulls(recast.num_rows, BOX))
        return recast

    def _write_added(self, out: ParquetFile, listed: ParquetFile | None) -> None:
        start = 0
        added = new_rows(self._connection, self._step.added, path=self._folder / "added.arrow")
        for values in added.parts(BATCH):
            rows = new_records(values, schema=self._schema, version=self._version, start=start)
            start += rows.num_rows
            self._new.add(rows)
            out.add(rows)
            if listed:
                listed.add(_upserts(rows, "added"))

    def _give_back(self) -> None:
        """Let the system have what Arrow freed and keeps: DuckDB needs it for what follows."""
        pa.default_memory_pool().release_unused()

    def _digest(self, snapshot: Path) -> Buckets:
        """Whole for a version to be loaded, else from the base's and the changed rows alone."""
        if not self._step.with_changes:
            return digest_file(self._connection, snapshot, schema=self._schema)
        base = Buckets.from_wire(self._step.base.buckets)
        return base.minus(self._old.buckets).plus(self._new.buckets)


def _replace(rows: pa.Table, values: pa.Table, touched: Touched) -> pa.Table:
    """The rows with new values at the changed places and without the removed ones."""
    places = np.arange(rows.num_rows)
    places[touched.changed] = rows.num_rows + np.arange(len(touched.changed))
    kept = np.delete(places, touched.removed)
    both = pa.concat_tables([rows, values.cast(rows.schema)]).combine_chunks()
    return both.take(kept)


def _in_order(rows: pa.Table, more: pa.Table) -> pa.Table:
    """The rows of both in the order of their ids."""
    if not more.num_rows:
        return rows
    both = pa.concat_tables([rows, more.select(rows.column_names)]).combine_chunks()
    return both.take(pc.sort_indices(both.column(RECORD_ID)))


def _upserts(rows: pa.Table, change: str) -> pa.Table:
    return _said(rows, "upsert", change)


def _deletes(ids: pa.Table, schema: pa.Schema) -> pa.Table:
    rows = ids
    for field in schema:
        if field.name not in {RECORD_ID, OP, CHANGE}:
            rows = rows.append_column(field, pa.nulls(ids.num_rows, field.type))
    return _said(rows, "delete", "removed")


def _said(rows: pa.Table, op: str, change: str) -> pa.Table:
    for name, word in ((OP, op), (CHANGE, change)):
        rows = rows.append_column(name, pa.array([word] * rows.num_rows, pa.string()))
    return rows
