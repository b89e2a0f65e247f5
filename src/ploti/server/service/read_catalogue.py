"""The catalogue: datasets, their versions and schemas, inside coverage and plan."""

from __future__ import annotations

from ploti.errors import Fault, InvalidInput
from ploti.model.dataset import Dataset
from ploti.model.ids import DatasetId
from ploti.model.page import DatasetPage, VersionPage
from ploti.model.schema import SchemaDocument
from ploti.server.membership.access import check_catalogue, unknown_dataset
from ploti.server.membership.principal import Reader
from ploti.server.membership.rights import Rights
from ploti.server.ports.rows import DatasetRow, VersionRow, VersionState
from ploti.server.ports.store import Transaction
from ploti.server.service.page_lists import check_limit, cut, dataset_cursor
from ploti.server.service.read_plans import rights_of
from ploti.server.service.show_dataset import (
    filing_of,
    find_dataset,
    no_version,
    show_dataset,
)
from ploti.server.service.show_version import show_summary
from ploti.server.sources import fields


def list_datasets(
    tx: Transaction,
    reader: Reader,
    *,
    place: str | None,
    topic: str | None,
    cursor: str | None,
    limit: int,
) -> DatasetPage:
    """The datasets that the reader may have by id, below a place and a topic where these are given.

    Raises InvalidInput for a place or topic that is no path, and for a wrong cursor or limit.
    """
    check_limit(limit)
    found = tx.datasets.page(
        workspaces=reader.workspaces,
        after=dataset_cursor(cursor),
        limit=limit + 1,
        place=_path("place", place),
        topic=_path("topic", topic),
        open_by=rights_for(tx, reader),
    )
    page, next_cursor = cut(found, limit=limit, cursor=lambda listed: listed.dataset.id)
    shown = [show_dataset(listed, subscribed=listed.subscribed) for listed in page]
    return DatasetPage(datasets=shown, next_cursor=next_cursor)


def get_dataset(tx: Transaction, reader: Reader, dataset_id: DatasetId) -> Dataset:
    """One dataset; raises NotFound, NotDeliverable or OutsideCoverage (S-30)."""
    listed = tx.datasets.listed(dataset_id, workspaces=reader.workspaces)
    if listed is None:
        raise unknown_dataset(dataset_id)
    filing = filing_of(listed.dataset)
    check_catalogue(filing, rights_for(tx, reader), subscribed=listed.subscribed)
    return show_dataset(listed)


def get_schema(
    tx: Transaction, reader: Reader, dataset_id: DatasetId, *, version: int | None
) -> SchemaDocument:
    """The schema of a released version, the current one's where none is named (R-091)."""
    dataset = _in_catalogue(tx, reader, dataset_id)
    number = dataset.current_version if version is None else version
    found = None if number is None else tx.versions.get(dataset_id, number)
    if found is None or found.state is not VersionState.RELEASED:
        raise no_version(dataset_id, version)
    return _document(tx, found)


def list_versions(
    tx: Transaction, reader: Reader, dataset_id: DatasetId, *, after: int | None, limit: int
) -> VersionPage:
    """Released versions above `after`, oldest first (R-092, S-43)."""
    check_limit(limit)
    _in_catalogue(tx, reader, dataset_id)
    found = tx.versions.released(dataset_id, after=after or 0, limit=limit + 1)
    page, next_cursor = cut(found, limit=limit, cursor=lambda version: version.version)
    return VersionPage(versions=[show_summary(row) for row in page], next_cursor=next_cursor)


def _path(field: str, text: str | None) -> str | None:
    try:
        return None if text is None else fields.path(text)
    except ValueError as error:
        raise InvalidInput(f"{field} {error}", errors=(Fault(field, str(error)),)) from error


def rights_for(tx: Transaction, reader: Reader) -> list[Rights]:
    """What the reader's workspaces may have."""
    return [*rights_of(tx, reader.plans, reader.workspaces).values()]


def _in_catalogue(tx: Transaction, reader: Reader, dataset_id: DatasetId) -> DatasetRow:
    dataset = find_dataset(tx, dataset_id)
    subscribed = tx.memberships.delivers(reader.workspaces, dataset_id)
    check_catalogue(filing_of(dataset), rights_for(tx, reader), subscribed=subscribed)
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
