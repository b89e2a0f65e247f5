"""A version: a numbered state of a dataset, with its files."""

from __future__ import annotations

from enum import StrEnum

from ploti.model.ids import DatasetId
from ploti.model.schema import SchemaChange
from ploti.model.wire import Instant, Value


class ResyncReason(StrEnum):
    """Why a version is loaded from its snapshot, in the order of precedence (R-051)."""

    RECORD_IDS_CHANGED = "record_ids_changed"
    FIRST_VERSION = "first_version"
    PREVIOUS_UNAVAILABLE = "previous_unavailable"
    KEY_COLUMNS_CHANGED = "key_columns_changed"
    SCHEMA_CHANGED = "schema_changed"


class Counts(Value, kw_only=True):
    """Records added, changed and removed against the previous version (R-019)."""

    added: int
    changed: int
    removed: int

    @property
    def total(self) -> int:
        """The rows of the changes file."""
        return self.added + self.changed + self.removed


class File(Value, kw_only=True):
    """One file of a version: where it is, its size in bytes, and the sha256 of its bytes."""

    url: str
    format: str
    rows: int
    bytes: int
    sha256: str


class Files(Value, kw_only=True):
    """A version's files; a list that is null is not kept or does not apply (R-098)."""

    snapshot: list[File] | None
    changes: list[File] | None
    id_map: list[File] | None
    schema: File
    expires_at: Instant


class VersionSummary(Value, kw_only=True):
    """A released version as the list of versions shows it (R-094)."""

    dataset_id: DatasetId
    version: int
    previous_version: int | None
    schema_version: str
    published_at: Instant
    source_fetched_at: Instant
    row_count: int
    counts: Counts | None
    resync_required: bool


class Version(VersionSummary, kw_only=True):
    """A released version with signed links to its files."""

    reason: ResyncReason | None
    schema_change: SchemaChange | None
    content_digest: str
    files: Files


class BucketDigest(Value, kw_only=True):
    """The rows of one digest bucket and the sum of their hashes as 32 hex digits."""

    rows: int
    digest: str


class VersionDigest(Value, kw_only=True):
    """A version's content digest with its 256 buckets, in order."""

    content_digest: str
    row_count: int
    buckets: list[BucketDigest]


class ChangeRow(Value, kw_only=True):
    """One changed record out of the JSON listing of a version's changes."""

    op: str
    change: str
    record_id: str
    record: dict[str, object] | None
