"""Every REST call, once: the request that it makes and the value that its answer is read as."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from pathlib import PurePath
from typing import BinaryIO

from ploti.client.calls import (
    BUILDING,
    Answer,
    Call,
    ListCall,
    Listed,
    Progress,
    Upload,
    path,
    query,
    reads,
    reads_list,
)
from ploti.errors import ConfigError, TransportError
from ploti.model.admin import (
    AcceptedFinding,
    AcceptedPage,
    AdminDataset,
    AdminDatasetPage,
    Applied,
    Decision,
    Hold,
    HoldPage,
    HoldState,
    Outcome,
    Status,
)
from ploti.model.dataset import Dataset
from ploti.model.event import Event, UnknownEvent, read_event
from ploti.model.ids import START, DatasetId, EventId
from ploti.model.manifest import Manifest
from ploti.model.page import ChangePage, DatasetPage, EventPage, SubscriptionPage, VersionPage
from ploti.model.schema import SchemaDocument
from ploti.model.subscription import (
    NewSubscription,
    Preview,
    Selection,
    Subscription,
    SubscriptionPatch,
)
from ploti.model.version import ChangeRow, Version, VersionDigest, VersionSummary
from ploti.model.wire import UNSET, Value, decode, encode


def list_datasets(
    *,
    place: str | None = None,
    topic: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> ListCall[Dataset, str | None]:
    """The datasets that the workspace may have, by id; `place` and `topic` narrow them."""
    return ListCall(
        method="GET",
        path=path("feeds", "datasets"),
        query=query(place=place, topic=topic, cursor=cursor, limit=limit),
        read=reads_list(DatasetPage, lambda page: Listed(page, page.datasets, page.next_cursor)),
    )


def get_dataset(dataset_id: str) -> Call[Dataset]:
    """One dataset, with its current version and whether one waits for review."""
    return Call(method="GET", path=path("feeds", "datasets", dataset_id), read=reads(Dataset))


def list_versions(
    dataset_id: str, *, after: int | None = None, limit: int | None = None
) -> ListCall[VersionSummary, int | None]:
    """The released versions of a dataset after the one numbered `after`, oldest first."""
    return ListCall(
        method="GET",
        path=path("feeds", "datasets", dataset_id, "versions"),
        query=query(after=after, limit=limit),
        read=reads_list(VersionPage, lambda page: Listed(page, page.versions, page.next_cursor)),
        cursor="after",
    )


def get_version(
    dataset_id: str, version: int, *, format: str | None = None, patience: float = 0.0
) -> Call[Version]:
    """A version with signed links to its files, good for an hour.

    `format` is `geoparquet` (left out: the same; without geometry plain `parquet`) or `csv`. A CSV
    of a large dataset is made when it is first asked for; `patience` is how many seconds more than
    usual to wait for it.
    """
    return Call(
        method="GET",
        path=path("feeds", "datasets", dataset_id, "versions", version),
        query=query(format=format),
        read=reads(Version),
        extra=patience,
    )


def list_changes(
    dataset_id: str, version: int, *, cursor: str | None = None, limit: int | None = None
) -> ListCall[ChangeRow, str | None]:
    """The records that a version added, changed and removed, of at most 10,000 changes."""
    return ListCall(
        method="GET",
        path=path("feeds", "datasets", dataset_id, "versions", version, "changes"),
        query=query(cursor=cursor, limit=limit),
        read=reads_list(ChangePage, lambda page: Listed(page, page.changes, page.next_cursor)),
    )


def get_digest(dataset_id: str, version: int) -> Call[VersionDigest]:
    """A version's content digest and its 256 buckets, which are kept for good."""
    return Call(
        method="GET",
        path=path("feeds", "datasets", dataset_id, "versions", version, "digest"),
        read=reads(VersionDigest),
    )


