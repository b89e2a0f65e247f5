"""What a kill -9 of the writing process leaves in the database."""

import asyncio
import json
import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.chain import check_log
from tests.fakes.plans import ALL_OPEN
from tests.fakes.releases import NOW, declare
from tests.integration.releasing_writer import DATASET

from ploti.model.ids import START, KeyId, MemberId, SubscriptionId, WorkspaceId
from ploti.model.subscription import NewSubscription
from ploti.server.adapters.store import SqliteStore
from ploti.server.membership.principal import Principal
from ploti.server.ports.store import Transaction
from ploti.server.service.change_subscription import create_subscription
from ploti.server.service.read_events import read_events

ROOT = Path(__file__).parents[2]
WHO = Principal(
    workspace_id=WorkspaceId("ws_1"),
    member_id=MemberId("mem_1"),
    key_id=KeyId("key_1"),
    permissions=frozenset({"feeds"}),
)
SUBSCRIPTIONS = [SubscriptionId(f"sub_{number}") for number in range(3)]


def in_store(path: str, work: Any) -> Any:
    async def run() -> Any:
        store = SqliteStore(path)
        try:
            return await store.write(work)
        finally:
            await store.close()

    return asyncio.run(run())


def prepare(tx: Transaction) -> None:
    declare(tx, DATASET)
    for subscription in SUBSCRIPTIONS:
        new = NewSubscription(datasets=[DATASET])
        create_subscription(tx, WHO, new, id=subscription, plans=ALL_OPEN, now=NOW)


def all_events(tx: Transaction, subscription: SubscriptionId) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    cursor: str = START
    while True:
        page = read_events(
            tx, WHO, subscription, cursor=cursor, limit=500, types=frozenset(), base="http://a"
        )
        found = json.loads(page.text)
        events += found["events"]
        if not page.looked_at_any:
            return events
        cursor = found["nextCursor"]


def check(tx: Transaction) -> int:
    """Every log is whole and says the same; gives the newest version."""
    dataset = tx.datasets.get(DATASET)
    assert dataset is not None
    for subscription in SUBSCRIPTIONS:
        assert check_log(all_events(tx, subscription)) == {DATASET: dataset.current_version}
    assert dataset.next_number == (dataset.current_version or 0) + 1
    return dataset.current_version or 0


def write_and_kill(path: str, *, after: float) -> int:
    """The newest number that the writer said before it was killed."""
    command = [sys.executable, "-m", "tests.integration.releasing_writer", path]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(after)
        writer.kill()
        rest = writer.stdout.read()
    whole = [line for line in (first + rest).splitlines(keepends=True) if line.endswith("\n")]
    return int(whole[-1])


@pytest.mark.parametrize("seed", range(4))
def test_a_killed_writer_loses_nothing_that_it_said_and_leaves_no_gap(
    tmp_path: Path, seed: int
) -> None:
    path = str(tmp_path / "ploti.db")
    in_store(path, prepare)
    after = random.Random(seed)
    said = write_and_kill(path, after=after.uniform(0, 0.2))
    kept = in_store(path, check)
    assert said <= kept <= said + 1
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()
