"""Coverage and plans changed: what joins and leaves by it, and when a plan cannot be read."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.plans import ALL_OPEN, FailingPlans
from tests.fakes.world import PERMITS, ROADS, World, play, table

from ploti.errors import Conflict, InvalidInput, NotFound, NotSubscribed, OutsideCoverage
from ploti.model.account import (
    DEFAULT_PLAN,
    NewPlan,
    NewWorkspace,
    PlanPatch,
    PlanTerms,
    WorkspacePatch,
)
from ploti.model.ids import PlanId, SubscriptionId, WorkspaceId
from ploti.model.subscription import Excluded, Obstacle, Selection, SubscriptionPatch
from ploti.model.wire import Instant
from ploti.server.membership.principal import Reader
from ploti.server.ports.outside import Plans
from ploti.server.ports.rows import JobKind
from ploti.server.ports.store import Transaction
from ploti.server.service import bring_workspace as bringing
from ploti.server.service.change_membership import bring_subscription
from ploti.server.service.change_subscription import update_subscription
from ploti.server.service.manage_workspaces import (
    checked_name,
    create_plan,
    create_workspace,
    update_plan,
    update_workspace,
)
from ploti.server.service.preview_selection import preview_selection
from ploti.server.service.read_catalogue import get_dataset, list_datasets
from ploti.server.service.read_plans import PlansChanged, read_plans
from ploti.server.service.read_version import get_digest
from ploti.server.service.steer_dataset import remove_dataset
from ploti.server.worker.jobs import Jobs

Play = Callable[[Callable[[World], Awaitable[None]]], None]
NOTHING_OF = PlanTerms(topics=["none"])


@pytest.fixture
def run(tmp_path: Path) -> Play:
    return lambda story: play(tmp_path, story)


async def change(world: World, **changes: Any) -> None:
    """Change the workspace; what follows is left to its job."""
    now, which = world.clock.now(), world.subscriber.workspace_id
    await world.write(lambda tx: update_workspace(tx, which, WorkspacePatch(**changes), now=now))


async def change_plan(world: World, **changes: Any) -> None:
    now = world.clock.now()
    await world.write(lambda tx: update_plan(tx, DEFAULT_PLAN, PlanPatch(**changes), now=now))


async def work(world: World) -> None:
    """Do what is due, as the server does."""
    jobs = Jobs(world.parts)
    await jobs.look()
    await jobs.finish()


async def is_planned(world: World) -> bool:
    which = world.subscriber.workspace_id
    return await world.read(lambda tx: tx.jobs.is_planned(JobKind.MEMBERSHIP, which))


async def answer(world: World, ask: Callable[[Transaction, Reader], object]) -> object:
    reader = await world.reader_of(world.subscriber)
    return await world.read(lambda tx: ask(tx, reader))


def use_plans(world: World, plans: Plans) -> None:
    world.plans, world.parts = plans, replace(world.parts, plans=plans)


async def begin(world: World) -> SubscriptionId:
    """Permits of Florida with a version, roads of Georgia without, and a subscription to both."""
    await world.declare(PERMITS)
    await world.declare(ROADS, place="us/ga", topic="roads")
    await world.push(table({"a": "deck"}))
    return (await world.subscribe(places=["us"])).id


def test_what_leaves_the_coverage_is_removed_and_joins_again_r066_r030(run: Play) -> None:
    async def story(world: World) -> None:
        subscription = await begin(world)
        await change(world, coverage=["us/ga", "ca"])
        await work(world)
        assert (await world.told(subscription))[2:] == [("removed", "left_coverage")]
        assert not await is_planned(world)
        await world.push(table({"a": "pool"}))
        await change(world, coverage=None)
        await work(world)
        assert (await world.told(subscription))[3:] == [("added", 2)]

    run(story)


def test_what_the_plan_no_longer_opens_is_removed_r067(run: Play) -> None:
    async def story(world: World) -> None:
        subscription = await begin(world)
        await change_plan(world, topics=["roads"])
        await work(world)
        assert (await world.told(subscription))[2:] == [("removed", "plan_changed")]
        await change_plan(world, topics=["roads"], datasets=[PERMITS])
        await work(world)
        assert (await world.told(subscription))[3:] == [("added", 1)]

    run(story)


def test_another_plan_of_a_workspace_counts_as_a_change_of_its_plan(run: Play) -> None:
    async def story(world: World) -> None:
        subscription = await begin(world)
        new = NewPlan(id=PlanId("roads-only"), topics=["roads"])
        await world.write(lambda tx: create_plan(tx, new, now=world.clock.now()))
        await change(world, plan_id=new.id)
        await work(world)
        assert (await world.told(subscription))[2:] == [("removed", "plan_changed")]

    run(story)


def test_coverage_counts_before_the_plan_and_deliverability_before_both_s33(run: Play) -> None:
    async def story(world: World) -> None:
        subscription = await begin(world)
        await change_plan(world, topics=["none"])
        await change(world, coverage=["us/ga"])
        await work(world)
        assert (await world.told(subscription))[2:] == [
            ("removed", "left_coverage"),
            ("removed", "plan_changed"),
        ]

    run(story)


def test_a_dataset_that_is_delivered_no_more_leaves_with_that_reason_r069(run: Play) -> None:
    async def story(world: World) -> None:
        subscription = await begin(world)
        await world.write(
            lambda tx: remove_dataset(tx, PERMITS, plans=ALL_OPEN, now=world.clock.now())
        )
        assert (await world.told(subscription))[2:] == [("removed", "no_longer_deliverable")]

    run(story)


def test_a_change_is_recorded_at_once_and_access_follows_when_it_is_carried_out_s32(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        subscription = await begin(world)
        await change(world, coverage=["ca"])
        assert len(await world.told(subscription)) == 2
        await answer(world, lambda tx, reader: get_digest(tx, reader, PERMITS, 1))
        await answer(world, lambda tx, reader: get_dataset(tx, reader, PERMITS))
        await work(world)
        for ask in (
            lambda tx, reader: get_digest(tx, reader, PERMITS, 1),
            lambda tx, reader: get_dataset(tx, reader, PERMITS),
        ):
            with pytest.raises(OutsideCoverage):
                await answer(world, ask)

    run(story)


def test_a_job_that_was_broken_off_goes_on_and_says_nothing_twice(
    run: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(world: World) -> None:
        first = await begin(world)
        second = (await world.subscribe(topics=["permits"])).id
        brought = bring_subscription
        calls = []

        def fails_once(tx: Transaction, row: Any, **known: Any) -> None:
            calls.append(row.id)
            if len(calls) == 2:
                raise OSError("the process died")
            brought(tx, row, **known)

        monkeypatch.setattr(bringing, "bring_subscription", fails_once)
        await change(world, coverage=["us/ga"])
        await work(world)
        told = [len(await world.told(each)) for each in (first, second)]
        assert sorted(told) in ([1, 3], [2, 2])
        world.clock.moment = Instant.of(world.clock.moment + timedelta(minutes=2))
        await work(world)
        assert (await world.told(first))[2:] == [("removed", "left_coverage")]
        assert (await world.told(second))[1:] == [("removed", "left_coverage")]
        assert not await is_planned(world)

    run(story)


def test_a_change_while_its_job_is_at_work_is_not_lost(
    run: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(world: World) -> None:
        subscription = await begin(world)
        brought = read_plans

        async def changes_after(*known: Any) -> object:
            reading = await brought(*known)
            if await is_planned(world) and reading.revision == 1:
                await change(world, coverage=["us/fl"])
            return reading

        monkeypatch.setattr(bringing, "read_plans", changes_after)
        await change(world, coverage=["us/ga"])
        await work(world)
        assert (await world.told(subscription))[2:] == [("removed", "left_coverage")]
        assert (await world.events(subscription))[-1]["data"]["datasetId"] == ROADS
        assert await is_planned(world)
        await work(world)
        assert not await is_planned(world)

    run(story)


def test_a_plan_that_cannot_be_read_removes_and_adds_nothing_and_is_asked_again_r070_s34(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        subscription = await begin(world)
        plans = FailingPlans()
        use_plans(world, plans)
        await change_plan(world, topics=["none"])
        await work(world)
        assert len(await world.told(subscription)) == 2
        assert await is_planned(world)
        late = (await world.subscribe(topics=["permits"])).id
        assert await world.told(late) == []
        plans.plans = {world.subscriber.workspace_id: PlanTerms(topics=["permits"])}
        world.clock.moment = Instant.of(world.clock.moment + timedelta(seconds=61))
        await work(world)
        assert (await world.told(subscription))[2:] == [("removed", "plan_changed")]
        assert await world.told(late) == [("added", 1)]
        assert not await is_planned(world)

    run(story)


def test_a_subscription_made_while_the_plan_cannot_be_read_gets_its_datasets_later(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        await begin(world)
        plans = FailingPlans()
        use_plans(world, plans)
        late = (await world.subscribe(places=["us"])).id
        assert await world.told(late) == []
        assert await is_planned(world)
        await world.declare(PERMITS, topic="permits/other")
        plans.plans = {world.subscriber.workspace_id: PlanTerms()}
        world.clock.moment = Instant.of(world.clock.moment + timedelta(seconds=61))
        await work(world)
        assert await world.told(late) == [("added", 1), ("added", None)]

    run(story)


def test_an_unreadable_plan_closes_nothing_s32(run: Play) -> None:
    async def story(world: World) -> None:
        await begin(world)
        use_plans(world, FailingPlans())
        await answer(world, lambda tx, reader: get_digest(tx, reader, PERMITS, 1))
        await answer(world, lambda tx, reader: get_dataset(tx, reader, ROADS))

    run(story)


def test_a_change_of_plans_between_the_reading_and_the_transaction_is_noticed(run: Play) -> None:
    async def story(world: World) -> None:
        subscription = await begin(world)
        before = await world.plans_of(world.subscriber)
        await change(world, coverage=["us/ga"])
        patch, now = SubscriptionPatch(topics=["permits"]), world.clock.now()
        with pytest.raises(PlansChanged):
            await world.write(
                lambda tx: update_subscription(
                    tx, world.subscriber, subscription, patch, plans=before, now=now
                )
            )

    run(story)


def test_who_joins_while_a_version_waits_gets_added_and_delayed_r050_s06(run: Play) -> None:
    async def story(world: World) -> None:
        await begin(world)
        await world.push("id,other\na,deck\n")
        (hold,) = await world.holds()
        late = (await world.subscribe(topics=["permits"])).id
        assert await world.told(late) == [("added", 1), ("delayed", 1, "schema_review")]
        (_, delayed) = await world.events(late)
        assert delayed["data"]["since"] == str(hold.since)
        await change(world, coverage=["ca"])
        await work(world)
        await change(world, coverage=None)
        await work(world)
        assert (await world.told(late))[2:] == [
            ("removed", "left_coverage"),
            ("added", 1),
            ("delayed", 1, "schema_review"),
        ]

    run(story)


def test_the_catalogue_lists_what_coverage_and_plan_open_r202_s30(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare(PERMITS)
        await world.declare(ROADS, place="us/ga", topic="roads")

        async def listed() -> list[str]:
            page: Any = await answer(
                world,
                lambda tx, reader: list_datasets(
                    tx, reader, place=None, topic=None, cursor=None, limit=9
                ),
            )
            return [each.id for each in page.datasets]

        assert await listed() == [PERMITS, ROADS]
        await change(world, coverage=["us/ga"])
        assert await listed() == [ROADS]
        await change(world, coverage=None)
        await change_plan(world, topics=["permits"])
        assert await listed() == [PERMITS]
        await change_plan(world, topics=None, datasets=[ROADS])
        assert await listed() == [ROADS]
        with pytest.raises(OutsideCoverage, match="plan"):
            await answer(world, lambda tx, reader: get_dataset(tx, reader, PERMITS))
        with pytest.raises(NotSubscribed):
            await answer(world, lambda tx, reader: get_digest(tx, reader, ROADS, 1))

    run(story)


def test_a_preview_says_what_a_selection_would_deliver_and_why_not_the_rest(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare(PERMITS)
        await world.declare(ROADS, place="us/ga", topic="roads")
        await change(world, coverage=["us/fl"])
        selection = Selection(places=["us"], datasets=["ds_none"])  # type: ignore[list-item]
        found: Any = await answer(
            world, lambda tx, reader: preview_selection(tx, reader, selection)
        )
        assert found.datasets == [PERMITS]
        assert found.excluded == [Excluded(dataset_id=ROADS, reason=Obstacle.OUTSIDE_COVERAGE)]
        assert found.unknown == ["ds_none"]
        with pytest.raises(InvalidInput, match="name at least one"):
            await answer(world, lambda tx, reader: preview_selection(tx, reader, Selection()))

    run(story)


def test_workspaces_and_plans_that_cannot_be_meant_are_refused(run: Play) -> None:
    async def story(world: World) -> None:
        now = world.clock.now()
        for new in (
            NewWorkspace(name=""),
            NewWorkspace(name="x" * 201),
            NewWorkspace(name="a\x00b"),
            NewWorkspace(name="a", coverage=[]),
            NewWorkspace(name="a", coverage=["US"]),
            NewWorkspace(name="a", coverage=["us"] * 201),
        ):
            with pytest.raises(InvalidInput):
                await world.write(lambda tx, n=new: create_workspace(tx, n, ids=world.ids, now=now))
        for plan in (
            NewPlan(id=PlanId("Bad id")),
            NewPlan(id=PlanId("a"), topics=[]),
            NewPlan(id=PlanId("a"), datasets=["x"]),  # type: ignore[list-item]
        ):
            with pytest.raises(InvalidInput):
                await world.write(lambda tx, p=plan: create_plan(tx, p, now=now))
        with pytest.raises(Conflict, match="already"):
            await world.write(lambda tx: create_plan(tx, NewPlan(id=DEFAULT_PLAN), now=now))
        nobody = WorkspaceId("ws_nobody")
        with pytest.raises(NotFound):
            await world.write(lambda tx: update_workspace(tx, nobody, WorkspacePatch(), now=now))
        planless = NewWorkspace(name="a", plan_id=PlanId("none"))
        with pytest.raises(NotFound, match="There is no plan none"):
            await world.write(lambda tx: create_workspace(tx, planless, ids=world.ids, now=now))

    run(story)


@pytest.mark.parametrize("name", ["Ada", "山田\u3000太郎", "a" * 200, " b "])
def test_a_name_is_seen_and_stands_on_one_line(name: str) -> None:
    assert checked_name(name) == name
    for wrong in ("", " ", "\u3000", f"{name}\n", f"\u202e{name}", f"{name}\x7f"):
        with pytest.raises(InvalidInput):
            checked_name(wrong)


def test_changes_at_once_end_as_if_one_had_followed_the_other(run: Play) -> None:
    """Subscriptions made while coverage, plan and filing change: each log ends with what is so."""

    async def story(world: World) -> None:
        await begin(world)
        made = asyncio.gather(*(world.subscribe(places=["us"]) for _ in range(4)))
        await change(world, coverage=["us/ga"])
        subscriptions = [each.id for each in await made]
        while await is_planned(world):
            await work(world)
        for each in subscriptions:
            assert await world.read(lambda tx, each=each: tx.memberships.of(each)) == {ROADS}

    run(story)