def get_schema(dataset_id: str, *, version: int | None = None) -> Call[SchemaDocument]:
    """The schema of a version; left out, of the current one."""
    return Call(
        method="GET",
        path=path("feeds", "datasets", dataset_id, "schema"),
        query=query(version=version),
        read=reads(SchemaDocument),
    )


def get_snapshot_link(dataset_id: str, *, format: str | None = None) -> Call[str]:
    """A signed link to the current version's snapshot, good for an hour."""
    return Call(
        method="GET",
        path=path("feeds", "datasets", dataset_id, "current", "snapshot"),
        query=query(format=format),
        read=_read_redirect,
        redirects=True,
    )


def _read_redirect(answer: Answer) -> str:
    link = answer.headers.get("location")
    if not link:
        raise TransportError("the server gave no link to the snapshot")
    return link


def create_subscription(
    *,
    name: str = "",
    datasets: Iterable[str] = (),
    places: Iterable[str] = (),
    topics: Iterable[str] = (),
) -> Call[Subscription]:
    """Subscribe to datasets by id, by place or by topic; at least one must be named."""
    new = NewSubscription(
        name=name, places=[*places], topics=[*topics], datasets=[DatasetId(id_) for id_ in datasets]
    )
    return Call(
        method="POST",
        path=path("feeds", "subscriptions"),
        body=encode(new),
        read=reads(Subscription),
    )


def preview_selection(
    *,
    datasets: Iterable[str] = (),
    places: Iterable[str] = (),
    topics: Iterable[str] = (),
) -> Call[Preview]:
    """What a selection would deliver, and why other datasets that it matches would not be."""
    wanted = Selection(
        places=[*places], topics=[*topics], datasets=[DatasetId(id_) for id_ in datasets]
    )
    return Call(
        method="POST",
        path=path("feeds", "subscriptions", "preview"),
        body=encode(wanted),
        read=reads(Preview),
    )


def list_subscriptions(
    *, cursor: str | None = None, limit: int | None = None
) -> ListCall[Subscription, str | None]:
    """The workspace's subscriptions, oldest first."""
    return ListCall(
        method="GET",
        path=path("feeds", "subscriptions"),
        query=query(cursor=cursor, limit=limit),
        read=reads_list(
            SubscriptionPage, lambda page: Listed(page, page.subscriptions, page.next_cursor)
        ),
    )


def get_subscription(subscription_id: str) -> Call[Subscription]:
    """One subscription."""
    return Call(
        method="GET",
        path=path("feeds", "subscriptions", subscription_id),
        read=reads(Subscription),
    )


def update_subscription(
    subscription_id: str,
    *,
    name: str | None = None,
    datasets: Iterable[str] | None = None,
    places: Iterable[str] | None = None,
    topics: Iterable[str] | None = None,
) -> Call[Subscription]:
    """Replace what is given; what is None stays as it is. Datasets join and leave accordingly."""
    patch = SubscriptionPatch(
        name=UNSET if name is None else name,
        places=UNSET if places is None else [*places],
        topics=UNSET if topics is None else [*topics],
        datasets=UNSET if datasets is None else [DatasetId(id_) for id_ in datasets],
    )
    return Call(
        method="PATCH",
        path=path("feeds", "subscriptions", subscription_id),
        body=encode(patch),
        read=reads(Subscription),
    )


def delete_subscription(subscription_id: str) -> Call[None]:
    """Delete a subscription, with its log."""
    return Call(
        method="DELETE",
        path=path("feeds", "subscriptions", subscription_id),
        read=lambda _: None,
    )


def get_manifest(subscription_id: str) -> Call[Manifest]:
    """A subscription's datasets with their current versions, and the cursor to read on from."""
    return Call(
        method="GET",
        path=path("feeds", "subscriptions", subscription_id, "manifest"),
        read=reads(Manifest),
    )


