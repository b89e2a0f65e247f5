"""What the references say of an event's form and data, sentence by sentence."""

from __future__ import annotations

import re
from typing import Any

from tests.fakes.world import BASE, PERMITS, World, table
from tests.seeds.conftest import Play
from tests.seeds.telling import WIDER, all_seven, of_type

from ploti.model.event import EventType

DATA = {
    "added": ["datasetId", "version", "schemaVersion"],
    "updated": ["datasetId", "version", "previousVersion", "schemaVersion", "counts", "links"],
    "schema_changed": ["datasetId", "version", "schemaVersion", "schemaChange"],
    "resync_required": ["datasetId", "version", "schemaVersion", "reason", "links"],
    "removed": ["datasetId", "reason"],
    "stale": ["datasetId", "reason", "lastCheckedAt"],
    "delayed": ["datasetId", "version", "reason", "since"],
}


def test_there_are_seven_types_and_each_begins_with_feed_r013_r014_r027(run: Play) -> None:
    async def story(world: World) -> None:
        events = await world.events(await all_seven(world))
        assert {each["type"] for each in events} == {f"feed.dataset.{name}" for name in DATA}
        assert {str(each) for each in EventType} == {f"feed.dataset.{name}" for name in DATA}

    run(story)


def test_an_event_has_id_type_timestamp_subscription_and_data_and_no_more_r009_r011(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        for event in await world.events(await all_seven(world)):
            assert list(event) == ["id", "type", "timestamp", "subscriptionId", "data"]

    run(story)


def test_ids_and_times_have_the_forms_of_the_reference_r012_r015_r016(run: Play) -> None:
    async def story(world: World) -> None:
        subscription = await all_seven(world)
        events = await world.events(subscription)
        for number, event in enumerate(events, start=1):
            assert event["id"] == f"evt_{number:012d}"
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event["timestamp"])
            assert event["subscriptionId"] == subscription
            assert re.fullmatch(r"sub_[0-9a-z]+", subscription)

    run(story)


def test_data_is_exactly_what_its_type_lists_in_that_order_r017_r029_r033_r035_r040_r042_r044_r047(
    run: Play,
) -> None:
    """S-01."""

    async def story(world: World) -> None:
        for event in await world.events(await all_seven(world)):
            name = event["type"].rpartition(".")[2]
            fields = DATA[name]
            if name == "added" and event["data"]["version"] is not None:
                fields = [*fields, "links"]
            assert list(event["data"]) == fields
            assert event["data"]["datasetId"] == PERMITS

    run(story)


def test_versions_are_whole_numbers_and_schema_versions_text_r018_r019(run: Play) -> None:
    async def story(world: World) -> None:
        events = await world.events(await all_seven(world))
        (first, _) = of_type(events, "updated")
        data = first["data"]
        assert (data["version"], data["previousVersion"]) == (2, 1)
        assert re.fullmatch(r"\d+\.\d+", data["schemaVersion"])
        assert data["counts"] == {"added": 0, "changed": 1, "removed": 0}

    run(story)


def test_links_are_two_absolute_addresses_of_the_api_r020_r021_r022(run: Play) -> None:
    async def story(world: World) -> None:
        events = await world.events(await all_seven(world))
        linked = [each for each in events if "links" in each["data"]]
        assert linked
        for event in linked:
            number = event["data"]["version"]
            dataset = f"{BASE}/v1/feeds/datasets/{PERMITS}"
            assert event["data"]["links"] == {
                "version": f"{dataset}/versions/{number}",
                "schema": f"{dataset}/schema?version={number}",
            }

    run(story)


def test_a_minor_change_is_told_before_the_updated_of_the_same_version_r034_r037_r038_r056(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = (await world.subscribe()).id
        await world.push(table({"a": "deck"}))
        await world.push(WIDER)
        changed, updated = (await world.events(subscription))[-2:]
        assert (changed["type"], updated["type"]) == (
            "feed.dataset.schema_changed",
            "feed.dataset.updated",
        )
        assert changed["data"]["version"] == updated["data"]["version"] == 2
        assert changed["data"]["schemaVersion"] == updated["data"]["schemaVersion"] == "1.1"

    run(story)


def test_a_major_change_is_told_before_a_reload_that_has_it_as_its_reason_r038_r055(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        events = await world.events(await all_seven(world))
        at = next(
            number
            for number, each in enumerate(events)
            if each["type"].endswith("schema_changed")
            and each["data"]["schemaChange"]["level"] == "MAJOR"
        )
        assert events[at + 1]["type"] == "feed.dataset.resync_required"
        assert events[at + 1]["data"]["reason"] == "schema_changed"
        assert events[at + 1]["data"]["version"] == events[at]["data"]["version"]

    run(story)


def test_a_schema_change_is_measured_from_the_last_released_version_r036_s12(run: Play) -> None:
    """What was discarded in between is not measured from, and its number is used again."""

    async def story(world: World) -> None:
        await world.declare()
        subscription = (await world.subscribe()).id
        await world.push(table({"a": "deck"}))
        await world.push("id,other\na,x\n")
        (hold,) = await world.holds()
        await world.discard(hold.id)
        await world.push(WIDER)
        changed: dict[str, Any] = of_type(await world.events(subscription), "schema_changed")[-1]
        change = changed["data"]["schemaChange"]
        assert (change["from"], change["to"], change["level"]) == ("1.0", "1.1", "MINOR")
        assert [each["name"] for each in change["added"]] == ["area"]
        assert change["removed"] == []

    run(story)


def test_stale_has_the_one_reason_check_overdue_r071_r044(run: Play) -> None:
    async def story(world: World) -> None:
        (stale,) = of_type(await world.events(await all_seven(world)), "stale")
        assert stale["data"]["reason"] == "check_overdue"

    run(story)


def test_the_time_of_an_event_is_that_of_its_append_s10(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = (await world.subscribe()).id
        before = str(world.clock.moment)
        await world.push(table({"a": "deck"}))
        event = (await world.events(subscription))[-1]
        assert before < event["timestamp"] <= str(world.clock.moment)

    run(story)
