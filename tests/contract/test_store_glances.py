"""What every store gives at one glance: a page of a log, and whose key it is asked for by."""

import asyncio
from datetime import timedelta

from tests.contract.conftest import Play
from tests.fakes.releases import NOW

from ploti.model.event import EventType
from ploti.model.ids import DatasetId, KeyId, MemberId, SubscriptionId, WorkspaceId
from ploti.model.subscription import Selection
from ploti.model.wire import Instant
from ploti.server.eventlog.drafts import Draft
from ploti.server.eventlog.paging import Extent
from ploti.server.membership.principal import Principal
from ploti.server.ports.rows import KeyRow, SubscriptionRow
from ploti.server.ports.store import Store, Transaction

HERE, ELSEWHERE = WorkspaceId("ws_1"), WorkspaceId("ws_2")
LOG, ANOTHER = SubscriptionId("sub_1"), SubscriptionId("sub_2")
LATER = Instant.of(NOW + timedelta(hours=1))
WHO = Principal(
    key_id=KeyId("key_1"),
    workspace_id=HERE,
    member_id=MemberId("mem_1"),
    permissions=frozenset({"feeds"}),
)
Seen = tuple[Principal, Extent, list[tuple[int, str]]]


def set_up(tx: Transaction) -> None:
    """A key, a log of its workspace and one of another, with three events each."""
    tx.keys.add(
        KeyRow(
            id=WHO.key_id,
            workspace_id=HERE,
            member_id=WHO.member_id,
            permissions=["feeds"],
            prefix="ploti_abcdef",
            digest="d1",
            created_at=NOW,
            expires_at=LATER,
        )
    )
    for log, workspace in ((LOG, HERE), (ANOTHER, ELSEWHERE)):
        tx.subscriptions.add(
            SubscriptionRow(
                id=log, workspace_id=workspace, name="", selection=Selection(), created_at=NOW
            )
        )
    append(tx, "1", "2", "3")


def append(tx: Transaction, *data: str, at: Instant = NOW) -> None:
    drafts = [
        Draft(type=EventType.REMOVED, dataset_id=DatasetId("ds_a"), linked_version=None, data=each)
        for each in data
    ]
    tx.log.append(drafts, to=[LOG, ANOTHER], now=at)


async def glance(
    store: Store,
    digest: str = "d1",
    log: SubscriptionId = LOG,
    *,
    after: int = 0,
    limit: int = 500,
    now: Instant = NOW,
) -> Seen | None:
    found = await store.log_by_key(digest, log, after=after, limit=limit, now=now)
    return found and (*found[:2], [(seq, body.data) for seq, body in found[2]])


def test_a_glance_has_whose_key_it_is_how_far_the_log_goes_and_its_events(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(set_up)
        whole = Extent(first=1, last=3)
        assert await glance(store) == (WHO, whole, [(1, "1"), (2, "2"), (3, "3")])
        assert await glance(store, after=1, limit=1) == (WHO, whole, [(2, "2")])
        assert await glance(store, after=3) == (WHO, whole, [])
        assert await glance(store, after=9) == (WHO, whole, [])
        await store.write(lambda tx: append(tx, "4"))
        assert await glance(store, after=3) == (WHO, Extent(first=1, last=4), [(4, "4")])

    play(story)


def test_a_glance_shows_nothing_to_a_key_that_is_not_good_and_no_log_of_others(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(set_up)
        assert await glance(store) is not None
        assert await glance(store, "d2") is None
        assert await glance(store, now=LATER) is None
        assert await glance(store, log=ANOTHER) is None
        assert await glance(store, log=SubscriptionId("sub_3")) is None
        await store.write(lambda tx: tx.keys.revoke(WHO.key_id, at=NOW))
        assert await glance(store) is None

    play(story)


def test_a_glance_at_events_that_are_pruned_shows_nothing(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(set_up)
        await store.write(lambda tx: append(tx, "4", at=LATER))
        await store.write(lambda tx: tx.retention.drop_events(before=LATER))
        assert await glance(store, after=1) is None
        assert await glance(store, after=3) == (WHO, Extent(first=4, last=4), [(4, "4")])

    play(story)


def test_after_glances_a_read_still_sees_one_moment(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(set_up)
        await asyncio.gather(*(glance(store) for _ in range(50)))
        loop = asyncio.get_running_loop()

        def work(tx: Transaction) -> tuple[Extent | None, Extent | None]:
            before = tx.log.extent(LOG, workspace=HERE)
            write = store.write(lambda tx: append(tx, "4"))
            asyncio.run_coroutine_threadsafe(write, loop).result(timeout=30)
            return before, tx.log.extent(LOG, workspace=HERE)

        before, after = await store.read(work)
        assert before == after == Extent(first=1, last=3)

    play(story)