def list_events(
    subscription_id: str,
    *,
    cursor: str | None = None,
    limit: int | None = None,
    types: Iterable[str] | None = None,
    wait: float | None = None,
) -> ListCall[Event | UnknownEvent, EventId]:
    """The events after a cursor, oldest first.

    Keep `next_cursor` once the page's events are applied, and give it the next time. `types` keeps
    only events of these types; `wait` holds the call open for up to so many seconds (30 at most)
    until something new is there.
    """
    return ListCall(
        method="GET",
        path=path("feeds", "subscriptions", subscription_id, "events"),
        query=query(
            cursor=cursor,
            limit=limit,
            types=None if types is None else ",".join(types),
            wait=wait,
        ),
        read=_read_events,
        start=START,
        extra=wait or 0.0,
    )


class _EventPage(Value, kw_only=True):
    events: list[dict[str, object]]
    next_cursor: EventId


def _read_events(answer: Answer) -> Listed[Event | UnknownEvent, EventId]:
    plain = decode(answer.body, _EventPage)
    events = [read_event(event) for event in plain.events]
    page = EventPage(events=events, next_cursor=plain.next_cursor)
    return Listed(page, page.events, page.next_cursor)


def apply_dataset(declaration: Mapping[str, object], *, dry_run: bool = False) -> Call[Applied]:
    """Create or update a dataset from its declaration; says which settings changed."""
    dataset_id = declaration.get("id")
    if not isinstance(dataset_id, str) or not dataset_id:
        raise ConfigError("a declaration needs the dataset's id: id: ds_…")
    return Call(
        method="PUT",
        path=path("admin", "datasets", dataset_id),
        query=query(dryRun=dry_run or None),
        body=encode(declaration),
        read=reads(Applied),
    )


def list_admin_datasets(
    *, cursor: str | None = None, limit: int | None = None
) -> ListCall[AdminDataset, str | None]:
    """All datasets with their declarations, by id."""
    return ListCall(
        method="GET",
        path=path("admin", "datasets"),
        query=query(cursor=cursor, limit=limit),
        read=reads_list(
            AdminDatasetPage, lambda page: Listed(page, page.datasets, page.next_cursor)
        ),
    )


def get_admin_dataset(dataset_id: str) -> Call[AdminDataset]:
    """One dataset with its declaration."""
    return Call(method="GET", path=path("admin", "datasets", dataset_id), read=reads(AdminDataset))


def pause_dataset(dataset_id: str) -> Call[AdminDataset]:
    """Have no check of a dataset due until it is resumed."""
    return _steer(dataset_id, "pause")


def resume_dataset(dataset_id: str) -> Call[AdminDataset]:
    """Have a paused dataset's checks due again, from now on."""
    return _steer(dataset_id, "resume")


def remove_dataset(dataset_id: str) -> Call[AdminDataset]:
    """Take a dataset out of delivery; declaring it again brings it back."""
    return _steer(dataset_id, "remove")


def _steer(dataset_id: str, how: str) -> Call[AdminDataset]:
    return Call(
        method="POST", path=path("admin", "datasets", dataset_id, how), read=reads(AdminDataset)
    )


def get_status() -> Call[Status]:
    """How the server does: queues, failing sources, builds under way, sizes."""
    return Call(method="GET", path=path("admin", "status"), read=reads(Status))


def check_dataset(
    dataset_id: str, *, full: bool = False, timeout: float = BUILDING
) -> Call[Outcome]:
    """Check the source now and wait for the outcome, for up to `timeout` seconds.

    `full` reads it whole, whatever it says of its last change.
    """
    return Call(
        method="POST",
        path=path("admin", "datasets", dataset_id, "check"),
        query=query(full=full or None),
        read=reads(Outcome),
        timeout=timeout,
    )


def rebuild_version(dataset_id: str, *, timeout: float = BUILDING) -> Call[Outcome]:
    """Build the current version again, as a new one to be loaded, and wait for the outcome."""
    return Call(
        method="POST",
        path=path("admin", "datasets", dataset_id, "rebuild"),
        read=reads(Outcome),
        timeout=timeout,
    )


