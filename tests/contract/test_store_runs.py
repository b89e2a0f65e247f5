"""What every store does with logs whose events are many: some stand in runs, the newest apart."""

from collections.abc import Iterable
from datetime import timedelta

from msgspec.structs import replace
from sqlalchemy import func, select
from tests.contract.conftest import Play
from tests.fakes import logs
from tests.fakes.releases import NOW

from ploti.model.event import EventType
from ploti.model.ids import DatasetId, SubscriptionId
from ploti.model.wire import Instant
from ploti.server.adapters.store.tables import feed_body, feed_run
from ploti.server.eventlog.drafts import Draft
from ploti.server.eventlog.paging import Extent
from ploti.server.ports.store import Store, Transaction

A = DatasetId("ds_a")
ONE, TWO = SubscriptionId("sub_1"), SubscriptionId("sub_2")
SIZES = (1, 1, 3, 29, 1, 1, 1, 80, 2, 31, 32, 1, 1)
"""Events appended in one transaction: few, and more than a run is long."""

EVENTS = sum(SIZES)
KINDS = (EventType.UPDATED, EventType.STALE, EventType.STALE)


def minute(number: int) -> Instant:
    return Instant.of(NOW + timedelta(minutes=number))


def event(number: int) -> Draft:
    kind = KINDS[number % len(KINDS)]
    return Draft(type=kind, dataset_id=A, linked_version=None, data=str(number))


async def fill(store: Store) -> None:
    """Two logs, each with events of its own between those of the other."""

    def subscribe(tx: Transaction) -> None:
        for number in (1, 2):
            tx.subscriptions.add(logs.subscription(number, A, now=NOW))

    await store.write(subscribe)
    done = 0
    for size in SIZES:
        for log in (ONE, TWO):
            drafts = [event(number) for number in range(done + 1, done + size + 1)]
            now = minute(done)
            await store.write(
                lambda tx, drafts=drafts, log=log, now=now: tx.log.append(drafts, to=[log], now=now)
            )
        done += size


async def page(
    store: Store, *, after: int, up_to: int, limit: int, types: Iterable[EventType] = ()
) -> list[tuple[int, str]]:
    chosen = frozenset(types)

    def work(tx: Transaction) -> list[tuple[int, str]]:
        found = tx.log.page(ONE, after=after, up_to=up_to, limit=limit, types=chosen)
        return [(number, body.data) for number, body in found]

    return await store.read(work)


def test_a_page_is_the_same_wherever_its_events_stand(play: Play) -> None:
    async def story(store: Store) -> None:
        await fill(store)
        for types in ((), (EventType.STALE,), (EventType.UPDATED, EventType.REMOVED)):
            kept = [
                (number, str(number))
                for number in range(1, EVENTS + 1)
                if not types or event(number).type in types
            ]
            for after in range(0, EVENTS + 1, 5):
                for limit in (1, 33, 500):
                    for up_to in (after + 40, EVENTS):
                        expected = [each for each in kept if after < each[0] <= up_to][:limit]
                        given = {"after": after, "up_to": up_to, "limit": limit}
                        assert await page(store, **given, types=types) == expected

    play(story)


def test_events_are_pruned_one_by_one_and_with_them_what_they_stood_in(play: Play) -> None:
    async def story(store: Store) -> None:
        await fill(store)
        done = 0
        for size in SIZES:
            before = minute(done)
            await store.write(lambda tx, before=before: tx.retention.drop_events(before=before))
            extent = await store.read(lambda tx: tx.log.extent(ONE, workspace=logs.WORKSPACE))
            assert extent == Extent(first=done + 1, last=EVENTS)
            expected = [(number, str(number)) for number in range(done + 1, EVENTS + 1)]
            assert await page(store, after=done, up_to=EVENTS, limit=500) == expected
            assert await page(store, after=0, up_to=EVENTS, limit=500) == expected
            with vars(store)["_readers"].begin() as connection:
                bodies = connection.scalar(select(func.count()).select_from(feed_body))
                assert bodies == 2 * (EVENTS - done)
                for run in connection.execute(select(feed_run)):
                    assert run.first_seq + run.bodies.count(",") > done + 1
            done += size
        await store.write(lambda tx: tx.retention.drop_events(before=minute(done)))
        assert await page(store, after=0, up_to=EVENTS, limit=500) == []
        await store.write(lambda tx: tx.log.append([event(1)], to=[ONE], now=minute(done)))
        assert await page(store, after=EVENTS, up_to=EVENTS + 1, limit=9) == [(EVENTS + 1, "1")]

    play(story)


def test_a_log_that_was_raised_or_deleted_leaves_no_run(play: Play) -> None:
    async def story(store: Store) -> None:
        def runs() -> set[int]:
            with vars(store)["_readers"].begin() as connection:
                return set(connection.scalars(select(feed_run.c.log)))

        await fill(store)
        assert len(runs()) == 2
        await store.write(lambda tx: tx.subscriptions.delete(TWO))
        assert len(runs()) == 1
        await store.write(lambda tx: tx.recovery.raise_logs(1000))
        assert runs() == set()
        await store.write(lambda tx: tx.log.append([event(1)], to=[ONE], now=NOW))
        last = EVENTS + 1001
        assert await page(store, after=last - 1, up_to=last, limit=9) == [(last, "1")]

    play(story)


def test_the_oldest_event_that_a_lane_has_not_come_to_is_found_wherever_it_stands(
    play: Play,
) -> None:
    async def story(store: Store) -> None:
        await fill(store)
        lane = logs.webhook(1, now=NOW)
        await store.write(lambda tx: tx.webhooks.add(lane))
        done = 0
        for size in SIZES:
            row = replace(lane, cursor=done)
            await store.write(lambda tx, row=row: tx.webhooks.save(row, at=NOW))
            found = await store.read(lambda tx: tx.overview.measures(now=NOW))
            assert found.undelivered_since == minute(done)
            done += size
        row = replace(lane, cursor=EVENTS)
        await store.write(lambda tx: tx.webhooks.save(row, at=NOW))
        found = await store.read(lambda tx: tx.overview.measures(now=NOW))
        assert found.undelivered_since is None

    play(story)
