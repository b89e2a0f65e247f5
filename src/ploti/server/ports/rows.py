"""What the store keeps, as frozen values: one class a table."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import NewType

from ploti.model.admin import Finding, HoldState
from ploti.model.event import EventType, HoldReason
from ploti.model.ids import (
    DatasetId,
    DeliveryId,
    HoldId,
    KeyId,
    MemberId,
    PlanId,
    SubscriptionId,
    WebhookId,
    WorkspaceId,
)
from ploti.model.schema import Schema, SchemaChange
from ploti.model.subscription import Selection
from ploti.model.version import BucketDigest, Counts, ResyncReason
from ploti.model.webhook import DeliveryKind, DeliveryState, OffReason, WebhookState
from ploti.model.wire import Instant, Value
from ploti.server.build.candidate import FileRole
from ploti.server.deliver.health import Health
from ploti.server.release.known import Known
from ploti.server.sources.declaration import Declaration
from ploti.server.sources.validators import Validators

AttemptId = NewType("AttemptId", str)


class WorkspaceRow(Value, kw_only=True):
    """The account that owns keys, subscriptions and webhooks; no `coverage` is everything."""

    id: WorkspaceId
    name: str
    coverage: list[str] | None
    plan_id: PlanId
    public: bool
    created_at: Instant


class MemberRow(Value, kw_only=True):
    """A person or a service in a workspace; one that left stays for what it did."""

    id: MemberId
    workspace_id: WorkspaceId
    name: str
    created_at: Instant
    left_at: Instant | None = None


class KeyRow(Value, kw_only=True):
    """An API key: of the secret itself only its first letters and a digest are kept."""

    id: KeyId
    workspace_id: WorkspaceId
    member_id: MemberId
    permissions: list[str]
    prefix: str
    digest: str
    created_at: Instant
    name: str = ""
    expires_at: Instant | None = None
    revoked_at: Instant | None = None
    last_used_at: Instant | None = None


class AuditRow(Value, kw_only=True):
    """What staff did: which call, of what, with which parameters; `id` rises."""

    at: Instant
    member_id: MemberId
    key_id: KeyId
    action: str
    subject: str
    query: dict[str, str]
    id: int = 0


class ListedKey(Value, kw_only=True):
    """A key with the name of its member."""

    key: KeyRow
    member_name: str


class ListedAudit(Value, kw_only=True):
    """An entry with the name of the member who did it."""

    entry: AuditRow
    member_name: str


class AnswerRow(Value, kw_only=True):
    """What a request with an `Idempotency-Key` (`name`) was answered, sealed."""

    key_id: KeyId
    name: str
    request: str
    answer: str
    at: Instant


class DatasetRow(Value, kw_only=True):
    """A dataset; `next_number` is what its next version on hold or released takes.

    `due_since` is when checks became due at all: declared so, resumed, or brought back. `stale_for`
    is the `next_check_by` for which `stale` was sent last, and `failure` why the last `failures`
    checks in a row could not read the source. `released_again` is the version that staff had built
    again: the next one that is sent is to be loaded (S-19). Up to the version `looked_back` it was
    looked whether the records added go on from records removed before.
    """

    id: DatasetId
    declaration: Declaration
    deliverable: bool
    next_number: int
    current_version: int | None
    last_checked_at: Instant | None
    due_since: Instant | None = None
    stale_for: Instant | None = None
    failing_since: Instant | None = None
    failures: int = 0
    failure: str | None = None
    released_again: int | None = None
    looked_back: int = 0

    @property
    def next_check_by(self) -> Instant | None:
        """By when the source is due a check (S-08); None where none is due."""
        every, since = self.declaration.check_every, self.due_since
        if every is None or since is None or self.declaration.paused or not self.deliverable:
            return None
        if self.last_checked_at is None:
            return since
        return max(since, Instant.of(self.last_checked_at + timedelta(seconds=every)))


class JobKind(StrEnum):
    """What a job does."""

    CHECK = "check"
    STALE = "stale"
    PRUNE = "prune"
    SWEEP = "sweep"
    EXPORT = "export"
    ALERT = "alert"
    MEMBERSHIP = "membership"
    LOOK_BACK = "look_back"


class UpkeepRow(Value, kw_only=True):
    """The last run of the retention: up to where it removed; why it did not, if so."""

    run_at: Instant
    pruned_to: Instant
    stopped: str | None


class JobRow(Value, kw_only=True):
    """Work to be done at a time; one of a kind and subject.

    Who does it pushes `run_at` on for as long as its lease lasts, and its `token` tells it from
    one that took the job over.
    """

    kind: JobKind
    subject: str
    run_at: Instant
    token: str | None = None


class VersionState(StrEnum):
    """What became of a version that took a number."""

    HELD = "held"
    RELEASED = "released"
    DISCARDED = "discarded"
    REPLACED = "replaced"


class VersionRow(Value, kw_only=True):
    """A version that took a number; `previous_version` is its base.

    `published_at`, and `reason` (None too where it is sent as changes), are set by its release.
    With a faulty key there are no counts and no digest.
    """

    dataset_id: DatasetId
    version: int
    state: VersionState
    attempt_id: AttemptId
    previous_version: int | None
    schema_version: str
    schema_change: SchemaChange | None
    row_count: int
    counts: Counts | None
    reason: ResyncReason | None
    content_digest: str | None
    built_at: Instant
    published_at: Instant | None
    source_fetched_at: Instant


class FileRow(Value, kw_only=True):
    """One file of a version, in the blob of this name."""

    dataset_id: DatasetId
    version: int
    role: FileRole
    format: str
    blob: str
    rows: int
    bytes: int
    sha256: str


class StateRow(Known, kw_only=True):
    """A source's state that is current, on hold or discarded last; its blob lives that long.

    It was read whole at `whole_at` the last time, and `validators` are what was said of it then.
    """

    dataset_id: DatasetId
    attempt_id: AttemptId
    blob: str | None
    name: str
    fetched_at: Instant
    validators: Validators | None = None
    whole_at: Instant | None = None


class HoldRow(Value, kw_only=True):
    """A review of a version; one not `matched` has no files until its release makes them."""

    id: HoldId
    dataset_id: DatasetId
    version: int
    reason: HoldReason
    state: HoldState
    since: Instant
    findings: list[Finding]
    matched: bool
    decided_at: Instant | None = None
    decided_by: str | None = None
    note: str | None = None


class AttemptRow(Value, kw_only=True):
    """A build under way: what it leaves lies below its own names, `version` in them.

    `source_blob` is the state it reads; an attempt that starts again reads the same one.
    """

    id: AttemptId
    dataset_id: DatasetId
    version: int
    source_blob: str
    started_at: Instant


class SubscriptionRow(Value, kw_only=True):
    """A subscription of a workspace."""

    id: SubscriptionId
    workspace_id: WorkspaceId
    name: str
    selection: Selection
    created_at: Instant


class ListedDataset(Value, kw_only=True):
    """A dataset with what the catalogue says of it."""

    dataset: DatasetRow
    current: VersionRow | None
    key_columns: list[str]
    hold: HoldRow | None
    subscribed: bool


class ListedHold(Value, kw_only=True):
    """A hold with its version, and the rows of the version that it was measured against."""

    hold: HoldRow
    version: VersionRow
    base_row_count: int | None


class DeliveredDataset(Value, kw_only=True):
    """A dataset of a subscription with its current version."""

    dataset_id: DatasetId
    current: VersionRow | None


class VersionContent(Value, kw_only=True):
    """The large parts of a version: its schema and its 256 digest buckets."""

    schema: Schema
    buckets: list[BucketDigest]


class SealedSecret(Value, kw_only=True):
    """A webhook's secret, sealed; `until` is when it ceases to sign, None for the current one."""

    text: str
    until: Instant | None


