"""Which events are written, in which order, and how they read."""

import json
from typing import Any

import msgspec
import pytest

from ploti.model.event import HoldReason, RemovedReason, read_event
from ploti.model.ids import DatasetId, SubscriptionId
from ploti.model.schema import Level, SchemaChange
from ploti.model.version import Counts, ResyncReason
from ploti.model.wire import Instant, plain
from ploti.server.eventlog.drafts import (
    Draft,
    Release,
    Standing,
    Waiting,
    held,
    joined,
    left,
    released,
)
from ploti.server.eventlog.render import Body, render

ORANGE = DatasetId("ds_orange_fl_building_permits")
SUBSCRIPTION = SubscriptionId("sub_8f3k2m")
BASE = "https://api.ploti.ai"
AT = "2026-10-18T06:13:02.000Z"
UPDATE = Release(
    dataset_id=ORANGE,
    version=43,
    previous_version=42,
    schema_version="2.1",
    schema_change=None,
    counts=Counts(added=212, changed=38, removed=3),
    reason=None,
)
MINOR = SchemaChange(
    from_="2.0",
    to="2.1",
    level=Level.MINOR,
    added=[],
    removed=[],
    nullable=["kind"],
    described=[],
    retyped=[],
    key_columns=None,
    geometry=None,
)


def rendered(draft: Draft, *, seq: int = 43) -> dict[str, Any]:
    body = Body(draft.type, AT, draft.dataset_id, draft.linked_version, draft.data)
    text = render(seq, subscription_id=SUBSCRIPTION, body=body, base=BASE)
    event: dict[str, Any] = json.loads(text)
    assert plain(read_event(event)) == event
    return event


def test_the_example_of_the_reference_is_written_as_it_stands_r026_r021_r022() -> None:
    (draft,) = released(UPDATE)
    version = f"{BASE}/v1/feeds/datasets/{ORANGE}/versions/43"
    expected = {
        "id": "evt_000000000043",
        "type": "feed.dataset.updated",
        "timestamp": AT,
        "subscriptionId": SUBSCRIPTION,
        "data": {
            "datasetId": ORANGE,
            "version": 43,
            "previousVersion": 42,
            "schemaVersion": "2.1",
            "counts": {"added": 212, "changed": 38, "removed": 3},
            "links": {
                "version": version,
                "schema": f"{BASE}/v1/feeds/datasets/{ORANGE}/schema?version=43",
            },
        },
    }
    event = rendered(draft)
    assert event == expected
    assert json.dumps(event) == json.dumps(expected)


def test_an_events_number_is_twelve_digits_and_nothing_else_stands_on_top_r011_r012() -> None:
    (draft,) = released(UPDATE)
    event = rendered(draft, seq=1)
    assert list(event) == ["id", "type", "timestamp", "subscriptionId", "data"]
    assert event["id"] == "evt_000000000001"


def test_a_schema_change_comes_right_before_its_version_and_names_it_r034_r037_s12() -> None:
    change, own = released(msgspec.structs.replace(UPDATE, schema_change=MINOR))
    data = rendered(change)["data"]
    assert list(data) == ["datasetId", "version", "schemaVersion", "schemaChange"]
    assert data["version"] == rendered(own)["data"]["version"] == 43
    assert data["schemaChange"]["from"] == "2.0"
    assert rendered(own)["type"] == "feed.dataset.updated"


def test_a_version_to_load_is_sent_as_resync_alone_r039_r040_s14() -> None:
    release = msgspec.structs.replace(UPDATE, reason=ResyncReason.SCHEMA_CHANGED)
    (draft,) = released(release)
    event = rendered(draft)
    assert event["type"] == "feed.dataset.resync_required"
    assert list(event["data"]) == ["datasetId", "version", "schemaVersion", "reason", "links"]


@pytest.mark.parametrize("reason", sorted({*ResyncReason} - {"first_version"}))
def test_a_schema_change_is_told_whatever_the_reason_of_the_event_after_it_r038_s12(
    reason: ResyncReason,
) -> None:
    release = msgspec.structs.replace(UPDATE, schema_change=MINOR, reason=reason)
    change, own = map(rendered, released(release))
    assert change["type"] == "feed.dataset.schema_changed"
    assert (own["type"], own["data"]["reason"]) == ("feed.dataset.resync_required", reason)
    assert change["data"]["version"] == own["data"]["version"]


@pytest.mark.parametrize("lost", ["previous_version", "counts"])
def test_a_version_that_can_be_neither_applied_nor_loaded_is_a_fault(lost: str) -> None:
    with pytest.raises(ValueError, match="no changes to apply"):
        released(msgspec.structs.replace(UPDATE, **{lost: None}))


def test_joining_names_the_version_to_load_r029_r030_s02() -> None:
    standing = Standing(dataset_id=ORANGE, version=42, schema_version="2.1", waiting=None)
    (draft,) = joined(standing)
    data = rendered(draft)["data"]
    assert list(data) == ["datasetId", "version", "schemaVersion", "links"]
    assert data["links"]["version"].endswith("/versions/42")


def test_joining_before_the_first_version_has_nulls_and_no_links_r031_s03() -> None:
    standing = Standing(dataset_id=ORANGE, version=None, schema_version=None, waiting=None)
    (draft,) = joined(standing)
    assert rendered(draft)["data"] == {
        "datasetId": ORANGE,
        "version": None,
        "schemaVersion": None,
    }


def test_joining_during_a_hold_is_followed_by_delayed_r049_r050_s01() -> None:
    waiting = Waiting(reason=HoldReason.DATA_CHECK, since=Instant.parse(AT))
    standing = Standing(dataset_id=ORANGE, version=None, schema_version=None, waiting=waiting)
    added, delayed = joined(standing)
    assert rendered(added)["type"] == "feed.dataset.added"
    assert rendered(delayed)["data"] == {
        "datasetId": ORANGE,
        "version": None,
        "reason": "data_check",
        "since": AT,
    }
    assert held(standing) == [delayed]
    assert held(msgspec.structs.replace(standing, waiting=None)) == []


def test_leaving_has_its_reason_and_no_links_r041_r042() -> None:
    (draft,) = left(ORANGE, RemovedReason.SUBSCRIPTION_CHANGED)
    event = rendered(draft)
    assert event["type"] == "feed.dataset.removed"
    assert event["data"] == {"datasetId": ORANGE, "reason": "subscription_changed"}
