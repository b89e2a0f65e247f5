"""What a selection takes in, and what follows when it or a dataset's filing changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

from ploti.errors import Fault, InvalidInput
from ploti.model.event import RemovedReason
from ploti.model.ids import DatasetId, dataset_id
from ploti.model.subscription import Selection
from ploti.model.wire import Value
from ploti.server.sources import fields

T = TypeVar("T")

MOST_ENTRIES = 1_000
"""Of each list of a selection."""


class Filing(Value, kw_only=True):
    """Where a dataset is filed, and whether it is delivered at all."""

    dataset_id: DatasetId
    place: str
    topic: str
    deliverable: bool


class Move(Value, kw_only=True):
    """What a change of a selection or of a filing does to one subscription, by dataset id."""

    joins: list[DatasetId]
    leaves: list[tuple[DatasetId, RemovedReason]]


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


def takes_in(listed: str, path: str) -> bool:
    """Whether a listed path takes in another: itself, and all below it."""
    return path == listed or path.startswith(f"{listed}/")


def matches(selection: Selection, filing: Filing) -> bool:
    """Whether the selection chooses the dataset (S-35)."""
    if filing.dataset_id in selection.datasets:
        return True
    if not (selection.places or selection.topics):
        return False
    return _takes_in(selection.places, filing.place) and _takes_in(selection.topics, filing.topic)


def delivers(selection: Selection, filing: Filing) -> bool:
    """Whether a subscription with this selection delivers the dataset."""
    return filing.deliverable and matches(selection, filing)


def move(
    selection: Selection, filings: Iterable[Filing], *, delivered: Collection[DatasetId]
) -> Move:
    """What joins and what leaves a subscription that delivers `delivered` so far."""
    joins: list[DatasetId] = []
    leaves: list[tuple[DatasetId, RemovedReason]] = []
    for filing in sorted(filings, key=lambda filing: filing.dataset_id):
        wanted = delivers(selection, filing)
        if wanted and filing.dataset_id not in delivered:
            joins.append(filing.dataset_id)
        elif not wanted and filing.dataset_id in delivered:
            leaves.append((filing.dataset_id, removed_reason(filing)))
    return Move(joins=joins, leaves=leaves)


def removed_reason(filing: Filing) -> RemovedReason:
    """Why a dataset that is not delivered any more left: the first that is true (S-33)."""
    if not filing.deliverable:
        return RemovedReason.NO_LONGER_DELIVERABLE
    return RemovedReason.SUBSCRIPTION_CHANGED


def _takes_in(listed: Sequence[str], path: str) -> bool:
    return not listed or any(takes_in(each, path) for each in listed)


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
