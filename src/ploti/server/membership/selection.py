"""What a selection takes in, and what follows when it, a filing, coverage or a plan changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

from ploti.errors import Fault, InvalidInput
from ploti.model.event import RemovedReason
from ploti.model.ids import DatasetId, dataset_id
from ploti.model.subscription import Obstacle, Selection
from ploti.model.wire import Value
from ploti.server.membership.rights import Filing, Rights, lies_in
from ploti.server.sources import fields

T = TypeVar("T")

MOST_ENTRIES = 1_000
"""Of each list of a selection."""


REASONS = {
    Obstacle.NOT_DELIVERABLE: RemovedReason.NO_LONGER_DELIVERABLE,
    Obstacle.NOT_MATCHED: RemovedReason.SUBSCRIPTION_CHANGED,
    Obstacle.OUTSIDE_COVERAGE: RemovedReason.LEFT_COVERAGE,
    Obstacle.OUTSIDE_PLAN: RemovedReason.PLAN_CHANGED,
}
"""Why a dataset that meets such an obstacle leaves a subscription (R-065 to R-069)."""


class Move(Value, kw_only=True):
    """What a change does to one subscription, by dataset id.

    `unsure` tells that something could not be decided, since the plan cannot be read (S-34).
    """

    joins: list[DatasetId]
    leaves: list[tuple[DatasetId, RemovedReason]]
    unsure: bool = False


def checked(selection: Selection) -> Selection:
    """The selection with each entry once.

    Raises InvalidInput for an entry that is no path or id, for a list that is too long, and where
    all three lists are empty.
    """
    faults: list[Fault] = []
    found = Selection(
        places=_read("places", selection.places, fields.path, faults=faults),
        topics=_read("topics", selection.topics, fields.path, faults=faults),
        datasets=_read("datasets", selection.datasets, dataset_id, faults=faults),
    )
    if not (selection.places or selection.topics or selection.datasets):
        faults.append(
            Fault("datasets", "is empty, and so are places and topics: name at least one")
        )
    if faults:
        field, message = faults[0]
        raise InvalidInput(f"The selection cannot be taken: {field} {message}", errors=(*faults,))
    return found


def matches(selection: Selection, filing: Filing) -> bool:
    """Whether the selection chooses the dataset (S-35)."""
    if filing.dataset_id in selection.datasets:
        return True
    if not (selection.places or selection.topics):
        return False
    return _takes_in(selection.places, filing.place) and _takes_in(selection.topics, filing.topic)


def obstacle(selection: Selection, filing: Filing, rights: Rights) -> Obstacle | None:
    """Why a subscription does not deliver the dataset: the first that is true (S-33)."""
    if not filing.deliverable:
        return Obstacle.NOT_DELIVERABLE
    if not matches(selection, filing):
        return Obstacle.NOT_MATCHED
    if not rights.covers(filing):
        return Obstacle.OUTSIDE_COVERAGE
    if (open_by_plan := rights.opens(filing)) is None:
        return Obstacle.PLAN_UNREADABLE
    return None if open_by_plan else Obstacle.OUTSIDE_PLAN


def move(
    selection: Selection,
    filings: Iterable[Filing],
    *,
    rights: Rights,
    delivered: Collection[DatasetId],
) -> Move:
    """What joins and what leaves a subscription that delivers `delivered` so far.

    A dataset of which only an unreadable plan could tell stays as it is (R-070, S-34).
    """
    joins: list[DatasetId] = []
    leaves: list[tuple[DatasetId, RemovedReason]] = []
    unsure = False
    for filing in sorted(filings, key=lambda filing: filing.dataset_id):
        found = obstacle(selection, filing, rights)
        is_delivered = filing.dataset_id in delivered
        unsure = unsure or found is Obstacle.PLAN_UNREADABLE
        if found is None and not is_delivered:
            joins.append(filing.dataset_id)
        elif is_delivered and found in REASONS:
            leaves.append((filing.dataset_id, REASONS[found]))
    return Move(joins=joins, leaves=leaves, unsure=unsure)


def _takes_in(listed: Sequence[str], path: str) -> bool:
    return not listed or lies_in(listed, path)


def _read(
    field: str, entries: Sequence[str], read: Callable[[str], T], *, faults: list[Fault]
) -> list[T]:
    if len(entries) > MOST_ENTRIES:
        faults.append(Fault(field, f"has {len(entries)} entries: {MOST_ENTRIES} at most"))
        return []
    found: dict[T, None] = {}
    for entry in entries:
        try:
            found[read(entry)] = None
        except ValueError as error:
            faults.append(Fault(field, f"cannot be taken: {error}"))
    return list(found)
