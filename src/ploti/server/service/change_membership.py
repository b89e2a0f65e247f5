"""Membership worked out again: what joins and leaves, with the events that say so."""

from __future__ import annotations

from collections import defaultdict

from ploti.model.event import RemovedReason
from ploti.model.ids import SubscriptionId
from ploti.model.wire import Instant
from ploti.server.eventlog.drafts import Draft, joined, left
from ploti.server.membership.selection import Filing, move
from ploti.server.ports.rows import SubscriptionRow
from ploti.server.ports.store import Transaction


def bring_subscription(tx: Transaction, subscription: SubscriptionRow, *, now: Instant) -> None:
    """Make a subscription deliver what its selection takes in, under the catalogue's lock."""
    change = move(
        subscription.selection,
        tx.datasets.filings(),
        delivered=tx.memberships.of(subscription.id),
    )
    standings = tx.datasets.lock_standing(change.joins)
    tx.memberships.leave([(subscription.id, dataset_id) for dataset_id, _ in change.leaves])
    tx.memberships.join([(subscription.id, standing.dataset_id) for standing in standings])
    drafts: list[Draft] = []
    for dataset_id, reason in change.leaves:
        drafts += left(dataset_id, reason)
    for standing in standings:
        drafts += joined(standing)
    tx.log.append(drafts, to=[subscription.id], now=now)


def bring_dataset(tx: Transaction, filing: Filing, *, now: Instant) -> None:
    """Make every subscription deliver a dataset, or not, as it is filed now.

    Under the catalogue's lock, exclusive, and the dataset's.
    """
    dataset_id = filing.dataset_id
    delivering = tx.memberships.delivering(dataset_id)
    joins: list[SubscriptionId] = []
    leaves: defaultdict[RemovedReason, list[SubscriptionId]] = defaultdict(list)
    for subscription in tx.subscriptions.every():
        delivered = {dataset_id} if subscription.id in delivering else set()
        change = move(subscription.selection, [filing], delivered=delivered)
        if change.joins:
            joins.append(subscription.id)
        for _, reason in change.leaves:
            leaves[reason].append(subscription.id)
    for reason, ids in leaves.items():
        tx.memberships.leave([(each, dataset_id) for each in ids])
        tx.log.append(left(dataset_id, reason), to=ids, now=now)
    tx.memberships.join([(each, dataset_id) for each in joins])
    for standing in tx.datasets.lock_standing([dataset_id]):
        tx.log.append(joined(standing), to=joins, now=now)
