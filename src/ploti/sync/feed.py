"""What sync asks of the server: a port, and its adapter over the SDK's client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from ploti.client import endpoints
from ploti.client.alarm import Alarm, CutShort, unless
from ploti.client.calls import Call, ListCall, Progress
from ploti.client.connection import Client
from ploti.client.files import DamagedFile, LinkRefused, MissingFile, download
from ploti.client.transport import Transport
from ploti.errors import SyncError, TransportError
from ploti.model.dataset import Dataset
from ploti.model.ids import DatasetId, EventId, SubscriptionId
from ploti.model.manifest import Manifest
from ploti.model.page import EventPage
from ploti.model.schema import SchemaDocument
from ploti.model.version import Version, VersionDigest, VersionSummary

T = TypeVar("T")

Role = Literal["snapshot", "changes"]


class FileError(SyncError):
    """A file of a version cannot be had whole, though the server answers."""


class Feed(Protocol):
    """One subscription as the server tells it; any call may raise an ApiError or TransportError."""

    def manifest(self) -> Manifest:
        """The datasets with their current versions, and the cursor to read on from."""
        ...

    def events(self, cursor: EventId, *, limit: int = 500, wait: int = 0) -> EventPage:
        """The events after a cursor, waiting up to `wait` seconds for the first."""
        ...

    def dataset(self, dataset_id: DatasetId) -> Dataset:
        """A dataset with its current version."""
        ...

    def version(self, dataset_id: DatasetId, number: int) -> Version:
        """A version with the sizes of its files."""
        ...

    def versions(self, dataset_id: DatasetId, *, after: int) -> list[VersionSummary]:
        """All released versions after a number, oldest first."""
        ...

    def schema(self, dataset_id: DatasetId, number: int) -> SchemaDocument:
        """A version's schema."""
        ...

    def digest(self, dataset_id: DatasetId, number: int) -> VersionDigest:
        """A version's content digest by bucket."""
        ...

    def fetch(self, dataset_id: DatasetId, number: int, role: Role, to: Path) -> Path:
        """A file of a version at the path `to`, its sha256 checked.

        Raises:
            FileError: There is none, or it is damaged.
            SyncError: It cannot be written here.
        """
        ...


class ClientFeed:
    """A subscription read with the SDK's client.

    The alarm cuts what is under way: every call and download where it is stopped, which raises
    Stopped, and the wait for events where it rings. `transferred` is told of bytes that come.
    """

    def __init__(
        self,
        client: Client,
        subscription_id: SubscriptionId,
        *,
        alarm: Alarm | None = None,
        transferred: Progress | None = None,
    ) -> None:
        self._client = client
        self._subscription_id = subscription_id
        self._alarm = alarm or Alarm()
        self._transferred = transferred

    def manifest(self) -> Manifest:
        """The datasets with their current versions."""
        return self._send(endpoints.get_manifest(self._subscription_id))

    def events(self, cursor: EventId, *, limit: int = 500, wait: int = 0) -> EventPage:
        """The events after a cursor; none where the alarm rings while it waits for them."""
        call = endpoints.list_events(self._subscription_id, cursor=cursor, limit=limit, wait=wait)
        try:
            page = self._do(lambda transport: transport.send(call), rings=wait > 0)
        except CutShort:
            return EventPage(events=[], next_cursor=cursor)
        return EventPage(events=page.items, next_cursor=page.next_cursor)

    def dataset(self, dataset_id: DatasetId) -> Dataset:
        """A dataset with its current version."""
        return self._send(endpoints.get_dataset(dataset_id))

    def version(self, dataset_id: DatasetId, number: int) -> Version:
        """A version with the sizes of its files."""
        return self._send(endpoints.get_version(dataset_id, number))

    def versions(self, dataset_id: DatasetId, *, after: int) -> list[VersionSummary]:
        """All released versions after a number, page by page."""
        call: ListCall[VersionSummary, int | None] | None
        call = endpoints.list_versions(dataset_id, after=after, limit=500)
        found: list[VersionSummary] = []
        while call is not None:
            page = self._send(call)
            found += page.items
            call = call.after(page)
        return found

    def schema(self, dataset_id: DatasetId, number: int) -> SchemaDocument:
        """A version's schema."""
        return self._send(endpoints.get_schema(dataset_id, version=number))

    def digest(self, dataset_id: DatasetId, number: int) -> VersionDigest:
        """A version's content digest by bucket."""
        return self._send(endpoints.get_digest(dataset_id, number))

    def fetch(self, dataset_id: DatasetId, number: int, role: Role, to: Path) -> Path:
        """A file of a version; one that comes damaged is fetched once more."""
        try:
            return self._fetch(dataset_id, number, role, to)
        except DamagedFile:
            pass
        try:
            return self._fetch(dataset_id, number, role, to)
        except DamagedFile as error:
            raise FileError(f"{error}, twice") from error

    def _fetch(self, dataset_id: DatasetId, number: int, role: Role, to: Path) -> Path:
        job = partial(
            download,
            dataset_id=dataset_id,
            version=number,
            to=to,
            role=role,
            progress=self._transferred,
        )
        try:
            return self._do(job)
        except (LinkRefused, MissingFile) as error:
            raise FileError(str(error)) from error
        except TransportError as error:
            self.dataset(dataset_id)  # it is the server that fails, not the file, where this does
            raise FileError(str(error)) from error

    def _send(self, call: Call[T]) -> T:
        return self._do(lambda transport: transport.send(call))

    def _do(self, job: Callable[[Transport], Awaitable[T]], *, rings: bool = False) -> T:
        """Do a job; raises Stopped where the alarm was stopped, CutShort where it rang."""
        try:
            return self._client.run(unless, job, self._alarm, rings=rings)
        except CutShort:
            self._alarm.check()
            raise
