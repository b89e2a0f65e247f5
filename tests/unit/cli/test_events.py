"""An event on one line."""

import pytest

from ploti.cli.events import describe
from ploti.model.event import (
    Added,
    Delayed,
    Event,
    EventType,
    FeedData,
    HoldReason,
    Removed,
    RemovedReason,
    ResyncRequired,
    SchemaChanged,
    Stale,
    StaleReason,
    UnknownEvent,
    Updated,
)
from ploti.model.ids import DatasetId, SubscriptionId, event_id
from ploti.model.schema import Level, SchemaChange
from ploti.model.version import Counts, ResyncReason
from ploti.model.wire import Instant

NOW = Instant.parse("2026-10-18T06:13:02Z")
A = DatasetId("ds_a")
CHANGE = SchemaChange(
    from_="1.0",
    to="2.0",
    level=Level.MAJOR,
    added=[],
    removed=[],
    nullable=[],
    described=[],
    retyped=[],
    key_columns=None,
    geometry=None,
)
COUNTS = Counts(added=212, changed=38, removed=3)
SAID: list[tuple[FeedData, str]] = [
    (Added(dataset_id=A, version=None, schema_version=None), "before its first version"),
    (Added(dataset_id=A, version=4, schema_version="1.0"), "at version 4"),
    (
        Updated(dataset_id=A, version=4, previous_version=2, schema_version="1.0", counts=COUNTS),
        "version 4 after 2, +212 ~38 -3",
    ),
    (
        SchemaChanged(dataset_id=A, version=5, schema_version="2.0", schema_change=CHANGE),
        "MAJOR, 2.0 with version 5",
    ),
    (
        ResyncRequired(
            dataset_id=A, version=5, schema_version="2.0", reason=ResyncReason.SCHEMA_CHANGED
        ),
        "load version 5: schema_changed",
    ),
    (Removed(dataset_id=A, reason=RemovedReason.PLAN_CHANGED), "plan_changed"),
    (
        Stale(dataset_id=A, reason=StaleReason.CHECK_OVERDUE, last_checked_at=None),
        "check_overdue",
    ),
    (
        Delayed(dataset_id=A, version=4, reason=HoldReason.DATA_CHECK, since=NOW),
        "a version waits for review since 2026-10-18T06:13:02.000Z: data_check",
    ),
]


@pytest.mark.parametrize(("data", "said"), SAID)
def test_every_kind_of_event_is_told_in_a_few_words(data: FeedData, said: str) -> None:
    event = Event(
        id=event_id(7),
        type=data.type,
        timestamp=NOW,
        subscription_id=SubscriptionId("sub_a"),
        data=data,
    )
    kind = data.type.value.removeprefix("feed.dataset.")
    assert describe(event) == ("evt_000000000007", NOW, "ds_a", kind, said)


def test_all_types_are_told() -> None:
    assert {data.type for data, _ in SAID} == set(EventType)


def test_an_event_of_a_newer_server_is_shown_by_its_name_s50() -> None:
    event = UnknownEvent(
        id=event_id(7),
        type="feed.dataset.renamed",
        timestamp=NOW,
        subscription_id=SubscriptionId("sub_a"),
        data={"datasetId": "ds_a"},
    )
    assert describe(event) == ("evt_000000000007", NOW, "ds_a", "feed.dataset.renamed")
