"""What a build is given and what it gives back, as they cross the pipe to the child."""

from __future__ import annotations

from enum import StrEnum

from ploti.model.admin import Finding
from ploti.model.ids import DatasetId
from ploti.model.schema import Schema, SchemaChange
from ploti.model.version import BucketDigest, Counts
from ploti.model.wire import Value
from ploti.server.build.limits import Limit
from ploti.server.build.measures import Measures
from ploti.server.sources.declaration import Declaration


class FileRole(StrEnum):
    """What a file of a version is.

    `listing` is the changes as JSON lines for the API's pages. Two are never shown: `gone` are the
    records removed lately, whose keys give them their ids again, and `links` what may go on under
    other ids, for staff.
    """

    SNAPSHOT = "snapshot"
    CHANGES = "changes"
    SCHEMA = "schema"
    LISTING = "listing"
    ID_MAP = "id_map"
    GONE = "gone"
    LINKS = "links"


class Base(Value, kw_only=True):
    """The version that the build starts from; `snapshot` is a path that the child may read.

    `gone` is that of the records removed lately, None where there are none.
    """

    version: int
    schema: Schema
    schema_version: str
    row_count: int
    snapshot: str
    buckets: list[BucketDigest]
    gone: str | None = None

    @property
    def files(self) -> list[str]:
        """What there is to read."""
        return [self.snapshot, *([self.gone] if self.gone else [])]


class Replacement(Value, kw_only=True):
    """How ids are replaced: dealt anew, in the order of a column, or as the file `links` says.

    The links are what the matching of `version` proposed.
    """

    version: int
    column: str | None = None
    links: str | None = None


class BuildOrder(Value, kw_only=True, tag="build"):
    """One build: `version` is the number that the candidate takes if it is released or held.

    With `always` it is a version to load, even where nothing differs; `restores` is the older
    version of which the source is the snapshot, and whose content the candidate takes (S-23).
    The state is matched to the records of `matched_to` where that is not the base (S-21).
    With `replaces` the candidate has the base's records, under other ids. `id_maps` are those of
    the versions after the one that is restored or matched to, oldest first: what was replaced since
    stays replaced (S-23). `lifted` is the limit that does not bind this build's matching (S-26).
    A record removed in the version `gone_since` or later has its id again when its key comes back.
    `source` is the path of the fetched bytes, `source_name` what they were called (`a.csv`), and
    `folder` an empty folder of the child's own, in which it leaves the candidate's files.
    """

    dataset_id: DatasetId
    declaration: Declaration
    version: int
    base: Base | None
    source: str
    source_name: str
    folder: str
    always: bool = False
    restores: Base | None = None
    matched_to: Base | None = None
    gone_since: int = 0
    replaces: Replacement | None = None
    id_maps: list[str] = []
    lifted: Limit | None = None

    @property
    def reads(self) -> list[str]:
        """What the child may read."""
        bases = [base for base in (self.base, self.matched_to) if base]
        links = self.replaces.links if self.replaces else None
        return [
            self.source,
            *(path for base in bases for path in base.files),
            *([links] if links else []),
            *self.id_maps,
        ]

    @property
    def start(self) -> Base | None:
        """The version whose records the state is matched to."""
        return self.matched_to or self.base


class BuiltFile(Value, kw_only=True):
    """One file of a candidate; `name` is relative to the order's folder."""

    role: FileRole
    format: str
    name: str
    rows: int
    bytes: int
    sha256: str


class ExportedFile(Value, kw_only=True):
    """A Parquet file of a version of which CSV is to be made."""

    role: FileRole
    path: str
    rows: int


class KeyFault(Value, kw_only=True):
    """Rows whose key is null, keys that repeat, and a few of them as examples."""

    null_rows: int
    repeated_keys: int
    examples: list[str]


class Proposed(Value, kw_only=True):
    """Records that may go on under other ids: how many, and pairs of rows as examples.

    `estimate` is the share of them that is likely to be false, None where nothing tells.
    """

    records: int
    estimate: float | None
    examples: list[str]


class Candidate(Value, kw_only=True, tag="candidate"):
    """A built state, not yet decided.

    `state_digest` tells two states of a source apart whatever ids their records got. With
    `unmatched`, which says why the matching ended early, there are no counts, digest or files;
    `limit` is the one that it broke. `before` and `after` measure the base and this, where there
    are both. A first version and one with a MAJOR change have no changes file (S-15).
    """

    schema: Schema
    schema_change: SchemaChange | None
    row_count: int
    counts: Counts | None
    state_digest: str
    content_digest: str | None
    buckets: list[BucketDigest]
    files: list[BuiltFile]
    findings: list[Finding]
    key_fault: KeyFault | None
    proposed: Proposed | None = None
    unmatched: str | None = None
    limit: Limit | None = None
    before: Measures | None = None
    after: Measures | None = None


class Unchanged(Value, kw_only=True, tag="unchanged"):
    """The state has the same records as the base."""

    state_digest: str


class Broken(Value, kw_only=True, tag="broken"):
    """The state could not be read: one line that says where and what to do."""

    detail: str


class ExportOrder(Value, kw_only=True, tag="export"):
    """CSV of files of a version: each by its role, with the path that the child may read."""

    dataset_id: DatasetId
    version: int
    schema: Schema
    files: list[ExportedFile]
    folder: str

    @property
    def reads(self) -> list[str]:
        """What the child may read."""
        return [file.path for file in self.files]


class Exported(Value, kw_only=True, tag="exported"):
    """The files that an export left in its folder."""

    files: list[BuiltFile]


class Removal(Value, kw_only=True):
    """A version that removed records: the one before it, which has them, and its own snapshot."""

    version: int
    before: Base
    after: str


class LookOrder(Value, kw_only=True, tag="look"):
    """Records removed lately, the latest removals last, of which some may go on in `current`.

    Only what was added after the version `since` is looked at. Paths are such that the child may
    read; it leaves what it finds in `folder`.
    """

    dataset_id: DatasetId
    declaration: Declaration
    current: Base
    since: int
    removals: list[Removal]
    folder: str

    @property
    def reads(self) -> list[str]:
        """What the child may read."""
        before = [path for each in self.removals for path in (each.before.snapshot, each.after)]
        return [*dict.fromkeys([self.current.snapshot, *before])]


class Looked(Value, kw_only=True, tag="looked"):
    """What a look back found: a file of links, and what staff are told of it; or nothing."""

    files: list[BuiltFile]
    proposed: Proposed | None


Order = BuildOrder | ExportOrder | LookOrder
BuildResult = Candidate | Unchanged | Broken
Result = BuildResult | Exported | Looked