class WebhookRow(Value, kw_only=True):
    """A webhook: what was asked for, and its lane.

    `cursor` is the number of the last event that the lane has come to. `rounds` numbers what was
    sent again by hand; events up to `replay_until` are sent again in the round of that number.
    """

    id: WebhookId
    workspace_id: WorkspaceId
    subscription_id: SubscriptionId
    member_id: MemberId
    url: str
    events: list[EventType] | None
    secrets: list[SealedSecret]
    created_at: Instant
    state: WebhookState
    off_reason: OffReason | None
    off_at: Instant | None
    cursor: int
    rounds: int
    replay_until: int
    health: Health


class Claim(Value, kw_only=True):
    """A lane that is served; nothing is recorded for it by who holds an older token."""

    webhook_id: WebhookId
    token: int


class ReadyLane(Value, kw_only=True):
    """A lane with something due; `slow` ones share their slots."""

    webhook_id: WebhookId
    slow: bool


class DeliveryRow(Value, kw_only=True):
    """One event to one webhook, tried or waiting; a test has no event.

    Of the waiting ones of a dataset only the earliest has a `next_at`.
    """

    id: DeliveryId
    webhook_id: WebhookId
    seq: int | None
    dataset_id: DatasetId | None
    kind: DeliveryKind
    state: DeliveryState
    attempts: int
    next_at: Instant | None
    created_at: Instant
    ended_at: Instant | None


class TryRow(Value, kw_only=True):
    """One attempt of a delivery."""

    delivery_id: DeliveryId
    webhook_id: WebhookId
    number: int
    started_at: Instant
    ms: int
    url: str
    address: str | None
    status: int | None
    error: str | None
    location: str | None
    response: str | None
    delivered: bool
