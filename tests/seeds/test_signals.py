"""What the references say of webhooks and the log as signal and record, and of single events."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.lanes import BASE, A, Lanes
from tests.fakes.lanes import play as play_lanes
from tests.fakes.receiver import Answer, receiving
from tests.fakes.world import PERMITS, ROADS, World, table
from tests.integration.running import Running, problem
from tests.seeds.conftest import Play
from tests.seeds.telling import SOURCE, all_seven, overdue

from ploti.model.ids import SubscriptionId
from ploti.server.service.deliver_due import claim_lanes
from ploti.server.service.read_catalogue import get_dataset
from ploti.server.service.read_events import read_events
from ploti.server.worker import deliveries
from ploti.server.worker.deliveries import DeliveryWorker


def test_an_event_is_a_short_message_about_one_dataset_r002(run: Play) -> None:
    """However many rows a version has: what there is to load is behind the links."""

    async def story(world: World) -> None:
        subscription = await all_seven(world)
        await world.push(table({f"k{n}": "deck" for n in range(60)}, columns="id,area"))
        for event in await world.events(subscription):
            assert len(json.dumps(event)) < 1_000
            assert isinstance(event["data"]["datasetId"], str)

    run(story)


def test_each_version_is_sent_as_one_of_updated_and_resync_required_r039_r018_r019(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        events = await world.events(await all_seven(world))
        versions = [
            each["data"]["version"]
            for each in events
            if each["type"].endswith(("updated", "resync_required"))
        ]
        assert versions == [1, 2, 3, 4]
        for data in (each["data"] for each in events):
            for number in (data.get("version"), data.get("previousVersion")):
                assert number is None or type(number) is int
            assert type(data.get("schemaVersion", "")) in {str, type(None)}
            for count in data.get("counts", {}).values():
                assert type(count) is int

    run(story)


def test_a_webhook_is_sent_to_when_it_happens_and_not_when_somebody_looks_r004(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker's next look by itself would be an hour later: the append alone calls it."""
    found_nothing = asyncio.Event()

    async def claim(*parts: Any, **free: Any) -> Any:
        claims = await claim_lanes(*parts, **free)
        if not claims:
            found_nothing.set()
        return claims

    monkeypatch.setattr(deliveries, "_LOOK", 3600.0)
    monkeypatch.setattr(deliveries, "claim_lanes", claim)

    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver, asyncio.timeout(60):
            await lanes.hook(receiver.url, await lanes.subscribe(A))
            worker = DeliveryWorker(lanes.parts)
            lanes.store.on_log(worker.ring)
            task = asyncio.create_task(worker.run())
            try:
                for _ in range(2):
                    await found_nothing.wait()
                    found_nothing.clear()
                    receiver.arrived.clear()
                    await lanes.release(A)
                    await receiver.arrived.wait()
            finally:
                task.cancel()
                await asyncio.wait([task])
                await worker.finish()
        assert [post.event["data"]["version"] for post in receiver.posts] == [1, 2]

    play_lanes(tmp_path, story)


def test_a_receiver_that_was_down_finds_every_event_in_the_log_and_knows_what_it_applied_r005_r143(
    tmp_path: Path,
) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            subscription = await lanes.subscribe(A)
            await lanes.hook(receiver.url, subscription)
            await lanes.release(A)
            await lanes.drain()
            applied = {post.event["id"] for post in receiver.posts}
            receiver.answer = lambda _: Answer(status=503)
            await lanes.release(A, A)
            await lanes.drain()
            receiver.posts.clear()
            log = await read_log(lanes, subscription)
            missed = [each["id"] for each in log[1:] if each["id"] not in applied]
            assert [each["data"]["version"] for each in log[1:]] == [1, 2, 3]
            assert len(missed) == 2
            receiver.answer = lambda _: Answer()
            await lanes.play_out()
            assert [post.event["id"] for post in receiver.posts] == missed

    play_lanes(tmp_path, story)


async def read_log(lanes: Lanes, subscription: SubscriptionId) -> list[dict[str, Any]]:
    page = await lanes.store.read(
        lambda tx: read_events(
            *(tx, lanes.subscriber, subscription),
            cursor=None,
            limit=100,
            types=frozenset(),
            base=BASE,
        )
    )
    found: list[dict[str, Any]] = json.loads(page.text)["events"]
    return found


def test_a_source_never_checked_is_stale_with_null_and_who_joins_later_reads_it_r044_r207_s08(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        await world.declare(check_every="24h", source=SOURCE)
        declared = world.clock.moment
        subscription = (await world.subscribe()).id
        await overdue(world)
        stale = (await world.events(subscription))[-1]
        assert stale["data"] == {
            "datasetId": PERMITS,
            "reason": "check_overdue",
            "lastCheckedAt": None,
        }
        late = (await world.subscribe()).id
        assert await world.told(late) == [("added", None)]
        shown = await world.read(lambda tx: get_dataset(tx, world.reader, PERMITS))
        assert (shown.last_checked_at, shown.next_check_by) == (None, declared)
        await world.push(table({"a": "deck"}))
        shown = await world.read(lambda tx: get_dataset(tx, world.reader, PERMITS))
        assert shown.last_checked_at is not None
        assert shown.next_check_by == shown.last_checked_at + timedelta(hours=24)

    run(story)


def test_a_change_that_leaves_membership_as_it_was_writes_nothing_s09(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        await world.declare(ROADS, topic="roads")
        subscription = (await world.subscribe(datasets=[PERMITS])).id
        await world.declare(title="Another title")
        await world.declare(place="us/ga")
        await world.declare(ROADS, topic="roads/county")
        assert await world.told(subscription) == [("added", None)]

    run(story)


def test_a_deleted_subscriptions_log_manifest_and_cursor_are_not_found_s42(api: Running) -> None:
    api.declare("ds_a")
    made = api.send("POST", "/v1/feeds/subscriptions", json={"datasets": ["ds_a"]}).json()
    path = f"/v1/feeds/subscriptions/{made['id']}"
    reads = [path, f"{path}/manifest", f"{path}/events", f"{path}/events?cursor=evt_000000000001"]
    assert {api.get(each).status_code for each in reads} == {200}
    assert api.send("DELETE", path).status_code == 204
    for each in reads:
        problem(api.get(each), 404, "not_found")
