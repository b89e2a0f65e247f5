"""The net change between two versions of a dataset, through their changes files or snapshots."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import duckdb

from ploti.errors import Expired, SyncError
from ploti.model.columns import CHANGE, OP, RECORD_ID
from ploti.model.ids import DatasetId
from ploti.model.schema import Column
from ploti.model.sql import identifier
from ploti.model.version import ChangeRow, Counts, Version, VersionSummary
from ploti.sync.feed import Feed
from ploti.sync.parquet import parquet, sql_type

_BATCH = 10_000

IdMap = Callable[[], Mapping[str, str]]
"""Gives the ids of the earlier version that are others in the later one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What is between two versions; `rows` can be gone through once, while the block is open."""

    dataset_id: DatasetId
    from_version: int
    to_version: int
    by: Literal["changes", "snapshots"]
    counts: Counts
    rows: Iterator[ChangeRow]


@contextmanager
def compared(
    feed: Feed, dataset_id: DatasetId, start: int, end: int, *, id_map: IdMap
) -> Iterator[Difference]:
    """The records of version `end` that are not in `start`, or others there, and those gone since.

    Records are told by their ids as the later version has them, and compared by its columns. The
    cheaper of two ways is taken: all changes files between, or both snapshots. A record that was
    changed and changed back is no difference.

    Raises:
        NotFound: There is no such version.
        Expired: Neither way is kept any more.
        SyncError: A file cannot be read.
    """
    with TemporaryDirectory(prefix="ploti-diff-") as folder, duckdb.connect() as connection:
        work = _Comparison(feed, dataset_id, connection, Path(folder))
        try:
            by = work.prepare(start, end, id_map)
            yield Difference(
                dataset_id=dataset_id,
                from_version=start,
                to_version=end,
                by=by,
                counts=work.counts(),
                rows=work.rows(),
            )
        except duckdb.Error as error:
            raise SyncError(f"The files cannot be compared: {error}") from error


class _Comparison:
    """Fills the table `net`: the change, the record id, and the later version's columns."""

    def __init__(
        self,
        feed: Feed,
        dataset_id: DatasetId,
        connection: duckdb.DuckDBPyConnection,
        folder: Path,
    ) -> None:
        self._feed = feed
        self._dataset_id = dataset_id
        self._connection = connection
        self._folder = folder
        self._columns: list[Column] = []

    def prepare(self, start: int, end: int, id_map: IdMap) -> Literal["changes", "snapshots"]:
        first, last = (self._feed.version(self._dataset_id, each) for each in (start, end))
        self._columns = self._feed.schema(self._dataset_id, end).columns
        chain = self._chain(start, end)
        if chain is not None and _is_cheaper(chain, first, last):
            self._through_changes(chain, first)
            return "changes"
        if first.files.snapshot is None or last.files.snapshot is None:
            gone = first if first.files.snapshot is None else last
            raise Expired(f"The snapshot of version {gone.version} is past retention")
        self._through_snapshots(first, last, id_map)
        return "snapshots"

    def counts(self) -> Counts:
        found = self._connection.execute("SELECT change, count(*) FROM net GROUP BY 1").fetchall()
        return Counts(**{"added": 0, "changed": 0, "removed": 0} | dict(found))

    def rows(self) -> Iterator[ChangeRow]:
        for batch in self._connection.sql("FROM net ORDER BY id").to_arrow_reader(_BATCH):
            for row in batch.to_pylist():
                yield self._row(row)

    def _row(self, row: dict[str, object]) -> ChangeRow:
        change = str(row["change"])
        gone = change == "removed"
        record = {
            each.name: _plain(each.type, row[f"c{number}"])
            for number, each in enumerate(self._columns)
        }
        return ChangeRow(
            op="delete" if gone else "upsert",
            change=change,
            record_id=str(row["id"]),
            record=None if gone else record,
        )

    def _chain(self, start: int, end: int) -> list[VersionSummary] | None:
        """The versions between, where each follows the one before by changes."""
        ahead = self._feed.versions(self._dataset_id, after=start)
        chain = [each for each in ahead if each.version <= end]
        held = start
        for each in chain:
            if each.resync_required or each.previous_version != held:
                return None
            held = each.version
        return chain if held == end else None

    def _through_changes(self, chain: Sequence[VersionSummary], first: Version) -> None:
        self._connection.execute(f"CREATE TABLE steps AS {self._nothing()} LIMIT 0")
        for number, each in enumerate(chain):
            file = self._fetch(each.version, "changes")
            self._connection.execute(f"INSERT INTO steps {self._changes(file, number)}")
        self._connection.execute(_NET)
        unsure = self._connection.execute("SELECT count(*) FROM net WHERE unsure").fetchone()
        if unsure != (0,):  # changed more than once: perhaps back to what it was
            snapshot = self._records(self._fetch(first.version, "snapshot"))
            same = " AND ".join(["true", *(f"a.{c} IS NOT DISTINCT FROM net.{c}" for c in self._c)])
            self._connection.execute(
                f"DELETE FROM net USING ({snapshot}) AS a WHERE unsure AND a.id = net.id AND {same}"  # noqa: S608
            )

    def _through_snapshots(self, first: Version, last: Version, id_map: IdMap) -> None:
        for name, version in (("a", first), ("b", last)):
            file = self._fetch(version.version, "snapshot")
            self._connection.execute(f"CREATE TABLE {name} AS {self._records(file)}")
        moved = id_map() if first.version < last.version else {}
        self._connection.execute("CREATE TABLE moved (old VARCHAR, new VARCHAR)")
        if moved:
            self._connection.executemany("INSERT INTO moved VALUES (?, ?)", [*moved.items()])
        self._connection.execute("UPDATE a SET id = new FROM moved WHERE old = a.id")
        other = " OR ".join(["false", *(f"a.{c} IS DISTINCT FROM b.{c}" for c in self._c)])
        self._connection.execute(
            "CREATE TABLE net AS SELECT CASE WHEN a.id IS NULL THEN 'added' WHEN b.id IS NULL"  # noqa: S608
            " THEN 'removed' ELSE 'changed' END AS change, coalesce(b.id, a.id) AS id,"
            f" {', '.join(f'b.{c}' for c in self._c) or '1'} FROM a FULL JOIN b ON a.id = b.id"
            f" WHERE a.id IS NULL OR b.id IS NULL OR {other}"
        )

    def _fetch(self, number: int, role: Literal["snapshot", "changes"]) -> Path:
        to = self._folder / f"{number}.{role}.parquet"
        return self._feed.fetch(self._dataset_id, number, role, to)

    def _records(self, file: Path) -> str:
        return f"SELECT {identifier(RECORD_ID)} AS id, {self._values(file)} FROM {parquet(file)}"  # noqa: S608

    def _changes(self, file: Path, number: int) -> str:
        return (
            f"SELECT {number} AS step, {identifier(CHANGE)} AS change, {identifier(OP)} AS op,"  # noqa: S608
            f" {identifier(RECORD_ID)} AS id, {self._values(file)} FROM {parquet(file)}"
        )

    def _nothing(self) -> str:
        nulls = (f"NULL::{_kind(each)} AS c{n}" for n, each in enumerate(self._columns))
        given = "0 AS step, '' AS change, '' AS op, '' AS id"
        return f"SELECT {', '.join([given, *nulls])}"

    def _values(self, file: Path) -> str:
        """The later version's columns out of a file; one that it lacks is null."""
        found = self._connection.execute(f"DESCRIBE FROM {parquet(file)}").fetchall()
        have = {str(name): str(kind) for name, kind, *_ in found}
        values = (_value(each, have.get(each.name)) for each in self._columns)
        return ", ".join([f"{value} AS c{n}" for n, value in enumerate(values)] or ["1 AS none"])

    @property
    def _c(self) -> list[str]:
        return [f"c{number}" for number in range(len(self._columns))]