def restore_version(dataset_id: str, version: int, *, timeout: float = BUILDING) -> Call[Outcome]:
    """Make an older version's content current again, as a new one, and wait for the outcome.

    Checks pause until they are resumed.
    """
    return Call(
        method="POST",
        path=path("admin", "datasets", dataset_id, "versions", str(version), "restore"),
        read=reads(Outcome),
        timeout=timeout,
    )


def push_state(
    dataset_id: str,
    source: str | PathLike[str] | BinaryIO,
    *,
    name: str | None = None,
    dry_run: bool = False,
    timeout: float = BUILDING,
    progress: Progress | None = None,
) -> Call[Outcome]:
    """Upload a file as the source's new state and wait for the outcome.

    `source` is a path, or a binary file that is read while it is sent; `name` is what the server
    is told that it is called (a path's own name unless given). `timeout` is the deadline in seconds
    of upload and build together. A dry run does the whole build and stores nothing.
    """
    opened = fspath(source) if isinstance(source, str | PathLike) else source
    if name is None:
        name = PurePath(opened).name if isinstance(opened, str) else _name_of(opened)
    return Call(
        method="POST",
        path=path("admin", "datasets", dataset_id, "push"),
        query=query(name=name, dryRun=dry_run or None),
        body=Upload(source=opened, progress=progress),
        read=reads(Outcome),
        timeout=timeout,
    )


def _name_of(opened: BinaryIO) -> str | None:
    name = getattr(opened, "name", None)
    return PurePath(name).name if isinstance(name, str) else None


def list_holds(
    *, state: HoldState | str | None = None, cursor: str | None = None, limit: int | None = None
) -> ListCall[Hold, str | None]:
    """Versions kept back for review, newest first; `state` is `open`, `released`, ..."""
    return ListCall(
        method="GET",
        path=path("admin", "holds"),
        query=query(state=state, cursor=cursor, limit=limit),
        read=reads_list(HoldPage, lambda page: Listed(page, page.holds, page.next_cursor)),
    )


def get_hold(hold_id: str) -> Call[Hold]:
    """One hold with its findings, counts and examples."""
    return Call(method="GET", path=path("admin", "holds", hold_id), read=reads(Hold))


def release_hold(hold_id: str, *, note: str = "", timeout: float = BUILDING) -> Call[Hold]:
    """Send the held version to its subscribers; `note` says why, for those who look later.

    One whose records could not be matched is matched first, for up to `timeout` seconds.
    """
    return _decide(hold_id, "release", note, timeout=timeout)


def discard_hold(hold_id: str, *, note: str = "") -> Call[Hold]:
    """Throw the held version away: the current one stays."""
    return _decide(hold_id, "discard", note)


def list_accepted(
    dataset_id: str, *, cursor: str | None = None, limit: int | None = None
) -> ListCall[AcceptedFinding, str | None]:
    """Findings of a dataset that a release accepted, by id."""
    return ListCall(
        method="GET",
        path=path("admin", "datasets", dataset_id, "accepted"),
        query=query(cursor=cursor, limit=limit),
        read=reads_list(AcceptedPage, lambda page: Listed(page, page.findings, page.next_cursor)),
    )


def withdraw_accepted(dataset_id: str, finding_id: str) -> Call[None]:
    """Have an accepted finding hold versions of a dataset again."""
    return Call(
        method="DELETE",
        path=path("admin", "datasets", dataset_id, "accepted", finding_id),
        read=lambda _: None,
    )


def _decide(hold_id: str, decision: str, note: str, *, timeout: float | None = None) -> Call[Hold]:
    return Call(
        method="POST",
        path=path("admin", "holds", hold_id, decision),
        body=encode(Decision(note=note)),
        read=reads(Hold),
        timeout=timeout,
    )
