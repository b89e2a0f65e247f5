"""Subscriptions made, changed and deleted, each with its events in one transaction."""

from __future__ import annotations

import msgspec

from ploti.errors import Fault, InvalidInput
from ploti.model.ids import SubscriptionId
from ploti.model.subscription import NewSubscription, Selection, Subscription, SubscriptionPatch
from ploti.model.webhook import OffReason
from ploti.model.wire import UNSET, Instant
from ploti.server.membership.principal import Principal
from ploti.server.membership.rights import PlanReading
from ploti.server.membership.selection import checked
from ploti.server.ports.rows import SubscriptionRow
from ploti.server.ports.store import Transaction
from ploti.server.service.change_membership import bring_subscription
from ploti.server.service.read_plans import lock_membership
from ploti.server.service.read_subscriptions import find_subscription, show_subscription

LONGEST_NAME = 200


def create_subscription(
    tx: Transaction,
    principal: Principal,
    new: NewSubscription,
    *,
    id: SubscriptionId,  # noqa: A002  the field's own name
    plans: PlanReading,
    now: Instant,
) -> Subscription:
    """Make a subscription; its log begins with an `added` for all that it delivers (S-09).

    Raises InvalidInput for a selection that cannot be meant.
    """
    row = SubscriptionRow(
        id=id,
        workspace_id=principal.workspace_id,
        name=_checked_name(new.name),
        selection=checked(new),
        created_at=now,
    )
    lock_membership(tx, plans, exclusive=False)
    tx.subscriptions.add(row)
    bring_subscription(tx, row, plans=plans, now=now)
    return show_subscription(row)


def update_subscription(
    tx: Transaction,
    principal: Principal,
    subscription_id: SubscriptionId,
    patch: SubscriptionPatch,
    *,
    plans: PlanReading,
    now: Instant,
) -> Subscription:
    """Change a subscription by a merge patch; what joins and leaves by it is written to its log.

    Raises NotFound, and InvalidInput for a selection that cannot be meant.
    """
    lock_membership(tx, plans, exclusive=False)
    before = find_subscription(tx, principal, subscription_id)
    after = msgspec.structs.replace(
        before,
        name=before.name if patch.name is UNSET else _checked_name(patch.name or ""),
        selection=checked(_patched(before.selection, patch)),
    )
    tx.subscriptions.save(after)
    if after.selection != before.selection:
        bring_subscription(tx, after, plans=plans, now=now)
    return show_subscription(after)


def delete_subscription(
    tx: Transaction, principal: Principal, subscription_id: SubscriptionId, *, now: Instant
) -> None:
    """Remove a subscription with its log; its webhooks stop (R-160). Raises NotFound."""
    tx.datasets.lock_catalogue(exclusive=False)
    find_subscription(tx, principal, subscription_id)
    tx.subscriptions.delete(subscription_id)
    tx.webhooks.turn_off(OffReason.SUBSCRIPTION_DELETED, at=now, subscription=subscription_id)


def _checked_name(name: str) -> str:
    if len(name) > LONGEST_NAME:
        message = f"has {len(name)} characters: {LONGEST_NAME} at most"
        raise InvalidInput(
            f"The name cannot be taken: it {message}", errors=(Fault("name", message),)
        )
    return name


def _patched(selection: Selection, patch: SubscriptionPatch) -> Selection:
    return Selection(
        places=selection.places if patch.places is UNSET else patch.places or [],
        topics=selection.topics if patch.topics is UNSET else patch.topics or [],
        datasets=selection.datasets if patch.datasets is UNSET else patch.datasets or [],
    )
