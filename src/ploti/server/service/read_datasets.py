"""Datasets with their declarations, for staff."""

from __future__ import annotations

from ploti.model.admin import AdminDataset, AdminDatasetPage
from ploti.model.ids import DatasetId
from ploti.server.membership.access import unknown_dataset
from ploti.server.ports.store import Transaction
from ploti.server.service.page_lists import check_limit, cut, dataset_cursor
from ploti.server.service.show_dataset import show_to_staff


def list_admin_datasets(tx: Transaction, *, cursor: str | None, limit: int) -> AdminDatasetPage:
    """All datasets by id."""
    check_limit(limit)
    found = tx.datasets.page(workspaces=(), after=dataset_cursor(cursor), limit=limit + 1)
    page, next_cursor = cut(found, limit=limit, cursor=lambda listed: listed.dataset.id)
    building = {each.dataset_id: each for each in reversed(tx.overview.building())}
    shown = [show_to_staff(listed, building.get(listed.dataset.id)) for listed in page]
    return AdminDatasetPage(datasets=shown, next_cursor=next_cursor)


def get_admin_dataset(tx: Transaction, dataset_id: DatasetId) -> AdminDataset:
    """One dataset; raises NotFound."""
    listed = tx.datasets.listed(dataset_id, workspaces=())
    if listed is None:
        raise unknown_dataset(dataset_id)
    return show_to_staff(listed, next(iter(tx.overview.building(dataset_id)), None))
