"""A feed made by hand: versions out of plain rows, their files and digests, and a log of events.

It is what sync's `Feed` asks for, in memory; `feed_server` serves it over HTTP. Nothing of the
server's code is in it: files are written and digests summed the plain way.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, timedelta
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ploti.errors import ApiError, Expired, InvalidInput, NotFound, NotSubscribed
from ploti.model.columns import BBOX, CHANGE, OP, RECORD_ID
from ploti.model.dataset import CurrentVersion, Dataset
from ploti.model.digest import Buckets, Cell, digest_rows
from ploti.model.event import (
    Added,
    Event,
    FeedData,
    Removed,
    RemovedReason,
    ResyncRequired,
    SchemaChanged,
    Updated,
)
from ploti.model.ids import DatasetId, EventId, SubscriptionId, event_id, event_number
from ploti.model.manifest import Manifest, ManifestEntry
from ploti.model.page import EventPage
from ploti.model.schema import (
    FIRST,
    Column,
    Geometry,
    Level,
    Schema,
    SchemaChange,
    SchemaDocument,
    SchemaVersion,
    compare,
)
from ploti.model.version import (
    Counts,
    File,
    Files,
    ResyncReason,
    Version,
    VersionDigest,
    VersionSummary,
)
from ploti.model.wire import Instant
from ploti.sync.feed import FileError, Role

Rows = Mapping[str, Mapping[str, Cell]]
"""Record id to cells; a cell that is left out is null."""

NOON = Instant(2026, 10, 18, 12, tzinfo=UTC)
SUBSCRIPTION = SubscriptionId("sub_test")

_ARROW = {
    "string": pa.string(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "datetime": pa.timestamp("us"),
    "json": pa.string(),
    "geometry": pa.binary(),
}


def make_schema(key: Iterable[str] = (), crs: str = "OGC:CRS84", **types: str) -> Schema:
    """A schema out of names and types."""
    geometries = [name for name, kind in types.items() if kind == "geometry"]
    return Schema(
        columns=[Column(name=name, type=kind) for name, kind in types.items()],
        key_columns=list(key),
        geometry=Geometry(column=geometries[0], crs=crs, types=["Point"]) if geometries else None,
    )


def arrow_type(kind: str) -> pa.DataType:
    """The type of a column in a file."""
    if kind.startswith("decimal("):
        digits, scale = kind.removeprefix("decimal(").removesuffix(")").split(",")
        return pa.decimal128(int(digits), int(scale))
    return _ARROW[kind]


def write_parquet(schema: Schema, rows: Rows, envelope: Mapping[str, list[str]]) -> bytes:
    """A file with the envelope columns first, then the record's."""
    arrays = {name: pa.array(values, pa.string()) for name, values in envelope.items()}
    for column in schema.columns:
        cells = [row.get(column.name) for row in rows.values()]
        arrays[column.name] = pa.array(cells, arrow_type(column.type))
    table = pa.table(arrays)
    if schema.geometry is not None:
        box = pa.struct([(side, pa.float32()) for side in ("xmin", "ymin", "xmax", "ymax")])
        table = table.append_column(BBOX, pa.nulls(len(table), box))
        table = table.replace_schema_metadata({"geo": json.dumps(_geo(schema.geometry))})
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _geo(geometry: Geometry) -> dict[str, object]:
    column: dict[str, object] = {"encoding": "WKB", "geometry_types": geometry.types}
    if geometry.crs != "OGC:CRS84":
        authority, code = geometry.crs.split(":")
        column["crs"] = {"type": "GeographicCRS", "id": {"authority": authority, "code": code}}
    return {
        "version": "1.1.0",
        "primary_column": geometry.column,
        "columns": {geometry.column: column},
    }


@dataclass(frozen=True, kw_only=True)
class FakeVersion:
    """A released version with its files' bytes."""

    number: int
    previous: int | None
    schema: Schema
    schema_version: str
    change: SchemaChange | None
    rows: Rows
    counts: Counts | None
    reason: ResyncReason | None
    snapshot: bytes | None
    changes: bytes | None

    @cached_property
    def buckets(self) -> Buckets:
        """The digest, by the plain reference."""
        full = {name.name: None for name in self.schema.columns}
        return digest_rows(self.schema, ((key, full | row) for key, row in self.rows.items()))


