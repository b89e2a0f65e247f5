"""What subscribers do: the catalogue with its files, and subscriptions with their logs."""

from __future__ import annotations

from ploti.client import endpoints, files, id_maps
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


class _Feeds:
    id_map = Method(id_maps.id_map)


class Feeds(_Feeds, Blocking):
    """Data Feeds."""

    def __init__(self, side: BlockingSide) -> None:
        super().__init__(side)
        self.datasets = Datasets(side)
        self.subscriptions = Subscriptions(side)


class AsyncFeeds(_Feeds, Async):
    """Data Feeds."""

    def __init__(self, side: AsyncSide) -> None:
        super().__init__(side)
        self.datasets = AsyncDatasets(side)
        self.subscriptions = AsyncSubscriptions(side)
