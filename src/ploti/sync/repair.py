"""Repairs tables that differ from their versions: the rows of the differing buckets alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ploti.model.columns import CHANGE, OP, RECORD_ID
from ploti.model.digest import bucket_of
from ploti.sync.destination import Destination, TableError, Transaction
from ploti.sync.downloads import Downloads
from ploti.sync.feed import Feed
from ploti.sync.held import Held
from ploti.sync.ledger import Ledger, not_yet
from ploti.sync.progress import Moment, Observer, ignore
from ploti.sync.ready import Ready, Supply, check_rows, find_difference
from ploti.sync.verify import Verified, verify
from ploti.sync.work import FAULTS, OF_THE_RUN, Options, Work

MANY = 64
"""Buckets from which on the table is loaded whole: a quarter of its rows and their ids."""

_BATCH = 50_000


def repair(feed: Feed, destination: Destination, *, observe: Observer = ignore) -> Verified:
    """Verify every table, and make those that differ equal to the versions that they hold.

    Where a version's snapshot is not kept any more, the current version is loaded in its place.

    Raises:
        DestinationBusy: A client is at the destination, or it stays in use.
        PlotiError: The server cannot be asked, or the destination fails as a whole.
    """
    downloads = Downloads(feed, destination.downloads)
    with destination.lock(), downloads.opened():
        found = verify(feed, destination, observe=observe)
        if not found.differing:
            return found
        mender = _Mender(feed, destination, downloads, observe)
        for dataset_id, buckets in found.differing.items():
            mender.mend(mender.ledger.held(dataset_id), buckets)
        again = verify(feed, destination, only=found.differing.keys(), observe=observe)
        return found.after_repair(again)


class _Mender:
    """The repair of one table after another."""

    def __init__(
        self, feed: Feed, destination: Destination, downloads: Downloads, observe: Observer
    ) -> None:
        self.ledger = Ledger(destination, observe)
        self._feed = feed
        self._downloads = downloads
        self._folder = destination.downloads
        self._supply = Supply(feed, downloads, verify=True)
        self._work = Work(
            feed=feed,
            ledger=self.ledger,
            downloads=downloads,
            options=Options(verify=True),
            weights=destination.weights,
        )

    def mend(self, held: Held, buckets: Collection[int]) -> None:
        """Bring the table back to the version that it holds; a fault of it ends in its mark."""
        try:
            ready = self._fetch(held)
            if not (0 < len(buckets) < MANY and self._replace(held, ready, buckets)):
                self._load(held, ready)
        except OF_THE_RUN:
            raise
        except FAULTS:
            self._work.recover(held)
        finally:
            self._downloads.clear()

    def _fetch(self, held: Held) -> Ready:
        version = self._feed.version(held.dataset_id, held.version or 0)
        return self._supply.fetch(version, "snapshot")

    def _replace(self, held: Held, ready: Ready, buckets: Collection[int]) -> bool:
        """Replace the rows of the buckets; whether that makes the table equal."""
        try:
            with self._change(held, ready) as transaction:
                here = transaction.record_ids(held.table or "", buckets)
                file = self._folder / "repair.parquet"
                write_repair(ready.file, file, buckets=buckets, here=here)
                transaction.apply(held.table or "", ready.schema, file)
        except TableError as error:
            self.ledger.tell(Moment.STUCK, held, f"loaded whole, since {error}")
            return False
        return True

    def _load(self, held: Held, ready: Ready) -> None:
        with self._change(held, ready) as transaction:
            transaction.load(held.table or "", ready.schema, ready.file)

    @contextmanager
    def _change(self, held: Held, ready: Ready) -> Iterator[Transaction]:
        """A transaction that is committed only where the table is equal to its version."""
        with (
            self.ledger.session() as session,
            self.ledger.change(session, held, not_yet) as transaction,
        ):
            yield transaction
            table = held.table or ""
            check_rows(transaction, table, ready)
            difference = find_difference(transaction, table, ready)
            if difference is not None:
                raise TableError(f"table {table} would still differ: {difference}")


def write_repair(
    snapshot: Path, to: Path, *, buckets: Collection[int], here: Collection[str]
) -> None:
    """A changes file that turns the buckets of a table, with the ids `here`, into the snapshot's.

    Raises:
        TableError: The snapshot cannot be read.
    """
    try:
        with pq.ParquetFile(snapshot, pre_buffer=False) as source:
            schema = _with_operations(source.schema_arrow)
            with pq.ParquetWriter(to, schema, compression="zstd") as writer:
                gone = set(here)
                for batch in source.iter_batches(_BATCH):
                    kept = _in_buckets(batch, buckets)
                    gone.difference_update(kept.column(RECORD_ID).to_pylist())
                    writer.write_batch(_marked(kept, schema))
                writer.write_batch(_deletes(sorted(gone), schema))
    except pa.ArrowException as error:
        raise TableError(f"the snapshot cannot be read: {error}") from error


def _with_operations(schema: pa.Schema) -> pa.Schema:
    envelope = [pa.field(OP, pa.string()), pa.field(CHANGE, pa.string())]
    own = [field.with_nullable(True) for field in schema]
    return pa.schema([*envelope, *own]).with_metadata(schema.metadata or {})


def _in_buckets(batch: pa.RecordBatch, buckets: Collection[int]) -> pa.RecordBatch:
    ids = batch.column(RECORD_ID).to_pylist()
    return batch.filter(pa.array([bucket_of(str(each)) in buckets for each in ids], pa.bool_()))


def _marked(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    marks = [pa.repeat("upsert", rows.num_rows), pa.repeat("changed", rows.num_rows)]
    return pa.record_batch([*marks, *rows.columns], schema=schema)


def _deletes(ids: list[str], schema: pa.Schema) -> pa.RecordBatch:
    given: dict[str, pa.Array[Any]] = {
        OP: pa.repeat("delete", len(ids)),
        CHANGE: pa.repeat("removed", len(ids)),
        RECORD_ID: pa.array(ids, pa.string()),
    }
    rest = {f.name: pa.nulls(len(ids), f.type) for f in schema if f.name not in given}
    columns = given | rest
    return pa.record_batch([columns[name] for name in schema.names], schema=schema)