@dataclass
class FakeDataset:
    """A dataset with its versions by number."""

    versions: dict[int, FakeVersion] = field(default_factory=dict)
    current: int | None = None
    next_number: int = 1
    member: bool = False


class FakeFeed:
    """One subscription of a server that exists in memory alone.

    `refuse` is asked before every call of a dataset and may raise; `damage` may change a file's
    bytes on their way.
    """

    def __init__(self) -> None:
        self.datasets: dict[DatasetId, FakeDataset] = {}
        self.log: list[Event] = []
        self.first = 1
        self.last = 0
        self.page_size = 500
        self.calls: list[tuple[str, ...]] = []
        self.refuse: Callable[[str, DatasetId, int | None], None] = lambda *_: None
        self.damage: Callable[[DatasetId, int, Role, bytes], bytes] = lambda *args: args[3]

    # What a history is made of.

    def join(self, dataset_id: DatasetId) -> None:
        """The dataset joins the subscription."""
        dataset = self.datasets.setdefault(dataset_id, FakeDataset())
        dataset.member = True
        current = dataset.versions[dataset.current] if dataset.current else None
        self.append(
            Added(
                dataset_id=dataset_id,
                version=dataset.current,
                schema_version=current.schema_version if current else None,
            )
        )

    def leave(self, dataset_id: DatasetId) -> None:
        """The dataset leaves the subscription."""
        self.datasets[dataset_id].member = False
        self.append(Removed(dataset_id=dataset_id, reason=RemovedReason.SUBSCRIPTION_CHANGED))

    def release(
        self,
        dataset_id: DatasetId,
        schema: Schema,
        rows: Rows,
        *,
        reason: ResyncReason | None = None,
    ) -> FakeVersion:
        """Release a version with its events; `reason` forces a load."""
        dataset = self.datasets.setdefault(dataset_id, FakeDataset())
        version = make_version(dataset, schema, rows, reason=reason)
        dataset.versions[version.number] = version
        dataset.current, dataset.next_number = version.number, version.number + 1
        if dataset.member:
            for data in _events_of(dataset_id, version):
                self.append(data)
        return version

    def skip_number(self, dataset_id: DatasetId) -> None:
        """A version was held and discarded: its number is a gap (R-086)."""
        self.datasets[dataset_id].next_number += 1

    def append(self, data: FeedData) -> None:
        """Write an event."""
        self.last += 1
        self.log.append(self.event(self.last, data))

    def event(self, number: int, data: FeedData) -> Event:
        """An event of this subscription."""
        at = Instant.of(NOON + timedelta(seconds=number))
        return Event(
            id=event_id(number),
            type=data.type,
            timestamp=at,
            subscription_id=SUBSCRIPTION,
            data=data,
        )

    def prune(self, keep: int = 0) -> None:
        """Forget all but the newest `keep` events."""
        self.log = self.log[len(self.log) - keep :] if keep else []
        self.first = event_number(self.log[0].id) if self.log else self.last + 1

    def forget_file(self, dataset_id: DatasetId, number: int, role: Role) -> None:
        """A file is past retention."""
        versions = self.datasets[dataset_id].versions
        gone = {"snapshot": None} if role == "snapshot" else {"changes": None}
        versions[number] = replace(versions[number], **gone)

    # What a client asks.

    def manifest(self) -> Manifest:
        """As the contract says."""
        self.calls.append(("manifest",))
        entries = [
            self._entry(each, dataset)
            for each, dataset in sorted(self.datasets.items())
            if dataset.member
        ]
        return Manifest(
            subscription_id=SUBSCRIPTION,
            event_cursor=event_id(self.last),
            generated_at=NOON,
            datasets=entries,
        )

    def _entry(self, dataset_id: DatasetId, dataset: FakeDataset) -> ManifestEntry:
        version = dataset.versions[dataset.current] if dataset.current else None
        return ManifestEntry(
            dataset_id=dataset_id,
            version=version.number if version else None,
            schema_version=version.schema_version if version else None,
            row_count=len(version.rows) if version else None,
            content_digest=version.buckets.content_digest if version else None,
        )

    def events(self, cursor: EventId, *, limit: int = 500, wait: int = 0) -> EventPage:
        """As the contract says; it never waits."""
        self.calls.append(("events", cursor))
        number = event_number(cursor)
        if number > self.last:
            raise InvalidInput(f"{cursor} is past the newest event")
        if number < self.first - 1:
            raise Expired(f"{cursor} is past retention: read the manifest")
        found = [event for event in self.log if event.id > cursor][: min(limit, self.page_size)]
        return EventPage(events=[*found], next_cursor=found[-1].id if found else cursor)

    def dataset(self, dataset_id: DatasetId) -> Dataset:
        """As the contract says, as far as sync reads it."""
        self._ask("dataset", dataset_id, None)
        dataset = self._find(dataset_id)
        current = dataset.versions[dataset.current] if dataset.current else None
        return Dataset(
            id=dataset_id,
            title=dataset_id,
            place="us",
            topic="test",
            license=None,
            attribution=None,
            key_columns=[],
            current=current
            and CurrentVersion(
                version=current.number,
                schema_version=current.schema_version,
                published_at=NOON,
                row_count=len(current.rows),
            ),
            last_checked_at=None,
            next_check_by=None,
            hold=None,
        )

    def version(self, dataset_id: DatasetId, number: int) -> Version:
        """As the contract says; links are the file's name."""
        self._ask("version", dataset_id, number)
        version = self._released(dataset_id, number)
        snapshot = _files(dataset_id, number, "snapshot", version.snapshot, len(version.rows))
        total = version.counts.total if version.counts else 0
        changes = _files(dataset_id, number, "changes", version.changes, total)
        if snapshot is None and changes is None:
            raise Expired(f"no file of version {number} is kept: load the current version")
        return Version(
            dataset_id=dataset_id,
            version=number,
            previous_version=version.previous,
            schema_version=version.schema_version,
            published_at=NOON,
            source_fetched_at=NOON,
            row_count=len(version.rows),
            counts=version.counts,
            resync_required=version.reason is not None,
            reason=version.reason,
            schema_change=version.change,
            content_digest=version.buckets.content_digest,
            files=Files(
                snapshot=snapshot,
                changes=changes,
                id_map=None,
                schema=File(url="schema", format="json", rows=0, bytes=0, sha256=""),
                expires_at=NOON,
            ),
        )

    def versions(self, dataset_id: DatasetId, *, after: int) -> list[VersionSummary]:
        """As the contract says, all pages of it."""
        self._ask("versions", dataset_id, after)
        dataset = self._find(dataset_id)
        if not dataset.member:
            raise NotSubscribed(f"no subscription delivers {dataset_id}")
        newer = [each for number, each in sorted(dataset.versions.items()) if number > after]
        return [_summary(dataset_id, each) for each in newer]

    def schema(self, dataset_id: DatasetId, number: int) -> SchemaDocument:
        """As the contract says."""
        self._ask("schema", dataset_id, number)
        version = self._released(dataset_id, number)
        return SchemaDocument(
            columns=version.schema.columns,
            key_columns=version.schema.key_columns,
            geometry=version.schema.geometry,
            schema_version=version.schema_version,
            change=version.change,
        )

    def digest(self, dataset_id: DatasetId, number: int) -> VersionDigest:
        """As the contract says."""
        self._ask("digest", dataset_id, number)
        buckets = self._released(dataset_id, number).buckets
        return VersionDigest(
            content_digest=buckets.content_digest,
            row_count=buckets.row_count,
            buckets=buckets.to_wire(),
        )

    def fetch(self, dataset_id: DatasetId, number: int, role: Role, to: Path) -> Path:
        """The file, checked."""
        self._ask(role, dataset_id, number)
        try:
            right = self.file(dataset_id, number, role)
        except LookupError as error:
            raise FileError(f"version {number} has no {role} file") from error
        sent = self.damage(dataset_id, number, role, right)
        if hashlib.sha256(sent).digest() != hashlib.sha256(right).digest():
            raise FileError(f"{role} of version {number} of {dataset_id} is damaged")
        to.write_bytes(sent)
        return to

    def file(self, dataset_id: DatasetId, number: int, role: Role) -> bytes:
        """A file's own bytes."""
        version = self._released(dataset_id, number)
        found = version.snapshot if role == "snapshot" else version.changes
        if found is None:
            raise LookupError
        return found

    def downloads(self) -> list[tuple[str, ...]]:
        """The files that were fetched."""
        return [call for call in self.calls if call[0] in ("snapshot", "changes")]

    def _ask(self, what: str, dataset_id: DatasetId, number: int | None) -> None:
        self.calls.append((what, dataset_id, str(number)))
        self.refuse(what, dataset_id, number)

    def _find(self, dataset_id: DatasetId) -> FakeDataset:
        if dataset_id not in self.datasets:
            raise NotFound(f"there is no dataset {dataset_id}")
        return self.datasets[dataset_id]

    def _released(self, dataset_id: DatasetId, number: int) -> FakeVersion:
        dataset = self._find(dataset_id)
        if not dataset.member:
            raise NotSubscribed(f"no subscription delivers {dataset_id}")
        if number not in dataset.versions:
            raise NotFound(f"there is no version {number}")
        return dataset.versions[number]


