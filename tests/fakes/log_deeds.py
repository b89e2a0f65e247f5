"""What is done to the log's tables by many at once: joins, leaves, releases, holds, rollbacks."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

from tests.fakes.chain import check_log
from tests.fakes.manifests import read_manifest
from tests.fakes.plans import ALL_OPEN
from tests.fakes.releases import NOW, decide, declare, hold, release

from ploti.model.admin import HoldState
from ploti.model.ids import START, DatasetId, KeyId, MemberId, SubscriptionId, WorkspaceId
from ploti.model.subscription import NewSubscription, SubscriptionPatch
from ploti.model.wire import Instant
from ploti.server.membership.principal import Principal
from ploti.server.ports.store import Transaction
from ploti.server.service.change_subscription import (
    create_subscription,
    delete_subscription,
    update_subscription,
)
from ploti.server.service.read_events import read_events

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


def page(tx: Transaction, subscription: SubscriptionId, cursor: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        read_events(
            tx, WHO, subscription, cursor=cursor, limit=500, types=frozenset(), base="http://a"
        ).text
    )
    return found


def all_events(tx: Transaction, subscription: SubscriptionId) -> list[dict[str, Any]]:
    """A whole log."""
    events: list[dict[str, Any]] = []
    cursor: str = START
    while True:
        found = page(tx, subscription, cursor)
        if found["nextCursor"] == cursor:
            return events
        events += found["events"]
        cursor = found["nextCursor"]


def check_logs(tx: Transaction, *, now: Instant = NOW) -> None:
    """Every log is whole, and leads to the versions that its manifest names."""
    for row in tx.subscriptions.every():
        events = all_events(tx, row.id)
        manifest = read_manifest(tx, WHO, row.id, base="http://a", now=now)
        assert check_log(events) == {one.dataset_id: one.version for one in manifest.datasets}
        assert manifest.event_cursor == (events[-1]["id"] if events else START)


def pick(random: Random) -> Work:
    """Any deed; one of five is rolled back when all of it is done."""
    dataset, place = random.choice(DATASETS), random.choice(PLACES)
    subscription = random.choice(SUBSCRIPTIONS)
    end = random.choice([HoldState.RELEASED, HoldState.DISCARDED])
    deeds: list[Work] = [
        lambda tx: release(tx, dataset),
        lambda tx: release(tx, dataset),
        lambda tx: hold(tx, dataset),
        lambda tx: decide(tx, dataset, end),
        lambda tx: declare(tx, dataset, place=place),
        subscribe(subscription, place),
        subscribe(subscription, place),
        unsubscribe(random.choice(SUBSCRIPTIONS[1:])),
    ]
    deed = random.choice(deeds)
    return rolled_back(deed) if random.random() < 0.2 else deed
