"""What the references say of who may ask for what, and how far back."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.serving import Server, served
from tests.fakes.world import PERMITS, World, play, table
from tests.integration.running import Running, problem
from tests.integration.test_api_accounts import make_key, make_member, make_workspace
from tests.integration.test_services_subscriptions import other_workspace
from tests.seeds.conftest import Play
from tests.seeds.telling import choose

from ploti.errors import NotSubscribed
from ploti.model.event import EventType
from ploti.model.version import Version
from ploti.model.wire import Instant
from ploti.server.membership.principal import Reader
from ploti.server.ports.store import Transaction
from ploti.server.service.prune_old import prune
from ploti.server.service.read_version import find_listing, get_digest, get_version


def test_a_version_is_answered_while_any_subscription_of_the_workspace_has_it_r025_s30(
    run: Play,
) -> None:
    """Its files, its changes and its digest alike, and again once it was added again."""

    async def story(world: World) -> None:
        await world.declare()
        told, other = (await world.subscribe()).id, (await world.subscribe()).id
        await world.subscribe(by=await other_workspace(world), datasets=[PERMITS])
        await world.push(table({"a": "deck"}))
        await world.push(table({"a": "pool"}))
        (event,) = (await world.events(told))[-1:]
        number = event["data"]["version"]
        await choose(world, told, topics=["none"], datasets=[])
        await ask_all(world, world.reader, number)
        await choose(world, other, topics=["none"], datasets=[])
        for ask in asking(world, world.reader, number):
            with pytest.raises(NotSubscribed):
                await world.read(ask)
        await choose(world, other, datasets=[PERMITS])
        await ask_all(world, world.reader, number)

    run(story)


def asking(world: World, reader: Reader, number: int) -> list[Any]:
    now = world.clock.now()

    def version(tx: Transaction) -> Version:
        return get_version(*(tx, reader, PERMITS, number), format="csv", blobs=world.blobs, now=now)

    return [
        version,
        lambda tx: find_listing(tx, reader, PERMITS, number),
        lambda tx: get_digest(tx, reader, PERMITS, number),
    ]


async def ask_all(world: World, reader: Reader, number: int) -> None:
    for ask in asking(world, reader, number):
        assert await world.read(ask)


def test_who_stays_within_90_days_catches_up_by_changes_and_no_event_names_a_lost_file_r007_s44(
    tmp_path: Path,
) -> None:
    """A version a day for 95 days: on each, all that the log still tells of can be got."""

    async def story(world: World) -> None:
        await world.declare()
        subscription = (await world.subscribe()).id
        await world.push(table({"a": "0"}))
        first = "evt_000000000002"
        for day in range(1, 96):
            world.clock.moment = Instant.of(world.clock.moment + timedelta(days=1))
            now = world.clock.now()
            assert await world.write(lambda tx, now=now: prune(tx, now=now)) is None
            await world.push(table({"a": str(day)}))
            if day == 89:
                await assert_chain(world, await world.events(subscription, after=first), held=1)
        cursor = f"evt_{97 - 89:012d}"
        await assert_chain(world, await world.events(subscription, after=cursor), held=7)

    play(tmp_path, story)


async def assert_chain(world: World, events: list[dict[str, Any]], *, held: int) -> None:
    """Each event is an `updated` of the version before, with changes that are kept."""
    for event in events:
        assert event["type"] == EventType.UPDATED
        assert event["data"]["previousVersion"] == held
        held = event["data"]["version"]
        assert await world.read(
            lambda tx, number=held: find_listing(tx, world.reader, PERMITS, number)
        )
    assert held == (await world.read(lambda tx: tx.datasets.get(PERMITS))).current_version  # type: ignore[union-attr]


def test_every_call_of_data_feeds_needs_a_key_with_feeds_r168(api: Running) -> None:
    member = make_member(api, make_workspace(api))
    without = make_key(api, member, permissions=["webhooks"])["secret"]
    paths = api.get("/openapi.json").json()["paths"]
    asked = [
        (method.upper(), path.replace("{version}", "1").replace("{", "").replace("}", ""))
        for path, operations in paths.items()
        for method in operations
        if path.startswith("/v1/feeds/")
    ]
    assert len(asked) >= 15
    for method, path in asked:
        refused = problem(api.send(method, path, key=without), 403, "forbidden")
        assert "'feeds'" in refused["detail"], (method, path)


def test_staff_alone_end_holds_replace_ids_release_again_and_stop_delivery_r205(
    tmp_path: Path,
) -> None:
    with served(tmp_path) as server:
        server.declare("ds_a", key=["id"])
        log = server.subscribe("ds_a")
        server.push("ds_a", b"id,n\na,1\n")
        dataset = "/v1/admin/datasets/ds_a"
        discarded = server.push("ds_a", b"id\na\n")["hold"]["id"]
        do(server, f"/v1/admin/holds/{discarded}/discard")
        released = server.push("ds_a", b"id,m\na,1\n")["hold"]["id"]
        do(server, f"/v1/admin/holds/{released}/release")
        do(server, f"{dataset}/rebuild")
        proposal = do(server, f"{dataset}/proposals")["id"]
        do(server, f"/v1/admin/proposals/{proposal}/approve")
        do(server, f"{dataset}/remove")
        events = server.get(f"{log}/events").json()["events"]
        told = [(each["type"].rpartition(".")[2], each["data"].get("reason")) for each in events]
        assert told == [
            ("added", None),
            ("resync_required", "first_version"),
            ("delayed", "schema_review"),
            ("delayed", "schema_review"),
            ("schema_changed", None),
            ("resync_required", "schema_changed"),
            ("resync_required", "previous_unavailable"),
            ("resync_required", "record_ids_changed"),
            ("removed", "no_longer_deliverable"),
        ]


def do(server: Server, path: str) -> dict[str, Any]:
    """What staff have done, once a subscriber was refused it."""
    problem(server.request("POST", path, json={}), 403, "forbidden")
    answer = server.staff("POST", path, json={})
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json() if answer.content else {}
    return found