def _summary(dataset_id: DatasetId, version: FakeVersion) -> VersionSummary:
    return VersionSummary(
        dataset_id=dataset_id,
        version=version.number,
        previous_version=version.previous,
        schema_version=version.schema_version,
        published_at=NOON,
        source_fetched_at=NOON,
        row_count=len(version.rows),
        counts=version.counts,
        resync_required=version.reason is not None,
    )


def refuse_all(*, of: DatasetId, by: ApiError) -> Callable[[str, DatasetId, int | None], None]:
    """Refuse every call of one dataset."""

    def refuse(_what: str, dataset_id: DatasetId, _number: int | None) -> None:
        if dataset_id == of:
            raise by

    return refuse


def make_version(
    dataset: FakeDataset, schema: Schema, rows: Rows, *, reason: ResyncReason | None = None
) -> FakeVersion:
    """The version that follows the dataset's current one, with its files."""
    base = dataset.versions[dataset.current] if dataset.current else None
    change = None
    if base is not None:
        change = compare(base.schema, schema, base_version=SchemaVersion.parse(base.schema_version))
    if base is None:
        reason = ResyncReason.FIRST_VERSION
    elif change is not None and change.level is Level.MAJOR:
        reason = reason or ResyncReason.SCHEMA_CHANGED
    counts, changes = _diff(schema, base.rows if base else {}, rows)
    return FakeVersion(
        number=dataset.next_number,
        previous=base.number if base else None,
        schema=schema,
        schema_version=change.to if change else base.schema_version if base else str(FIRST),
        change=change,
        rows=rows,
        counts=counts,
        reason=reason,
        snapshot=write_parquet(schema, dict(sorted(rows.items())), {RECORD_ID: sorted(rows)}),
        changes=None if reason else changes,
    )


