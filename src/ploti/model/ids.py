"""Ids: opaque texts with a prefix, each kind a type of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NewType

WorkspaceId = NewType("WorkspaceId", str)
MemberId = NewType("MemberId", str)
KeyId = NewType("KeyId", str)
PlanId = NewType("PlanId", str)
DatasetId = NewType("DatasetId", str)
SubscriptionId = NewType("SubscriptionId", str)
EventId = NewType("EventId", str)
RecordId = NewType("RecordId", str)
HoldId = NewType("HoldId", str)
ProposalId = NewType("ProposalId", str)
WebhookId = NewType("WebhookId", str)
DeliveryId = NewType("DeliveryId", str)

START = EventId("evt_000000000000")
"""The cursor before the first event of a log."""

DATASET_FORM = re.compile(r"ds_[a-z0-9]+(?:_[a-z0-9]+)*")
EVENT_FORM = re.compile(r"evt_([0-9]{12})")
LONGEST_DATASET = 63
PLAN_FORM = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
LONGEST_PLAN = 63


def event_id(number: int) -> EventId:
    """The id of the event with this number in its subscription's log (R-012)."""
    return EventId("evt_" + str(number).zfill(12))


def event_ids(numbers: Sequence[int]) -> tuple[str, list[str]]:
    """The ids of events in two parts: what all begin with, and how each goes on.

    A page has many, most often one after the other: of a thousand such no text need be made.
    """
    if isinstance(numbers, range) and numbers.step == 1:
        thousand, first = divmod(numbers.start, 1000)
        if first + len(numbers) <= 1000:
            return "evt_" + str(thousand).zfill(9), _ENDS[first : first + len(numbers)]
    return "evt_", [str(number).zfill(12) for number in numbers]


_ENDS = [str(number).zfill(3) for number in range(1000)]


def event_number(cursor: str) -> int:
    """The number inside an event id; raises ValueError for a text that is none."""
    found = EVENT_FORM.fullmatch(cursor)
    if found is None:
        raise ValueError(f"'{cursor}' is no event id: evt_ and 12 digits, such as {START}")
    return int(found[1])


def dataset_id(text: str) -> DatasetId:
    """A dataset's id as its operator chose it; raises ValueError for another form."""
    if len(text) > LONGEST_DATASET or DATASET_FORM.fullmatch(text) is None:
        raise ValueError(
            f"'{text}' is no dataset id: ds_ and small letters, digits and single underscores, "
            f"{LONGEST_DATASET} characters at most, such as ds_orange_fl_building_permits"
        )
    return DatasetId(text)


def plan_id(text: str) -> PlanId:
    """A plan's id as its operator chose it; raises ValueError for another form."""
    if len(text) > LONGEST_PLAN or PLAN_FORM.fullmatch(text) is None:
        raise ValueError(
            f"'{text}' is no plan's id: small letters and digits, with single hyphens or "
            f"underscores between, {LONGEST_PLAN} characters at most, such as permits-only"
        )
    return PlanId(text)


def record_id(version: int, ordinal: int) -> RecordId:
    """The id of the record that came as number `ordinal` (from 0) of a version's new records."""
    return RecordId(f"rec_{version:08d}{ordinal:010d}")
