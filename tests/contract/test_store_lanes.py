"""When a lane is due, over SQLite and over PostgreSQL: where anything is to be done."""

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace
from sqlalchemy import func, select, text
from tests.contract.conftest import Open, Play
from tests.fakes import logs
from tests.fakes.releases import NOW

from ploti.model.ids import DatasetId, DeliveryId, SubscriptionId, WebhookId
from ploti.model.webhook import DeliveryKind, DeliveryState, OffReason, WebhookState
from ploti.model.wire import Instant
from ploti.server.adapters.clock import SystemClock
from ploti.server.adapters.store import PostgresStore
from ploti.server.adapters.store.tables import feed_news
from ploti.server.deliver.health import Health
from ploti.server.ports.rows import Claim, DeliveryRow, WebhookRow
from ploti.server.ports.store import Store, Transaction

A = DatasetId("ds_a")
_WAITING = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


def after(**much: float) -> Instant:
    return Instant.of(NOW + timedelta(**much))


def lane(number: int) -> WebhookRow:
    return logs.webhook(number, now=NOW)


def lanes(tx: Transaction, count: int = 3) -> None:
    """Lanes at rest, of logs that all deliver the same dataset."""
    for number in range(count):
        row = logs.subscription(number, A, now=NOW)
        tx.subscriptions.add(row)
        tx.memberships.join([(row.id, A)])
        tx.webhooks.add(lane(number))
        tx.webhooks.plan(lane(number), at=NOW)


def append(tx: Transaction, *numbers: int) -> None:
    to = [SubscriptionId(f"sub_{number}") for number in numbers]
    tx.log.append([logs.stale(A)], to=to, now=NOW)


def tell(tx: Transaction) -> None:
    tx.webhooks.tell_lanes(at=NOW)


async def due(store: Store, *, at: Instant = NOW, limit: int = 10) -> list[str]:
    ready = await store.read(lambda tx: tx.webhooks.ready(at=at, limit=limit))
    return [each.webhook_id for each in ready]


async def claim(store: Store, number: int, *, at: Instant = NOW) -> Claim:
    (claimed,) = await store.write(
        lambda tx: tx.webhooks.claim([lane(number).id], at=at, until=after(minutes=1))
    )
    return claimed


def end(claimed: Claim, row: WebhookRow, *, told: bool = False) -> Callable[[Transaction], None]:
    """The end of a turn, before which the lanes were told, or not."""

    def work(tx: Transaction) -> None:
        if told:
            tell(tx)
        assert tx.webhooks.give_back(claimed, row)
        tx.webhooks.plan(row, at=NOW)

    return work


def nothing(tx: Transaction) -> None:
    """Nobody looks meanwhile."""


def is_waiting(tx: Transaction) -> bool:
    """Whether a transaction waits for another one's lock."""
    return bool(tx.log._connection.scalar(text(_WAITING)))  # type: ignore[attr-defined]


def waiting(number: int, *, next_at: Instant | None, seq: int = 1) -> DeliveryRow:
    return DeliveryRow(
        id=DeliveryId(f"del_{number}_{seq}"),
        webhook_id=lane(number).id,
        seq=seq,
        dataset_id=A,
        kind=DeliveryKind.AUTO,
        state=DeliveryState.WAITING,
        attempts=1,
        next_at=next_at,
        created_at=NOW,
        ended_at=None,
    )


