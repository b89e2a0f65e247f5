"""Subscriptions, what they deliver, and the logs that say so."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.manifests import read_manifest
from tests.fakes.plans import ALL_OPEN
from tests.fakes.world import BASE, PERMITS, ROADS, World, play, table

from ploti.errors import InvalidInput, NotFound, Unauthenticated
from ploti.model.account import DEFAULT_PLAN
from ploti.model.event import EventType
from ploti.model.ids import MemberId, SubscriptionId, WorkspaceId
from ploti.model.subscription import SubscriptionPatch
from ploti.model.wire import convert
from ploti.server.membership.principal import Principal
from ploti.server.ports.rows import WorkspaceRow
from ploti.server.service.authenticate import authenticate
from ploti.server.service.change_subscription import delete_subscription, update_subscription
from ploti.server.service.read_events import read_events
from ploti.server.service.read_subscriptions import get_subscription, list_subscriptions
from ploti.server.service.set_up import set_up

Play = Callable[[Callable[[World], Awaitable[None]]], None]


@pytest.fixture
def run(tmp_path: Path) -> Play:
    return lambda story: play(tmp_path, story)


async def patch(world: World, subscription: SubscriptionId, **changes: Any) -> None:
    now = world.clock.now()
    await world.write(
        lambda tx: update_subscription(
            tx,
            world.subscriber,
            subscription,
            SubscriptionPatch(**changes),
            plans=ALL_OPEN,
            now=now,
        )
    )


async def other_workspace(world: World) -> Principal:
    workspace, member = WorkspaceId("ws_other"), MemberId("mem_other")
    now = world.clock.now()
    row = WorkspaceRow(
        id=workspace,
        name="other",
        coverage=None,
        plan_id=DEFAULT_PLAN,
        public=False,
        created_at=now,
    )
    await world.write(lambda tx: tx.workspaces.add(row))
    return Principal(
        workspace_id=workspace,
        member_id=member,
        key_id=world.staff.key_id,
        permissions=frozenset({"feeds"}),
    )


def test_a_new_log_begins_with_added_for_all_that_is_delivered_s09_r028(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare(ROADS, place="us/ga", topic="roads")
        await world.declare(PERMITS)
        await world.push(table({"a": "deck"}))
        subscription = await world.subscribe(places=["us"])
        first, second = await world.events(subscription.id)
        assert [first["id"], second["id"]] == ["evt_000000000001", "evt_000000000002"]
        assert first["data"] == {
            "datasetId": PERMITS,
            "version": 1,
            "schemaVersion": "1.0",
            "links": {
                "version": f"{BASE}/v1/feeds/datasets/{PERMITS}/versions/1",
                "schema": f"{BASE}/v1/feeds/datasets/{PERMITS}/schema?version=1",
            },
        }
        assert second["data"] == {"datasetId": ROADS, "version": None, "schemaVersion": None}

    run(story)


def test_a_change_of_the_selection_writes_removed_then_added_r068(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare(PERMITS)
        await world.declare(ROADS, place="us/ga", topic="roads")
        subscription = await world.subscribe(datasets=[PERMITS])
        await patch(world, subscription.id, datasets=[ROADS])
        assert await world.told(subscription.id) == [
            ("added", None),
            ("removed", "subscription_changed"),
            ("added", None),
        ]
        await patch(world, subscription.id, name="roads", topics=["roads"])
        assert len(await world.events(subscription.id)) == 3
        changed = await world.read(
            lambda tx: get_subscription(tx, world.subscriber, subscription.id)
        )
        assert (changed.name, changed.topics, changed.datasets) == ("roads", ["roads"], [ROADS])

    run(story)


def test_null_in_a_merge_patch_empties_what_it_names(run: Play) -> None:
    """RFC 7396, which a PATCH is."""

    async def story(world: World) -> None:
        subscription = await world.subscribe(datasets=[PERMITS], places=["us"], topics=["roads"])
        nothing = convert({"name": None, "places": None, "topics": None}, SubscriptionPatch)
        now = world.clock.now()
        changed = await world.write(
            lambda tx: update_subscription(
                tx, world.subscriber, subscription.id, nothing, plans=ALL_OPEN, now=now
            )
        )
        assert (changed.name, changed.places, changed.topics) == ("", [], [])
        assert changed.datasets == [PERMITS]
        with pytest.raises(InvalidInput, match="name at least one"):
            await patch(world, subscription.id, datasets=None)

    run(story)


def test_a_dataset_declared_or_filed_anew_joins_and_leaves_r028_r041_r068_r204(run: Play) -> None:
    async def story(world: World) -> None:
        permits = await world.subscribe(topics=["permits"])
        florida = await world.subscribe(places=["us/fl"], topics=["permits"])
        await world.declare()
        await world.push(table({"a": "deck"}))
        await world.declare(place="us/ga", title="Permits of Georgia")
        assert await world.told(permits.id) == [
            ("added", None),
            ("resync_required", 1, "first_version"),
        ]
        assert (await world.told(florida.id))[2:] == [("removed", "subscription_changed")]
        await world.declare(topic="permits")
        assert (await world.told(florida.id))[3:] == [("added", 1)]

    run(story)


def test_after_removed_nothing_more_of_the_dataset_is_written_s29(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = await world.subscribe(places=["us/fl"])
        await world.declare(place="us/ga")
        await world.push(table({"a": "deck"}))
        assert await world.told(subscription.id) == [
            ("added", None),
            ("removed", "subscription_changed"),
        ]

    run(story)


def test_a_selection_that_cannot_be_meant_is_refused_and_changes_nothing(run: Play) -> None:
    async def story(world: World) -> None:
        with pytest.raises(InvalidInput, match="name at least one"):
            await world.subscribe(name="nothing")
        subscription = await world.subscribe(places=["us/fl"])
        with pytest.raises(InvalidInput, match="places cannot be taken"):
            await patch(world, subscription.id, places=["US/FL"])
        kept = await world.read(lambda tx: get_subscription(tx, world.subscriber, subscription.id))
        assert kept == subscription

    run(story)


def test_another_workspaces_subscription_is_not_found(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        stranger = await other_workspace(world)
        mine = await world.subscribe()
        theirs = await world.subscribe(by=stranger, datasets=[PERMITS])
        page = await world.read(lambda tx: list_subscriptions(tx, stranger, cursor=None, limit=10))
        assert page.subscriptions == [theirs]
        for attempt in (
            lambda tx: get_subscription(tx, stranger, mine.id),
            lambda tx: read_manifest(tx, stranger, mine.id, base=BASE, now=world.clock.now()),
            lambda tx: delete_subscription(tx, stranger, mine.id, now=world.clock.now()),
        ):
            with pytest.raises(NotFound):
                await world.write(attempt)

    run(story)


def test_a_deleted_subscription_and_its_log_are_not_found_s42(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription, other = await world.subscribe(), await world.subscribe()
        now = world.clock.now()
        await world.write(
            lambda tx: delete_subscription(tx, world.subscriber, subscription.id, now=now)
        )
        with pytest.raises(NotFound):
            await world.events(subscription.id)
        await world.push(table({"a": "deck"}))
        assert len(await world.events(other.id)) == 2
        assert await world.read(lambda tx: tx.log.last_numbers([subscription.id, other.id])) == {
            other.id: 2
        }

    run(story)


def test_subscriptions_are_listed_oldest_first_in_pages(run: Play) -> None:
    async def story(world: World) -> None:
        made = [(await world.subscribe(name=str(n), topics=["permits"])).name for n in range(5)]
        seen, cursor = [], None
        for _ in range(3):
            page = await world.read(
                lambda tx, cursor=cursor: list_subscriptions(
                    tx, world.subscriber, cursor=cursor, limit=2
                )
            )
            seen += [each.name for each in page.subscriptions]
            cursor = page.next_cursor
        assert (seen, cursor) == (made, None)
        for wrong in ("", "x", "sub_x", "!!!"):
            with pytest.raises(InvalidInput, match="cursor"):
                await world.read(
                    lambda tx, wrong=wrong: list_subscriptions(
                        tx, world.subscriber, cursor=wrong, limit=2
                    )
                )

    run(story)


def test_a_manifest_is_one_moment_and_its_cursor_reads_on_r137_r121(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare(PERMITS)
        await world.declare(ROADS, topic="roads")
        await world.push(table({"a": "deck"}))
        subscription = await world.subscribe(places=["us"])
        now = world.clock.now()
        manifest = await world.read(
            lambda tx: read_manifest(tx, world.subscriber, subscription.id, base=BASE, now=now)
        )
        permits, roads = manifest.datasets
        assert manifest.event_cursor == "evt_000000000002"
        assert (permits.version, permits.schema_version, permits.row_count) == (1, "1.0", 1)
        assert permits.content_digest is not None
        assert (roads.dataset_id, roads.version, roads.content_digest) == (ROADS, None, None)
        await world.push(table({"a": "shed"}))
        (after,) = await world.events(subscription.id, after=manifest.event_cursor)
        assert after["data"]["previousVersion"] == 1

    run(story)


def test_a_page_ends_at_its_limit_and_an_empty_one_moves_on_r130_r132_s40(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = await world.subscribe()
        for kind in ("deck", "shed", "pool"):
            await world.push(table({"a": kind}))

        async def page(cursor: str | None, limit: int, *types: EventType) -> tuple[int, int, int]:
            found = await world.read(
                lambda tx: read_events(
                    tx,
                    world.subscriber,
                    subscription.id,
                    cursor=cursor,
                    limit=limit,
                    types=frozenset(types),
                    base=BASE,
                )
            )
            return found.cursor, found.next_cursor, found.text.count(b'"timestamp"')

        assert await page(None, 3) == (0, 3, 3)
        assert await page("evt_000000000003", 3) == (3, 4, 1)
        assert await page("evt_000000000004", 3) == (4, 4, 0)
        assert await page(None, 10, EventType.REMOVED) == (0, 4, 0)
        assert await page(None, 1, EventType.UPDATED) == (0, 3, 1)
        assert await page("evt_000000000003", 1, EventType.UPDATED) == (3, 4, 1)
        with pytest.raises(InvalidInput, match="past this log's newest"):
            await page("evt_000000000005", 3)
        for limit in (0, 501):
            with pytest.raises(InvalidInput, match="limit"):
                await page(None, limit)

    run(story)


def test_the_bell_rings_once_the_events_can_be_read(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = await world.subscribe()
        loop, rung = asyncio.get_running_loop(), asyncio.Event()
        world.store.on_log(lambda: loop.call_soon_threadsafe(rung.set))
        await world.declare(title="Only another title")
        await asyncio.sleep(0)
        assert not rung.is_set()
        await world.push(table({"a": "deck"}))
        await asyncio.wait_for(rung.wait(), 10)
        assert await world.read(lambda tx: tx.log.last_numbers([subscription.id])) == {
            subscription.id: 2
        }

    run(story)


def test_a_set_up_gives_two_keys_once_and_an_unknown_key_is_refused_r170(run: Play) -> None:
    async def story(world: World) -> None:
        assert world.staff.permissions == {"feeds", "webhooks", "admin"}
        assert world.subscriber.permissions == {"feeds", "webhooks"}
        now = world.clock.now()
        assert await world.write(lambda tx: set_up(tx, ids=world.ids, now=now)) is None
        with pytest.raises(Unauthenticated):
            await world.read(lambda tx: authenticate(tx, "ploti_nothing", now=now))

    run(story)
