"""The law of the log: consecutive numbers and whole chains, whatever is written in which order."""

import asyncio
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.chain import check_log
from tests.fakes.plans import ALL_OPEN
from tests.fakes.releases import NOW, decide, declare, hold, release

from ploti.model.admin import HoldState
from ploti.model.ids import START, DatasetId, KeyId, MemberId, SubscriptionId, WorkspaceId
from ploti.model.subscription import NewSubscription, SubscriptionPatch
from ploti.server.adapters.store import SqliteStore
from ploti.server.membership.principal import Principal
from ploti.server.ports.store import Transaction
from ploti.server.service.change_subscription import (
    create_subscription,
    delete_subscription,
    update_subscription,
)
from ploti.server.service.read_events import read_events
from ploti.server.service.read_manifest import get_manifest

WHO = Principal(
    workspace_id=WorkspaceId("ws_1"),
    member_id=MemberId("mem_1"),
    key_id=KeyId("key_1"),
    permissions=frozenset({"feeds"}),
)
DATASETS = [DatasetId(f"ds_{name}") for name in "abc"]
PLACES = ["us", "us/fl", "us/ga"]
SUBSCRIPTIONS = [SubscriptionId(f"sub_{number}") for number in range(4)]
KEPT = SUBSCRIPTIONS[0]

Work = Callable[[Transaction], object]


class RolledBackError(Exception):
    """A transaction that fails when all its work is done."""


def rolled_back(work: Work) -> Work:
    def failing(tx: Transaction) -> None:
        work(tx)
        raise RolledBackError

    return failing


def subscribe(subscription: SubscriptionId, place: str) -> Work:
    def work(tx: Transaction) -> None:
        if tx.subscriptions.get(subscription, workspace=WHO.workspace_id) is None:
            new = NewSubscription(places=[place])
            create_subscription(tx, WHO, new, id=subscription, plans=ALL_OPEN, now=NOW)
        else:
            patch = SubscriptionPatch(places=[place])
            update_subscription(tx, WHO, subscription, patch, plans=ALL_OPEN, now=NOW)

    return work


def unsubscribe(subscription: SubscriptionId) -> Work:
    def work(tx: Transaction) -> None:
        if tx.subscriptions.get(subscription, workspace=WHO.workspace_id) is not None:
            delete_subscription(tx, WHO, subscription, now=NOW)

    return work


datasets, places = st.sampled_from(DATASETS), st.sampled_from(PLACES)
subscriptions = st.sampled_from(SUBSCRIPTIONS)
releases = st.builds(lambda dataset: lambda tx: release(tx, dataset), datasets)
deeds = st.one_of(
    releases,
    releases,
    st.builds(lambda dataset: lambda tx: hold(tx, dataset), datasets),
    st.builds(
        lambda dataset, end: lambda tx: decide(tx, dataset, end),
        datasets,
        st.sampled_from([HoldState.RELEASED, HoldState.DISCARDED]),
    ),
    st.builds(
        lambda dataset, place: lambda tx: declare(tx, dataset, place=place), datasets, places
    ),
    st.builds(subscribe, subscriptions, places),
    st.builds(unsubscribe, st.sampled_from(SUBSCRIPTIONS[1:])),
)
histories = st.lists(st.tuples(deeds, st.booleans()), min_size=5, max_size=40)


def page(tx: Transaction, subscription: SubscriptionId, cursor: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        read_events(
            tx, WHO, subscription, cursor=cursor, limit=500, types=frozenset(), base="http://a"
        ).text
    )
    return found


async def follow(store: SqliteStore, done: asyncio.Event) -> list[dict[str, Any]]:
    """Read one log by cursor while it is written, as a subscriber does."""
    seen: list[dict[str, Any]] = []
    cursor: str = START
    while True:
        last_round = done.is_set()
        found = await store.read(lambda tx, cursor=cursor: page(tx, KEPT, cursor))
        seen += found["events"]
        if last_round and found["nextCursor"] == cursor:
            return seen
        cursor = found["nextCursor"]


async def write_all(store: SqliteStore, history: list[tuple[Work, bool]]) -> None:
    """Hand in every transaction at once: they take turns, and those that fail leave nothing."""
    writes = [store.write(rolled_back(work) if fails else work) for work, fails in history]
    for result in await asyncio.gather(*writes, return_exceptions=True):
        if isinstance(result, BaseException) and not isinstance(result, RolledBackError):
            raise result


async def play(folder: Path, history: list[tuple[Work, bool]]) -> None:
    store = SqliteStore(str(folder / "ploti.db"))
    try:
        for dataset in DATASETS:
            await store.write(lambda tx, dataset=dataset: declare(tx, dataset))
        await store.write(subscribe(KEPT, "us"))
        done = asyncio.Event()
        reader = asyncio.create_task(follow(store, done))
        await write_all(store, history)
        done.set()
        seen = await reader
        await check_all(store, seen)
    finally:
        await store.close()


async def check_all(store: SqliteStore, seen: list[dict[str, Any]]) -> None:
    def logs(tx: Transaction) -> None:
        for row in tx.subscriptions.every():
            events = page(tx, row.id, START)["events"]
            manifest = get_manifest(tx, WHO, row.id, base="http://a", now=NOW)
            assert check_log(events) == {one.dataset_id: one.version for one in manifest.datasets}
            assert manifest.event_cursor == (events[-1]["id"] if events else START)
            if row.id == KEPT:
                assert events == seen

    await store.read(logs)


@settings(max_examples=25, deadline=None)
@given(histories)
def test_logs_are_gap_free_and_chains_whole_whatever_is_written_or_rolled_back_r003_r076(
    history: list[tuple[Work, bool]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder), history))