def test_lanes_are_due_once_they_were_told_of_events_of_their_logs(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(lanes)
        assert await due(store) == []
        await store.write(lambda tx: append(tx, 1))
        assert await store.read(lambda tx: tx.webhooks.has_news())
        await store.write(tell)
        assert not await store.read(lambda tx: tx.webhooks.has_news())
        assert await due(store) == ["wh_1"]
        await store.write(
            lambda tx: tx.log.append_to_members([logs.stale(A)], dataset_id=A, now=NOW)
        )
        await store.write(tell)
        assert await due(store) == ["wh_0", "wh_1", "wh_2"]

    play(story)


def test_an_event_to_ten_thousand_logs_is_one_row_of_news(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(lanes)
        await store.write(
            lambda tx: tx.log.append_to_members([logs.stale(A)], dataset_id=A, now=NOW)
        )
        rows = await store.read(
            lambda tx: tx.log._connection.scalar(select(func.count()).select_from(feed_news))  # type: ignore[attr-defined]
        )
        assert rows == 1

    play(story)


@pytest.mark.parametrize("told", [True, False])
def test_what_is_appended_during_a_turn_makes_the_lane_due_at_its_end(
    play: Play, *, told: bool
) -> None:
    async def story(store: Store) -> None:
        await store.write(lanes)
        await store.write(lambda tx: append(tx, 1))
        await store.write(tell)
        claimed = await claim(store, 1)
        await store.write(lambda tx: append(tx, 1))
        await store.write(end(claimed, replace(lane(1), cursor=1), told=told))
        assert await due(store) == ["wh_1"]
        claimed = await claim(store, 1)
        await store.write(end(claimed, replace(lane(1), cursor=2)))
        await store.write(tell)
        assert await due(store) == []

    play(story)


@pytest.mark.parametrize("told", [True, False])
def test_what_is_appended_while_outcomes_are_recorded_is_come_to(
    postgres_url: str, *, told: bool
) -> None:
    """The lanes are told while the recording, which has not seen the event, holds the lane."""
    locked, go = threading.Event(), threading.Event()

    async def story(store: PostgresStore) -> None:
        await store.write(lanes)
        await store.write(lambda tx: append(tx, 1))
        await store.write(tell)
        claimed = await claim(store, 1)
        row = replace(lane(1), cursor=1)

        def record(tx: Transaction) -> None:
            tx.webhooks.give_back(claimed, row)
            if told:
                tx.webhooks.plan(row, at=NOW)
            locked.set()
            assert go.wait(60)
            if not told:
                tx.webhooks.plan(row, at=NOW)

        recording = asyncio.create_task(store.write(record))
        assert await asyncio.to_thread(locked.wait, 60)
        await store.write(lambda tx: append(tx, 1))
        telling = asyncio.create_task(store.write(tell if told else nothing))
        async with asyncio.timeout(60):
            while not telling.done() and not await store.read(is_waiting):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        go.set()
        await asyncio.gather(recording, telling)
        assert await due(store) == ["wh_1"]

    async def run() -> None:
        store = PostgresStore(postgres_url, now=SystemClock().now)
        try:
            await story(store)
        finally:
            await store.close()

    asyncio.run(run())


def test_a_lane_is_due_when_the_first_of_what_waits_is(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(lanes)

        def fail(tx: Transaction) -> None:
            times = [None, after(seconds=30), after(hours=1)]
            rows = [waiting(1, next_at=each, seq=seq) for seq, each in enumerate(times)]
            tx.deliveries.add(rows)
            tx.webhooks.plan(lane(1), at=NOW)

        await store.write(fail)
        assert await due(store, at=after(seconds=29)) == []
        assert await due(store, at=after(seconds=30)) == ["wh_1"]

    play(story)


def test_a_pause_holds_up_what_waits_and_a_pace_what_is_new(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(lambda tx: lanes(tx, count=2))
        paused = replace(lane(0), health=Health(paused_until=after(minutes=10)))
        paced = replace(lane(1), health=Health(paced_until=after(minutes=5)))

        def work(tx: Transaction) -> None:
            tx.deliveries.add([waiting(number, next_at=NOW) for number in (0, 1)])
            append(tx, 0, 1)
            for row in (paused, paced):
                tx.webhooks.save(row, at=NOW)
                tx.webhooks.plan(row, at=NOW)

        await store.write(work)
        assert await due(store) == ["wh_1"]  # for what waits
        await store.write(
            lambda tx: [
                tx.deliveries.cancel(WebhookId("wh_1"), at=NOW),
                tx.webhooks.plan(paced, at=NOW),
            ]
        )
        assert await due(store, at=after(minutes=4.9)) == []
        assert await due(store, at=after(minutes=5)) == ["wh_1"]
        assert await due(store, at=after(minutes=10)) == ["wh_1", "wh_0"]

    play(story)


def test_lanes_that_pause_are_told_for_the_end_of_their_pause(play: Play) -> None:
    async def story(store: Store) -> None:
        pauses = Health(paced_until=after(minutes=5), paused_until=after(minutes=3))

        def work(tx: Transaction) -> None:
            lanes(tx, count=1)
            row = replace(lane(0), health=pauses)
            tx.webhooks.save(row, at=NOW)
            tx.webhooks.plan(row, at=NOW)
            append(tx, 0)
            tell(tx)

        await store.write(work)
        assert await due(store, at=after(minutes=4.9)) == []
        assert await due(store, at=after(minutes=5)) == ["wh_0"]

    play(story)


def test_a_lane_that_is_off_is_never_due_and_one_that_is_saved_is_looked_at(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(lanes)
        await store.write(
            lambda tx: [
                append(tx, 0, 1, 2),
                tell(tx),
                tx.webhooks.turn_off(
                    OffReason.SUBSCRIPTION_DELETED, at=NOW, subscription=SubscriptionId("sub_0")
                ),
                tx.webhooks.save(replace(lane(1), state=WebhookState.OFF), at=NOW),
                append(tx, 0, 1, 2),
                tell(tx),
            ]
        )
        assert await due(store) == ["wh_2"]
        await store.write(lambda tx: tx.webhooks.save(lane(1), at=after(seconds=1)))
        assert await due(store, at=after(seconds=1)) == ["wh_2", "wh_1"]

    play(story)


def test_those_due_for_longest_come_first_and_as_many_slow_ones_as_others(play: Play) -> None:
    async def story(store: Store) -> None:
        slow = Health(average_ms=2001)

        def work(tx: Transaction) -> None:
            lanes(tx, count=5)
            append(tx, *range(5))
            for number, seconds in enumerate((4, 3, 2, 1, 0)):
                health = slow if number < 3 else Health()
                row = replace(lane(number), health=health)
                tx.webhooks.save(row, at=after(seconds=seconds))

        await store.write(work)
        assert await due(store, at=after(seconds=4)) == ["wh_4", "wh_3", "wh_2", "wh_1", "wh_0"]
        assert await due(store, at=after(seconds=4), limit=1) == ["wh_4", "wh_2"]

    play(story)


def test_of_several_lanes_those_are_claimed_that_are_on_and_have_no_lease(play: Play) -> None:
    async def story(store: Store) -> None:
        def take(seconds: float) -> Callable[[Transaction], list[tuple[str, int]]]:
            at = after(seconds=seconds)
            every = [lane(number).id for number in range(4)]

            def work(tx: Transaction) -> list[tuple[str, int]]:
                claims = tx.webhooks.claim(every, at=at, until=after(seconds=seconds + 60))
                assert tx.webhooks.claim([], at=at, until=at) == []
                return sorted((each.webhook_id, each.token) for each in claims)

            return work

        await store.write(lanes)
        off = replace(lane(2), state=WebhookState.OFF, off_reason=OffReason.GONE, off_at=NOW)
        await store.write(lambda tx: tx.webhooks.save(off, at=NOW))
        await claim(store, 1)
        assert await store.write(take(seconds=1)) == [("wh_0", 1)]
        assert await store.write(take(seconds=60)) == [("wh_1", 2)]
        assert await store.write(take(seconds=61)) == [("wh_0", 2)]

    play(story)


def test_a_lane_is_found_again_whoever_had_it_when_the_process_died(open_store: Open) -> None:
    """What was appended, told or not, and what was claimed is due once a server is back."""

    async def before() -> None:
        store = open_store()
        await store.write(lanes)
        await store.write(lambda tx: append(tx, 0))
        await store.write(tell)
        await claim(store, 0)
        await store.write(lambda tx: append(tx, 1))
        await store.close()

    async def afterwards() -> None:
        store = open_store()
        await store.write(lambda tx: tx.webhooks.end_leases())
        await store.write(tell)
        assert await due(store) == ["wh_0", "wh_1"]
        await store.close()

    asyncio.run(before())
    asyncio.run(afterwards())


def test_after_a_recovery_every_lane_is_told(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(lanes)
        await store.write(lambda tx: tx.recovery.raise_logs(1000))
        await store.write(tell)
        assert await due(store) == ["wh_0", "wh_1", "wh_2"]

    play(story)


def test_a_webhook_made_beside_an_append_is_looked_at(play: Play) -> None:
    """The event may have been told before the webhook was there to be told."""

    async def story(store: Store) -> None:
        await store.write(
            lambda tx: [
                tx.subscriptions.add(logs.subscription(0, A, now=NOW)),
                append(tx, 0),
                tell(tx),
                tx.webhooks.add(lane(0)),
            ]
        )
        assert await due(store) == ["wh_0"]

    play(story)
