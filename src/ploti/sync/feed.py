"""What sync asks of the server: a port, and its adapter over the SDK's client."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol

from ploti.client.connection import Client
from ploti.client.files import DamagedFile, LinkRefused, MissingFile, fetch_file
from ploti.errors import SyncError, TransportError
from ploti.model.dataset import Dataset
from ploti.model.ids import DatasetId, EventId, SubscriptionId
from ploti.model.manifest import Manifest
from ploti.model.page import EventPage
from ploti.model.schema import SchemaDocument
from ploti.model.version import Version, VersionDigest

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
    """A subscription read with the SDK's client."""

    def __init__(self, client: Client, subscription_id: SubscriptionId) -> None:
        self._client = client
        self._subscription_id = subscription_id

    def manifest(self) -> Manifest:
        """The datasets with their current versions."""
        return self._client.feeds.subscriptions.manifest(self._subscription_id)

    def events(self, cursor: EventId, *, limit: int = 500, wait: int = 0) -> EventPage:
        """The events after a cursor."""
        page = self._client.feeds.subscriptions.events(
            self._subscription_id, cursor=cursor, limit=limit, wait=wait
        )
        return EventPage(events=page.items, next_cursor=page.next_cursor)

    def dataset(self, dataset_id: DatasetId) -> Dataset:
        """A dataset with its current version."""
        return self._client.feeds.datasets.show(dataset_id)

    def version(self, dataset_id: DatasetId, number: int) -> Version:
        """A version with the sizes of its files."""
        return self._client.feeds.datasets.version(dataset_id, number)

    def schema(self, dataset_id: DatasetId, number: int) -> SchemaDocument:
        """A version's schema."""
        return self._client.feeds.datasets.schema(dataset_id, version=number)

    def digest(self, dataset_id: DatasetId, number: int) -> VersionDigest:
        """A version's content digest by bucket."""
        return self._client.feeds.datasets.digest(dataset_id, number)

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
        try:
            return fetch_file(self._client, dataset_id, number, role, to=to)
        except (LinkRefused, MissingFile) as error:
            raise FileError(str(error)) from error
        except TransportError as error:
            self.dataset(dataset_id)  # it is the server that fails, not the file, where this does
            raise FileError(str(error)) from error
