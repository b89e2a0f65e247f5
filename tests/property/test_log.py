"""The law of the log: consecutive numbers and whole chains, whatever is written in which order."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.log_deeds import (
    DATASETS,
    KEPT,
    PLACES,
    SUBSCRIPTIONS,
    RolledBackError,
    Work,
    all_events,
    check_logs,
    page,
    rolled_back,
    subscribe,
    unsubscribe,
)
from tests.fakes.releases import decide, declare, hold, release

from ploti.model.admin import HoldState
from ploti.model.ids import START
from ploti.server.adapters.store import SqliteStore
from ploti.server.ports.store import Transaction

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
        check_logs(tx)
        assert all_events(tx, KEPT) == seen

    await store.read(logs)


@settings(max_examples=25, deadline=None)
@given(histories)
def test_logs_are_gap_free_and_chains_whole_whatever_is_written_or_rolled_back_r003_r076(
    history: list[tuple[Work, bool]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder), history))
