"""Port of the database: a unit of work over small repositories, read and written in turns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ploti.model.admin import (
    BuildProgress,
    BuildUnderWay,
    FailingSource,
    HoldState,
    Queue,
    Sizes,
)
from ploti.model.ids import (
    DatasetId,
    HoldId,
    SubscriptionId,
    WorkspaceId,
)
from ploti.model.wire import Instant
from ploti.server.eventlog.drafts import Standing
from ploti.server.eventlog.paging import Extent
from ploti.server.eventlog.render import Events
from ploti.server.membership.principal import Principal
from ploti.server.membership.rights import Filing, Rights
from ploti.server.ports.accounts import Answers, Audit, Keys, Members, PlanTables, Workspaces
from ploti.server.ports.alerts import Alerts
from ploti.server.ports.deliveries import Deliveries, Webhooks
from ploti.server.ports.jobs import Jobs
from ploti.server.ports.log import Log
from ploti.server.ports.measures import Measures
from ploti.server.ports.proposals import Proposals
from ploti.server.ports.recovery import Recovery
from ploti.server.ports.rows import (
    AttemptId,
    AttemptRow,
    DatasetRow,
    DeliveredDataset,
    FileRow,
    HoldRow,
    ListedDataset,
    ListedHold,
    StateRow,
    SubscriptionRow,
    UpkeepRow,
    VersionContent,
    VersionRow,
)
from ploti.server.release.accepted import Accepted
from ploti.server.release.known import Role

T = TypeVar("T")


class Datasets(Protocol):
    """Declared datasets."""

    def lock_catalogue(self, *, exclusive: bool) -> int:
        """Shared to change a subscription, exclusive to file a dataset or change coverage or plans.

        Gives the revision at which coverage and plans stand.
        """
        ...

    def revision(self) -> int:
        """How often coverage and plans have changed."""
        ...

    def revise(self) -> None:
        """Count a change of coverage or plans, under the exclusive lock of the catalogue."""
        ...

    def add(self, dataset: DatasetRow) -> None:
        """Keep a new dataset."""
        ...

    def save(self, dataset: DatasetRow) -> None:
        """Keep what changed of a dataset that was locked before."""
        ...

    def get(self, dataset_id: DatasetId) -> DatasetRow | None:
        """A dataset; None where none was declared."""
        ...

    def lock(self, dataset_id: DatasetId) -> DatasetRow | None:
        """A dataset that nobody else changes or joins until the transaction ends."""
        ...

    def lock_standing(self, dataset_ids: Collection[DatasetId]) -> list[Standing]:
        """How datasets stand, by id; no release passes any of them until the transaction ends."""
        ...

    def filings(self) -> list[Filing]:
        """Where every dataset is filed."""
        ...

    def listed(
        self, dataset_id: DatasetId, *, workspaces: Collection[WorkspaceId]
    ) -> ListedDataset | None:
        """A dataset as the catalogue shows it to workspaces; staff look for none."""
        ...

    def page(
        self,
        *,
        workspaces: Collection[WorkspaceId],
        after: DatasetId | None,
        limit: int,
        place: str | None = None,
        topic: str | None = None,
        open_by: Sequence[Rights] | None = None,
    ) -> list[ListedDataset]:
        """Datasets by id; `place` and `topic` take in all below.

        With `open_by` only the deliverable ones that some of these rights open (a plan that cannot
        be read closes nothing), or that the workspaces' subscriptions deliver.
        """
        ...


class Versions(Protocol):
    """Versions that took a number, their files and their source states."""

    def add(self, version: VersionRow, *, content: VersionContent, files: list[FileRow]) -> None:
        """Keep a new version with its files."""
        ...

    def save(self, version: VersionRow) -> None:
        """Keep what changed of a version."""
        ...

    def fill(self, version: VersionRow, *, content: VersionContent, files: list[FileRow]) -> None:
        """Keep what a version that there is turned out to be, with its files."""
        ...

    def get(self, dataset_id: DatasetId, number: int) -> VersionRow | None:
        """A version in whatever state; None where the number was never taken."""
        ...

    def content(self, dataset_id: DatasetId, number: int) -> VersionContent:
        """The schema and buckets of a version that there is."""
        ...

    def files(self, dataset_id: DatasetId, number: int) -> list[FileRow]:
        """The files of a version."""
        ...

    def add_files(self, files: list[FileRow]) -> None:
        """Keep files of versions that there are."""
        ...

    def drop_files(self, dataset_id: DatasetId, number: int) -> None:
        """Forget a version's files; the sweep removes their blobs."""
        ...

    def drop_changes(self, dataset_id: DatasetId, number: int) -> None:
        """Forget the changes of a version that is to be loaded; the sweep removes their blobs."""
        ...

    def drop_links(self, dataset_id: DatasetId, number: int) -> None:
        """Forget what a version's matching proposed; the sweep removes its blob."""
        ...

    def drop_gone(self, dataset_id: DatasetId, *, before: int) -> list[AttemptId]:
        """Forget the lists of removed records of versions below a number; who built them."""
        ...

    def replaced(self, dataset_id: DatasetId, *, after: int) -> list[int]:
        """The released versions above a number that changed record ids, oldest first."""
        ...

    def first_since(self, dataset_id: DatasetId, at: Instant) -> int:
        """The first version released at this time or later; 0 where there is none."""
        ...

    def released(self, dataset_id: DatasetId, *, after: int, limit: int) -> list[VersionRow]:
        """Released versions above a number, oldest first."""
        ...


