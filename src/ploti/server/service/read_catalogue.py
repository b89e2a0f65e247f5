"""The catalogue: datasets, their versions and schemas, for everybody with a key."""

from __future__ import annotations

from ploti.errors import Fault, InvalidInput
from ploti.model.dataset import Dataset
from ploti.model.ids import DatasetId
from ploti.model.page import DatasetPage, VersionPage
from ploti.model.schema import SchemaDocument
from ploti.server.membership.access import check_catalogue, unknown_dataset
from ploti.server.membership.principal import Principal
from ploti.server.ports.rows import DatasetRow, VersionRow, VersionState
from ploti.server.ports.store import Transaction
from ploti.server.service.page_lists import check_limit, cut, dataset_cursor
from ploti.server.service.show_dataset import find_dataset, no_version, show_dataset
from ploti.server.service.show_version import show_summary
from ploti.server.sources import fields


def list_datasets(
    tx: Transaction,
    principal: Principal,
    *,
    place: str | None,
    topic: str | None,
    cursor: str | None,
    limit: int,
) -> DatasetPage:
    """The deliverable datasets by id, below a place and a topic where these are given.

    Raises InvalidInput for a place or topic that is no path, and for a wrong cursor or limit.
    """
    check_limit(limit)
    found = tx.datasets.page(
        workspace=principal.workspace_id,
        after=dataset_cursor(cursor),
        limit=limit + 1,
        place=_path("place", place),
        topic=_path("topic", topic),
        deliverable=True,
    )
    page, next_cursor = cut(found, limit=limit, cursor=lambda listed: listed.dataset.id)
    shown = [show_dataset(listed, subscribed=listed.subscribed) for listed in page]
    return DatasetPage(datasets=shown, next_cursor=next_cursor)


def get_dataset(tx: Transaction, principal: Principal, dataset_id: DatasetId) -> Dataset:
    """One dataset; raises NotFound or NotDeliverable (S-30)."""
    listed = tx.datasets.listed(dataset_id, workspace=principal.workspace_id)
    if listed is None:
        raise unknown_dataset(dataset_id)
    check_catalogue(dataset_id, deliverable=listed.dataset.deliverable)
    return show_dataset(listed)


def get_schema(
    tx: Transaction, principal: Principal, dataset_id: DatasetId, *, version: int | None
) -> SchemaDocument:
    """The schema of a released version, the current one's where none is named (R-091)."""
    del principal  # the catalogue is open to every key so far
    dataset = _in_catalogue(tx, dataset_id)
    number = dataset.current_version if version is None else version
    found = None if number is None else tx.versions.get(dataset_id, number)
    if found is None or found.state is not VersionState.RELEASED:
        raise no_version(dataset_id, version)
    return _document(tx, found)


def list_versions(
    tx: Transaction, principal: Principal, dataset_id: DatasetId, *, after: int | None, limit: int
) -> VersionPage:
    """Released versions above `after`, oldest first (R-092, S-43)."""
    del principal
    check_limit(limit)
    _in_catalogue(tx, dataset_id)
    found = tx.versions.released(dataset_id, after=after or 0, limit=limit + 1)
    page, next_cursor = cut(found, limit=limit, cursor=lambda version: version.version)
    return VersionPage(versions=[show_summary(row) for row in page], next_cursor=next_cursor)


def _path(field: str, text: str | None) -> str | None:
    try:
        return None if text is None else fields.path(text)
    except ValueError as error:
        raise InvalidInput(f"{field} {error}", errors=(Fault(field, str(error)),)) from error


def _in_catalogue(tx: Transaction, dataset_id: DatasetId) -> DatasetRow:
    dataset = find_dataset(tx, dataset_id)
    check_catalogue(dataset_id, deliverable=dataset.deliverable)
    return dataset


def _document(tx: Transaction, version: VersionRow) -> SchemaDocument:
    schema = tx.versions.content(version.dataset_id, version.version).schema
    return SchemaDocument(
        columns=schema.columns,
        key_columns=schema.key_columns,
        geometry=schema.geometry,
        schema_version=version.schema_version,
        change=version.schema_change,
    )