_NET = """
    CREATE TABLE net AS
    WITH each AS (
        SELECT id, arg_min(change, step) AS first, count(*) > 1 AS often, max(step) AS last
        FROM steps GROUP BY id
    )
    SELECT CASE WHEN steps.op = 'delete' THEN 'removed' WHEN first = 'added' THEN 'added'
            ELSE 'changed' END AS change,
        steps.* EXCLUDE (step, change, op),
        often AND first <> 'added' AND steps.op <> 'delete' AS unsure
    FROM steps JOIN each ON steps.id = each.id AND steps.step = each.last
    WHERE NOT (first = 'added' AND steps.op = 'delete')
"""
"""The last word on each record, against what it was before the first."""


def _is_cheaper(chain: Sequence[VersionSummary], first: Version, last: Version) -> bool:
    """Whether the changes have fewer rows than the two snapshots, or these cannot be had."""
    if first.files.snapshot is None or last.files.snapshot is None:
        return True
    rows = sum(each.counts.total for each in chain if each.counts)
    return rows <= first.row_count + last.row_count


def _kind(column: Column) -> str:
    return "BLOB" if column.type == "geometry" else sql_type(column.type)


def _value(column: Column, kind: str | None) -> str:
    if kind is None:
        return f"NULL::{_kind(column)}"
    name = identifier(column.name)
    if column.type == "geometry":
        return f"st_aswkb({name})" if kind.startswith("GEOMETRY") else f"{name}::BLOB"
    return f"TRY_CAST({name} AS {_kind(column)})"


def _plain(type_: str, value: object) -> object:
    """A value as the JSON listing of changes has it; a decimal stays one."""
    match value:
        case None:
            return None
        case float() if not math.isfinite(value):
            return "Infinity" if value > 0 else "-Infinity"
        case str() if type_ == "json":
            return json.loads(value)
        case bytes():
            return _geometry(value)
        case datetime():
            return _moment(value)
        case date():
            return value.isoformat()
        case _:
            return value


def _moment(value: datetime) -> str:
    digits = "microseconds" if value.microsecond % 1000 else "milliseconds"
    local = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return local.isoformat(timespec=digits) + ("Z" if value.tzinfo else "")


def _geometry(wkb: bytes) -> object:
    with _engine().cursor() as cursor:
        (found,) = cursor.execute("SELECT st_asgeojson(st_geomfromwkb(?))", [wkb]).fetchall()
    return json.loads(found[0]) if found[0] else None


@cache
def _engine() -> duckdb.DuckDBPyConnection:
    """A database of our own: the one that duckdb keeps for a process belongs to its owner."""
    return duckdb.connect()
