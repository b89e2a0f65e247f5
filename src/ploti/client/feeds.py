"""What subscribers do: the catalogue with its files, and subscriptions with their logs."""

from __future__ import annotations

from ploti.client import endpoints, files
from ploti.client.methods import Async, Blocking, ListMethod, Method, method
from ploti.client.sides import AsyncSide, BlockingSide


class _Datasets:
    list = ListMethod(endpoints.list_datasets)
    show = method(endpoints.get_dataset)
    versions = ListMethod(endpoints.list_versions)
    version = method(endpoints.get_version)
    changes = ListMethod(endpoints.list_changes)
    digest = method(endpoints.get_digest)
    schema = method(endpoints.get_schema)
    snapshot_link = method(endpoints.get_snapshot_link)
    download = Method(files.download)


class Datasets(_Datasets, Blocking):
    """The catalogue: datasets, their versions and their files."""


class AsyncDatasets(_Datasets, Async):
    """The catalogue: datasets, their versions and their files."""


class _Subscriptions:
    create = method(endpoints.create_subscription)
    list = ListMethod(endpoints.list_subscriptions)
    show = method(endpoints.get_subscription)
    update = method(endpoints.update_subscription)
    delete = method(endpoints.delete_subscription)
    manifest = method(endpoints.get_manifest)
    preview = method(endpoints.preview_selection)
    events = ListMethod(endpoints.list_events)


class Subscriptions(_Subscriptions, Blocking):
    """Subscriptions, with their manifests and logs."""


class AsyncSubscriptions(_Subscriptions, Async):
    """Subscriptions, with their manifests and logs."""


class Feeds:
    """Data Feeds."""

    def __init__(self, side: BlockingSide) -> None:
        self.datasets = Datasets(side)
        self.subscriptions = Subscriptions(side)


class AsyncFeeds:
    """Data Feeds."""

    def __init__(self, side: AsyncSide) -> None:
        self.datasets = AsyncDatasets(side)
        self.subscriptions = AsyncSubscriptions(side)
