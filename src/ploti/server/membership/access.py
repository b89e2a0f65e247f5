"""Which datasets a workspace may read, and with which answer others are refused (S-30, S-31)."""

from __future__ import annotations

from ploti.errors import NotDeliverable, NotFound, NotSubscribed
from ploti.model.ids import DatasetId


def unknown_dataset(dataset_id: DatasetId) -> NotFound:
    """The answer for a dataset that was never declared."""
    return NotFound(f"There is no dataset {dataset_id}: the list of datasets has their ids")


def check_catalogue(dataset_id: DatasetId, *, deliverable: bool) -> None:
    """Raise NotDeliverable for a dataset that is not in the catalogue any more."""
    if not deliverable:
        raise NotDeliverable(f"{dataset_id} is no longer delivered")


def check_delivered(dataset_id: DatasetId, *, deliverable: bool, subscribed: bool) -> None:
    """Raise the first that is true: not deliverable, not subscribed (S-31).

    `subscribed` is recorded membership, not a fresh look at the selections (S-32).
    """
    check_catalogue(dataset_id, deliverable=deliverable)
    if not subscribed:
        raise NotSubscribed(
            f"No subscription of this workspace delivers {dataset_id}: create or change one"
        )
