"""Which datasets a workspace may read, and with which answer others are refused (S-30 to S-32)."""

from __future__ import annotations

from collections.abc import Sequence

from ploti.errors import NotDeliverable, NotFound, NotSubscribed, OutsideCoverage
from ploti.model.ids import DatasetId
from ploti.server.membership.rights import Filing, Rights


def unknown_dataset(dataset_id: DatasetId) -> NotFound:
    """The answer for a dataset that was never declared."""
    return NotFound(f"There is no dataset {dataset_id}: the list of datasets has their ids")


def check_catalogue(filing: Filing, rights: Sequence[Rights], *, subscribed: bool) -> None:
    """Raise the first that is true: not deliverable, outside the coverage or the plan (S-31).

    What is delivered by recorded membership is open, and a plan that cannot be read closes nothing
    (S-32); one of several workspaces' rights is enough.
    """
    dataset_id = filing.dataset_id
    if not filing.deliverable:
        raise NotDeliverable(f"{dataset_id} is no longer delivered")
    if subscribed:
        return
    covering = [each for each in rights if each.covers(filing)]
    if not covering:
        raise OutsideCoverage(f"{dataset_id} lies outside this workspace's coverage")
    if all(each.opens(filing) is False for each in covering):
        raise OutsideCoverage(f"{dataset_id} is not opened by this workspace's plan")


def check_delivered(filing: Filing, rights: Sequence[Rights], *, subscribed: bool) -> None:
    """Raise as `check_catalogue` does, then where no subscription delivers the dataset (S-31).

    `subscribed` is recorded membership, not a fresh look at the selections (S-32).
    """
    check_catalogue(filing, rights, subscribed=subscribed)
    if not subscribed:
        raise NotSubscribed(
            f"No subscription of this workspace delivers {filing.dataset_id}: create or change one"
        )