class States(Protocol):
    """The source states that are kept of each dataset, one a role."""

    def of(self, dataset_id: DatasetId) -> dict[Role, StateRow]:
        """The states of a dataset."""
        ...

    def put(self, state: StateRow) -> None:
        """Keep a state in its role, in place of the one that had it."""
        ...

    def drop(self, dataset_id: DatasetId, role: Role) -> None:
        """Forget the state in this role, if there is one."""
        ...


class Holds(Protocol):
    """Reviews of versions."""

    def add(self, hold: HoldRow) -> None:
        """Keep a new hold."""
        ...

    def save(self, hold: HoldRow) -> None:
        """Keep a hold's end."""
        ...

    def get(self, hold_id: HoldId) -> ListedHold | None:
        """A hold with its version."""
        ...

    def open_of(self, dataset_id: DatasetId) -> HoldRow | None:
        """The dataset's open hold: there is one at most."""
        ...

    def page(
        self, *, before: tuple[Instant, HoldId] | None, limit: int, state: HoldState | None
    ) -> list[ListedHold]:
        """Holds that began before another one, newest first."""
        ...

    def accept(self, finding: Accepted) -> None:
        """Keep an accepted finding, in place of the dataset's one of its kind and subject."""
        ...

    def accepted(self, dataset_id: DatasetId) -> list[Accepted]:
        """The accepted findings of a dataset, by id."""
        ...

    def withdraw(self, finding_id: str) -> None:
        """Forget an accepted finding."""
        ...


class Builds(Protocol):
    """Attempts to build: recorded before their first byte, so that no leftover is unknown."""

    def add(self, attempt: AttemptRow) -> None:
        """Record an attempt as open."""
        ...

    def note(self, attempt_id: AttemptId, progress: BuildProgress) -> None:
        """Keep how far an attempt's build is."""
        ...

    def end(self, attempt_id: AttemptId) -> None:
        """Mark an attempt ended and to be swept; an ended one too, when what it left lost use."""
        ...

    def end_open(self) -> None:
        """Mark every open attempt ended: at the start, when none can be running."""
        ...

    def to_sweep(self) -> list[AttemptRow]:
        """The ended attempts that may have left something without use."""
        ...

    def kept(self, attempt: AttemptRow) -> set[str]:
        """The blobs of an attempt that a version, a state or an open attempt still uses."""
        ...

    def swept(self, attempt_id: AttemptId) -> None:
        """Mark that of an attempt only what is in use is left."""
        ...

    def forget(self, attempt_id: AttemptId) -> None:
        """Drop an ended attempt of which nothing is left."""
        ...


class Retention(Protocol):
    """What is past retention."""

    def last_run(self) -> UpkeepRow | None:
        """The last run; None before the first."""
        ...

    def keep_run(self, run: UpkeepRow) -> None:
        """Keep a run in place of the last one."""
        ...

    def newest_event(self) -> Instant | None:
        """When the newest event was appended."""
        ...

    def drop_events(self, *, before: Instant) -> None:
        """Remove of each log its events up to the first that is not older; bodies unused too."""
        ...

    def drop_files(self, *, before: Instant) -> list[AttemptId]:
        """Remove changes and snapshots that are older; the attempts that built them (S-44)."""
        ...


class Overview(Protocol):
    """What staff watch."""

    def queues(self, *, now: Instant) -> list[Queue]:
        """The jobs of each kind."""
        ...

    def failing(self) -> list[FailingSource]:
        """The sources that could not be read last, the longest failing first."""
        ...

    def building(self, dataset_id: DatasetId | None = None) -> list[BuildUnderWay]:
        """The checks and pushes under way, of one dataset or of all, oldest first."""
        ...

    def sizes(self) -> Sizes:
        """How much there is of everything."""
        ...

    def measures(self, *, now: Instant) -> Measures:
        """What metrics tell of the database."""
        ...


