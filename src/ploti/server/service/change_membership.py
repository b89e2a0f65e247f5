"""Membership worked out again: what joins and leaves, with the events that say so."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta

from ploti.model.event import RemovedReason
from ploti.model.ids import SubscriptionId, WorkspaceId
from ploti.model.wire import Instant
from ploti.server.eventlog.drafts import Draft, joined, left
from ploti.server.membership.rights import Filing, PlanReading
from ploti.server.membership.selection import move
from ploti.server.ports.rows import JobKind, SubscriptionRow
from ploti.server.ports.store import Transaction
from ploti.server.service.read_plans import rights_of

ASK_AGAIN = timedelta(seconds=60)
"""How long after a plan could not be read it is asked for again (R-070)."""


def bring_subscription(
    tx: Transaction, subscription: SubscriptionRow, *, plans: PlanReading, now: Instant
) -> None:
    """Make a subscription deliver what its selection takes in, under the catalogue's lock."""
    workspace_id = subscription.workspace_id
    change = move(
        subscription.selection,
        tx.datasets.filings(),
        rights=rights_of(tx, plans, [workspace_id])[workspace_id],
        delivered=tx.memberships.of(subscription.id),
    )
    if change.unsure:
        _ask_again(tx, workspace_id, now=now)
    leaving = [dataset_id for dataset_id, _ in change.leaves]
    # Those that leave, too: a release that is under way tells this subscription before it leaves
    locked = tx.datasets.lock_standing({*change.joins, *leaving})
    standings = [standing for standing in locked if standing.dataset_id not in leaving]
    tx.memberships.leave([(subscription.id, dataset_id) for dataset_id in leaving])
    tx.memberships.join([(subscription.id, standing.dataset_id) for standing in standings])
    drafts: list[Draft] = []
    for dataset_id, reason in change.leaves:
        drafts += left(dataset_id, reason)
    for standing in standings:
        drafts += joined(standing)
    tx.log.append(drafts, to=[subscription.id], now=now)


def bring_dataset(tx: Transaction, filing: Filing, *, plans: PlanReading, now: Instant) -> None:
    """Make every subscription deliver a dataset, or not, as it is filed now.

    Under the catalogue's lock, exclusive, and the dataset's.
    """
    dataset_id = filing.dataset_id
    delivering = tx.memberships.delivering(dataset_id)
    subscriptions = tx.subscriptions.every()
    rights = rights_of(tx, plans, {each.workspace_id for each in subscriptions})
    joins: list[SubscriptionId] = []
    leaves: defaultdict[RemovedReason, list[SubscriptionId]] = defaultdict(list)
    unsure: set[WorkspaceId] = set()
    for subscription in subscriptions:
        change = move(
            subscription.selection,
            [filing],
            rights=rights[subscription.workspace_id],
            delivered={dataset_id} if subscription.id in delivering else set(),
        )
        if change.unsure:
            unsure.add(subscription.workspace_id)
        if change.joins:
            joins.append(subscription.id)
        for _, reason in change.leaves:
            leaves[reason].append(subscription.id)
    for workspace_id in unsure:
        _ask_again(tx, workspace_id, now=now)
    messages = [(left(dataset_id, reason), ids) for reason, ids in leaves.items()]
    messages += [(joined(each), joins) for each in tx.datasets.lock_standing([dataset_id])]
    tx.memberships.leave([(each, dataset_id) for ids in leaves.values() for each in ids])
    tx.memberships.join([(each, dataset_id) for each in joins])
    tx.log.append_each(messages, now=now)


def _ask_again(tx: Transaction, workspace_id: WorkspaceId, *, now: Instant) -> None:
    if not tx.jobs.is_planned(JobKind.MEMBERSHIP, workspace_id):
        tx.jobs.put(JobKind.MEMBERSHIP, workspace_id, at=Instant.of(now + ASK_AGAIN))