def _diff(schema: Schema, old: Rows, new: Rows) -> tuple[Counts, bytes]:
    def full(row: Mapping[str, Cell]) -> list[Cell]:
        return [row.get(column.name) for column in schema.columns]

    added = sorted(new.keys() - old.keys())
    removed = sorted(old.keys() - new.keys())
    changed = sorted(key for key in new.keys() & old.keys() if full(new[key]) != full(old[key]))
    ids = [*removed, *added, *changed]
    kinds = ["removed"] * len(removed) + ["added"] * len(added) + ["changed"] * len(changed)
    envelope = {
        OP: ["delete" if kind == "removed" else "upsert" for kind in kinds],
        CHANGE: kinds,
        RECORD_ID: ids,
    }
    counts = Counts(added=len(added), changed=len(changed), removed=len(removed))
    return counts, write_parquet(schema, {each: new.get(each, {}) for each in ids}, envelope)


def _events_of(dataset_id: DatasetId, version: FakeVersion) -> list[FeedData]:
    data: list[FeedData] = []
    if version.change is not None:
        data.append(
            SchemaChanged(
                dataset_id=dataset_id,
                version=version.number,
                schema_version=version.schema_version,
                schema_change=version.change,
            )
        )
    if version.reason is not None:
        data.append(
            ResyncRequired(
                dataset_id=dataset_id,
                version=version.number,
                schema_version=version.schema_version,
                reason=version.reason,
            )
        )
    elif version.previous is not None and version.counts is not None:
        data.append(
            Updated(
                dataset_id=dataset_id,
                version=version.number,
                previous_version=version.previous,
                schema_version=version.schema_version,
                counts=version.counts,
            )
        )
    return data


def _files(
    dataset_id: DatasetId, number: int, role: str, content: bytes | None, rows: int
) -> list[File] | None:
    if content is None:
        return None
    return [
        File(
            url=f"{dataset_id}/{number}/{role}",
            format="geoparquet",
            rows=rows,
            bytes=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
        )
    ]
