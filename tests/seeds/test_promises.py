"""What the references promise of a log, of order and of holds, sentence by sentence."""

from __future__ import annotations

from tests.fakes.world import PERMITS, ROADS, World, many, table
from tests.seeds.conftest import Play
from tests.seeds.telling import NARROWER, WIDER, of_type, shrink, shrunk

from ploti.model.admin import OutcomeKind
from ploti.server.service.read_catalogue import list_versions
from ploti.server.service.rebuild_version import rebuild_version
from ploti.server.service.steer_dataset import remove_dataset


def test_a_log_is_ordered_and_is_read_again_from_any_kept_place_r001_r003(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = (await world.subscribe()).id
        for kind in ("deck", "pool", "shed", "barn"):
            await world.push(table({"a": kind}))
        events = await world.events(subscription)
        numbers = [int(each["id"].removeprefix("evt_")) for each in events]
        assert numbers == [*range(1, 6)]
        for place, event in enumerate(events):
            assert await world.events(subscription, after=event["id"]) == events[place + 1 :]

    run(story)


def test_each_subscription_has_a_log_of_its_own_r001_r002(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare(PERMITS)
        await world.declare(ROADS, topic="roads")
        permits = (await world.subscribe(datasets=[PERMITS])).id
        roads = (await world.subscribe(datasets=[ROADS])).id
        await world.push(table({"a": "deck"}), ROADS)
        assert {each["data"]["datasetId"] for each in await world.events(permits)} == {PERMITS}
        assert {each["data"]["datasetId"] for each in await world.events(roads)} == {ROADS}
        assert len(await world.events(permits)) == 1

    run(story)


def test_each_new_state_of_a_source_becomes_a_new_version_r006(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        states = ("deck", "pool", "pool", "deck")
        outcomes = [await world.push(table({"a": kind})) for kind in states]
        assert [each.version for each in outcomes] == [1, 2, 2, 3]
        assert outcomes[2].outcome is OutcomeKind.UNCHANGED

    run(story)


def test_events_of_one_dataset_are_in_order_and_those_of_two_may_interleave_r076_r077(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        await world.declare(PERMITS)
        await world.declare(ROADS, topic="roads")
        subscription = (await world.subscribe(places=["us"])).id
        for kind in ("deck", "pool", "shed"):
            await world.push(table({"a": kind}), PERMITS)
            await world.push(table({"a": kind}), ROADS)
        events = (await world.events(subscription))[2:]
        assert len({each["data"]["datasetId"] for each in events[:2]}) == 2
        for dataset in (PERMITS, ROADS):
            own = [each["data"] for each in events if each["data"]["datasetId"] == dataset]
            assert [each["version"] for each in own] == [1, 2, 3]

    run(story)


def test_nothing_after_a_held_version_is_sent_until_the_hold_ends_r078_r079_r085(
    run: Play,
) -> None:
    """And the subscriber has nothing to do meanwhile."""

    async def story(world: World) -> None:
        await world.declare()
        subscription = (await world.subscribe()).id
        await world.push(many(40))
        await world.push(shrunk())
        await world.push(many(10, k0="pool"))
        told = await world.told(subscription)
        assert [each[0] for each in told] == ["added", "resync_required", "delayed", "delayed"]
        await world.push(many(40, k0="pool"))
        assert (await world.told(subscription))[4:] == [("updated", 4)]

    run(story)


def test_a_hold_ends_released_discarded_or_replaced_r080(run: Play) -> None:
    async def story(world: World) -> None:
        subscription, first = await shrink(world)
        await world.discard(first.id)
        await world.push(many(41))
        await world.push(many(11))
        await world.push(many(42))
        await world.push(many(12))
        await world.release((await world.holds())[0].id)
        states = [str(each.state) for each in await world.holds()]
        assert states == ["released", "replaced", "discarded"]
        chain = [
            each["data"]
            for each in await world.events(subscription)
            if each["type"].endswith(("updated", "resync_required"))
        ]
        held = None
        for data in chain:
            assert data.get("previousVersion", held) == held
            held = data["version"]

    run(story)


def test_a_discarded_hold_may_end_without_any_event_r084_s27(run: Play) -> None:
    async def story(world: World) -> None:
        subscription, hold = await shrink(world)
        before = len(await world.events(subscription))
        await world.discard(hold.id)
        again = await world.push(shrunk())
        assert again.outcome is OutcomeKind.UNCHANGED
        assert len(await world.events(subscription)) == before

    run(story)


def test_previous_version_leads_from_one_to_the_next_where_numbers_skip_r087_r096_r086(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        subscription, hold = await shrink(world)
        await world.discard(hold.id)
        await world.push(many(41))
        page = await world.read(
            lambda tx: list_versions(tx, world.reader, PERMITS, after=None, limit=9)
        )
        assert [(each.version, each.previous_version) for each in page.versions] == [
            (1, None),
            (3, 1),
        ]
        updated = of_type(await world.events(subscription), "updated")[-1]["data"]
        assert (updated["version"], updated["previousVersion"]) == (3, 1)

    run(story)


def test_the_reasons_of_delayed_are_those_of_the_hold_r072_r073_r074(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = (await world.subscribe()).id
        await world.push(many(40))
        await world.push("id,other\nk0,x\n")
        await world.push(shrunk())
        await world.push("id,kind\na,x\na,y\n")
        reasons = [
            e["data"]["reason"] for e in of_type(await world.events(subscription), "delayed")
        ]
        assert reasons == ["schema_review", "data_check", "data_check"]

    run(story)


def test_delayed_names_the_version_that_is_held_by_subscribers_r048_s04(run: Play) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = (await world.subscribe()).id
        await world.push(table({"a": "deck"}))
        await world.push(WIDER)
        await world.push(NARROWER)
        (delayed,) = of_type(await world.events(subscription), "delayed")
        assert delayed["data"]["version"] == 2

    run(story)


def test_a_staff_of_the_operator_ends_holds_releases_again_and_stops_delivery_r205(
    run: Play,
) -> None:
    async def story(world: World) -> None:
        await world.declare()
        subscription = (await world.subscribe()).id
        await world.push(table({"a": "deck"}))
        await rebuild_version(world.parts, PERMITS)
        plans = await world.plans_of(world.subscriber)
        await world.write(
            lambda tx: remove_dataset(tx, PERMITS, plans=plans, now=world.clock.now())
        )
        assert (await world.told(subscription))[1:] == [
            ("resync_required", 1, "first_version"),
            ("resync_required", 2, "previous_unavailable"),
            ("removed", "no_longer_deliverable"),
        ]

    run(story)
