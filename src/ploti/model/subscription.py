"""A subscription: a standing choice of datasets by places, topics and names."""

from __future__ import annotations

from enum import StrEnum

from ploti.model.ids import DatasetId, SubscriptionId
from ploti.model.wire import UNSET, Instant, Unset, Value


class Selection(Value, kw_only=True):
    """What a subscription chooses (S-35); places and topics are paths such as `us/fl/orange`.

    A list has 1,000 entries at most, and a path 200 characters.
    """

    places: list[str] = []
    topics: list[str] = []
    datasets: list[DatasetId] = []


class NewSubscription(Selection, kw_only=True):
    """The body that creates a subscription."""

    name: str = ""


class SubscriptionPatch(Value, kw_only=True):
    """A JSON merge patch of a subscription: what is left out stays, what is null is emptied."""

    name: str | Unset | None = UNSET
    places: list[str] | Unset | None = UNSET
    topics: list[str] | Unset | None = UNSET
    datasets: list[DatasetId] | Unset | None = UNSET


class Subscription(Selection, kw_only=True):
    """A subscription of the workspace."""

    id: SubscriptionId
    name: str
    created_at: Instant


class Obstacle(StrEnum):
    """Why a subscription does not deliver a dataset; the first that is true counts (S-33)."""

    NOT_DELIVERABLE = "not_deliverable"
    NOT_MATCHED = "not_matched"
    OUTSIDE_COVERAGE = "outside_coverage"
    OUTSIDE_PLAN = "outside_plan"
    PLAN_UNREADABLE = "plan_unreadable"


class Excluded(Value, kw_only=True):
    """A dataset that a selection matches and that it would not deliver."""

    dataset_id: DatasetId
    reason: Obstacle


class Preview(Value, kw_only=True):
    """What a selection would deliver now, by id, and what else it matches.

    `unknown` are listed ids that no dataset has.
    """

    datasets: list[DatasetId]
    excluded: list[Excluded]
    unknown: list[DatasetId]