class Subscriptions(Protocol):
    """Subscriptions; each has a log."""

    def add(self, subscription: SubscriptionRow) -> None:
        """Keep a new subscription, with an empty log."""
        ...

    def save(self, subscription: SubscriptionRow) -> None:
        """Keep what changed of a subscription."""
        ...

    def delete(self, subscription_id: SubscriptionId) -> None:
        """Remove a subscription, its memberships and its log."""
        ...

    def get(
        self, subscription_id: SubscriptionId, *, workspace: WorkspaceId
    ) -> SubscriptionRow | None:
        """A subscription of this workspace; nobody else changes it while the transaction writes."""
        ...

    def page(
        self,
        *,
        workspace: WorkspaceId,
        after: tuple[Instant, SubscriptionId] | None,
        limit: int,
    ) -> list[SubscriptionRow]:
        """The workspace's subscriptions made after another one, oldest first."""
        ...

    def every(self) -> list[SubscriptionRow]:
        """The subscriptions of all workspaces, by id."""
        ...

    def workspaces(self) -> list[WorkspaceId]:
        """The workspaces that have a subscription, by id."""
        ...

    def of(self, workspace: WorkspaceId) -> list[SubscriptionId]:
        """The ids of a workspace's subscriptions, in their order."""
        ...


class Memberships(Protocol):
    """Which subscription delivers which dataset."""

    def of(self, subscription_id: SubscriptionId) -> set[DatasetId]:
        """The datasets that a subscription delivers."""
        ...

    def delivering(self, dataset_id: DatasetId) -> set[SubscriptionId]:
        """The subscriptions that deliver a dataset."""
        ...

    def delivers(self, workspaces: Collection[WorkspaceId], dataset_id: DatasetId) -> bool:
        """Whether any subscription of these workspaces delivers the dataset."""
        ...

    def join(self, pairs: Collection[tuple[SubscriptionId, DatasetId]]) -> None:
        """Record that datasets are delivered."""
        ...

    def leave(self, pairs: Collection[tuple[SubscriptionId, DatasetId]]) -> None:
        """Record that datasets are delivered no more."""
        ...

    def manifest(self, subscription_id: SubscriptionId) -> Iterator[DeliveredDataset]:
        """The datasets that a subscription delivers with their current versions, by id.

        They are read as they are asked for, all of one moment.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """One transaction, or one consistent moment to read.

    What decides which datasets a subscription delivers first takes the catalogue's lock; then
    come subscriptions, datasets by id, and counters by subscription id (delivery, 'Appending').
    """

    workspaces: Workspaces
    plans: PlanTables
    members: Members
    keys: Keys
    audit: Audit
    answers: Answers
    datasets: Datasets
    versions: Versions
    states: States
    holds: Holds
    proposals: Proposals
    builds: Builds
    jobs: Jobs
    alerts: Alerts
    retention: Retention
    recovery: Recovery
    overview: Overview
    subscriptions: Subscriptions
    memberships: Memberships
    log: Log
    webhooks: Webhooks
    deliveries: Deliveries


class Store(Protocol):
    """The database. Work is a plain function of a transaction and runs in a thread of the store."""

    async def read(self, work: Callable[[Transaction], T], *, briefly: bool = False) -> T:
        """Run work that only reads, over one consistent moment.

        What takes less than a way to a thread and back, and may be done twice, is done `briefly`:
        in the caller's own thread, where the database is in this process.
        """
        ...

    async def log_by_key(
        self, digest: str, subscription_id: SubscriptionId, *, after: int, limit: int, now: Instant
    ) -> tuple[Principal, Extent, Events] | None:
        """Who calls with a key, the extent of a log of theirs, and its events after a position.

        It is one statement, which sees one moment without a transaction. None where there is no
        such key or log, or events after the position are pruned.
        """
        ...

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run work in one transaction: all of it is durable when this returns, or none."""
        ...

    def on_log(self, bell: Callable[[], None]) -> None:
        """Have `bell` called, in a thread of the store, after each commit that added events."""
        ...

    def on_jobs(self, bell: Callable[[], None]) -> None:
        """Have `bell` called, in a thread of the store, after each commit that planned jobs."""
        ...

    async def close(self) -> None:
        """Finish what is under way and let the database go."""
        ...
