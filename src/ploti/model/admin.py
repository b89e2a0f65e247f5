"""What the operator's staff see: outcomes, holds, and datasets with their declarations."""

from __future__ import annotations

from enum import StrEnum

from ploti.model.dataset import Dataset
from ploti.model.event import HoldReason
from ploti.model.ids import DatasetId, HoldId, MemberId, ProposalId
from ploti.model.schema import SchemaChange
from ploti.model.version import Counts
from ploti.model.wire import Instant, Value


class OutcomeKind(StrEnum):
    """How a check or a push ended."""

    UNCHANGED = "unchanged"
    RELEASED = "released"
    HELD = "held"
    FAILED = "failed"


class HoldRef(Value, kw_only=True):
    """A hold by its id and reason."""

    id: HoldId
    reason: HoldReason


class Outcome(Value, kw_only=True):
    """How a check or a push ended; a dry run says how it would have ended."""

    outcome: OutcomeKind
    version: int | None
    counts: Counts | None
    hold: HoldRef | None
    detail: str


class Finding(Value, kw_only=True):
    """One thing that a review found, with its numbers and a few examples.

    `subject` is what it was found of, such as a column, and `measure` how bad it is. One that was
    accepted before, and is not worse, gives no reason to hold.
    """

    reason: HoldReason | None
    kind: str
    message: str
    examples: list[str] = []
    subject: str = ""
    measure: float | None = None
    accepted: bool = False


class AcceptedFinding(Value, kw_only=True):
    """A finding accepted by the release of a version that was held for it."""

    id: str
    dataset_id: DatasetId
    kind: str
    subject: str
    measure: float | None
    message: str
    hold_id: HoldId
    accepted_at: Instant
    accepted_by: MemberId
    accepted_by_name: str | None
    note: str | None


class AcceptedPage(Value, kw_only=True):
    """The accepted findings of a dataset, by id."""

    findings: list[AcceptedFinding]
    next_cursor: str | None


class HoldState(StrEnum):
    """Where a hold stands: waiting, or ended in one of three ways (R-080)."""

    OPEN = "open"
    RELEASED = "released"
    DISCARDED = "discarded"
    REPLACED = "replaced"


class Hold(Value, kw_only=True):
    """A version kept back for review; `since` is when it was built (R-049).

    One that is not `matched` has its records matched by its release, without the limit that the
    matching broke.
    """

    id: HoldId
    dataset_id: DatasetId
    version: int
    current_version: int | None
    reason: HoldReason
    state: HoldState
    since: Instant
    row_count: int
    current_row_count: int | None
    counts: Counts | None
    schema_change: SchemaChange | None
    findings: list[Finding]
    matched: bool
    decided_at: Instant | None
    decided_by: str | None
    decided_by_name: str | None = None
    note: str | None


class HoldPage(Value, kw_only=True):
    """Holds, newest first."""

    holds: list[Hold]
    next_cursor: str | None


class ProposalKind(StrEnum):
    """What is proposed: all ids dealt anew, or ids given back to records that go on."""

    REPLACE = "replace"
    CONTINUE = "continue"


class ProposalState(StrEnum):
    """Where a proposal stands; one of a matching waits for its version to be released."""

    WAITING = "waiting"
    OPEN = "open"
    APPROVED = "approved"
    REJECTED = "rejected"


class Proposal(Value, kw_only=True):
    """A proposal to replace record ids, of `version`, for staff to decide.

    `records` is how many ids it would change, `column` whose order they would follow. Of records
    that may go on, `estimate` is the share that is likely to be false, and each example shows a
    row as it was and as it is.
    """

    id: ProposalId
    dataset_id: DatasetId
    kind: ProposalKind
    state: ProposalState
    version: int
    column: str | None
    records: int
    estimate: float | None
    examples: list[str]
    made_at: Instant
    made_by: str | None
    decided_at: Instant | None
    decided_by: str | None
    note: str | None


class ProposalPage(Value, kw_only=True):
    """Proposals of a dataset, newest first."""

    proposals: list[Proposal]
    next_cursor: str | None


class NewReplacement(Value, kw_only=True):
    """The body that proposes to replace a dataset's ids; `from` is a column, or left out."""

    from_: str | None = None


class Decision(Value, kw_only=True):
    """The body of a release or a discard."""

    note: str = ""


class BuildStage(StrEnum):
    """What is done of a check: bytes fetched, and what a build does, from its wait for its turn."""

    FETCHING = "fetching"
    WAITING = "waiting"
    READING = "reading"
    TYPING = "typing"
    MATCHING = "matching"
    WRITING = "writing"


class BuildProgress(Value, kw_only=True):
    """How far a build is: its stage, the rows of its state and the share of the stage done.

    Both are null while they are not known; the share is from 0 to 1. `bytes` are those fetched.
    """

    stage: BuildStage
    bytes: int | None = None
    rows: int | None = None
    share: float | None = None


class BuildUnderWay(Value, kw_only=True):
    """A check or a push that has begun and not ended.

    `progress` is null in the first second, and while a state is pushed.
    """

    dataset_id: DatasetId
    version: int
    since: Instant
    progress: BuildProgress | None


class AdminDataset(Dataset, kw_only=True):
    """A dataset with its declaration as it stands, for staff.

    `building` is the check or push that is under way, the oldest of several.
    """

    deliverable: bool
    building: BuildUnderWay | None
    declaration: dict[str, object]


class AdminDatasetPage(Value, kw_only=True):
    """Datasets by id, for staff."""

    datasets: list[AdminDataset]
    next_cursor: str | None


class Queue(Value, kw_only=True):
    """The jobs of a kind: how many there are, are due and are being done; the longest due one."""

    kind: str
    planned: int
    due: int
    running: int
    oldest_due: Instant | None


class FailingSource(Value, kw_only=True):
    """A source that could not be read: since when, how often in a row, and why the last time."""

    dataset_id: DatasetId
    since: Instant
    failures: int
    detail: str


class Sizes(Value, kw_only=True):
    """How much there is: rows of each kind, and the bytes of the files kept for versions."""

    datasets: int
    versions: int
    subscriptions: int
    events: int
    open_holds: int
    file_bytes: int


class RetentionRun(Value, kw_only=True):
    """When what is past retention was removed last, up to where; why nothing was, if so."""

    run_at: Instant
    pruned_to: Instant
    stopped: str | None


class Disk(Value, kw_only=True):
    """The room for files: what is free, what checks need, and whether they wait for it."""

    free_bytes: int
    needed_bytes: int
    checks_wait: bool


class Status(Value, kw_only=True):
    """How a server does, for staff."""

    at: Instant
    queues: list[Queue]
    failing: list[FailingSource]
    building: list[BuildUnderWay]
    retention: RetentionRun | None
    disk: Disk
    sizes: Sizes


class Applied(Value, kw_only=True):
    """What applying a declaration did; `changed` names the settings that are other than before."""

    dataset_id: DatasetId
    created: bool
    changed: list[str]
    dry_run: bool
