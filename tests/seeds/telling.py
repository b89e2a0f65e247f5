"""Stories that several sentences of the references are about."""

from datetime import timedelta
from typing import Any

from tests.fakes.world import PERMITS, World, many, table

from ploti.model.admin import Hold
from ploti.model.ids import SubscriptionId
from ploti.model.subscription import SubscriptionPatch
from ploti.model.wire import Instant
from ploti.server.service.change_subscription import update_subscription
from ploti.server.service.run_jobs import tell_stale

WIDER = "id,kind,area\na,deck,1\n"
NARROWER = "id,area\na,1\n"
SOURCE = {"kind": "http", "url": "https://data.example/permits.csv"}


async def all_seven(world: World) -> SubscriptionId:
    """A subscription whose log has every type of event, with and without its links."""
    await world.declare(check_every="24h", source=SOURCE)
    subscription = (await world.subscribe()).id
    await world.push(table({"a": "deck"}))
    await world.push(table({"a": "pool"}))
    await world.push(WIDER)
    await world.push(NARROWER)
    (hold,) = await world.holds()
    await world.release(hold.id)
    await overdue(world)
    await choose(world, subscription, topics=["none"], datasets=[])
    await choose(world, subscription, topics=["permits"])
    return subscription


async def shrink(world: World) -> tuple[SubscriptionId, Hold]:
    """A subscription to a dataset whose second version is held, since it has far fewer rows."""
    await world.declare()
    subscription = (await world.subscribe()).id
    await world.push(many(40))
    await world.push(shrunk())
    (hold,) = await world.holds()
    return subscription, hold


async def overdue(world: World) -> None:
    """Three days pass without a check of a source that is due one a day."""
    world.clock.moment = Instant.of(world.clock.moment + timedelta(days=3))
    now = world.clock.now()
    await world.write(lambda tx: tell_stale(tx, PERMITS, now=now))


async def choose(world: World, subscription: SubscriptionId, **selection: Any) -> None:
    """The subscription's selection becomes another one."""
    plans, now = await world.plans_of(world.subscriber), world.clock.now()
    patch = SubscriptionPatch(**selection)
    await world.write(
        lambda tx: update_subscription(
            tx, world.subscriber, subscription, patch, plans=plans, now=now
        )
    )


def of_type(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """The events of one type, by its short name."""
    return [each for each in events if each["type"] == f"feed.dataset.{name}"]


def shrunk() -> str:
    """A state of far fewer rows than `many(40)`, which a review holds."""
    return many(10)
