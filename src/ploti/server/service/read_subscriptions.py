"""The workspace's subscriptions."""

from __future__ import annotations

from ploti.errors import NotFound
from ploti.model.ids import SubscriptionId
from ploti.model.page import SubscriptionPage
from ploti.model.subscription import Subscription
from ploti.server.eventlog.paging import Extent
from ploti.server.membership.principal import Principal
from ploti.server.ports.rows import SubscriptionRow
from ploti.server.ports.store import Transaction
from ploti.server.service.page_lists import check_limit, cut, read_timed_cursor, timed_cursor


def find_subscription(
    tx: Transaction, principal: Principal, subscription_id: SubscriptionId
) -> SubscriptionRow:
    """A subscription of the caller's workspace; raises NotFound, for another workspace's too."""
    found = tx.subscriptions.get(subscription_id, workspace=principal.workspace_id)
    if found is None:
        raise _unknown(subscription_id)
    return found


def find_log(tx: Transaction, principal: Principal, subscription_id: SubscriptionId) -> Extent:
    """The extent of a log of the caller's workspace; raises NotFound as `find_subscription`."""
    found = tx.log.extent(subscription_id, workspace=principal.workspace_id)
    if found is None:
        raise _unknown(subscription_id)
    return found


def get_subscription(
    tx: Transaction, principal: Principal, subscription_id: SubscriptionId
) -> Subscription:
    """One subscription; raises NotFound."""
    return show_subscription(find_subscription(tx, principal, subscription_id))


def list_subscriptions(
    tx: Transaction, principal: Principal, *, cursor: str | None, limit: int
) -> SubscriptionPage:
    """The workspace's subscriptions, oldest first."""
    check_limit(limit)
    place = read_timed_cursor(cursor)
    found = tx.subscriptions.page(
        workspace=principal.workspace_id,
        after=place and (place[0], SubscriptionId(place[1])),
        limit=limit + 1,
    )
    page, next_cursor = cut(
        found, limit=limit, cursor=lambda row: timed_cursor(row.created_at, row.id)
    )
    shown = [show_subscription(row) for row in page]
    return SubscriptionPage(subscriptions=shown, next_cursor=next_cursor)


def show_subscription(row: SubscriptionRow) -> Subscription:
    """A subscription as its workspace sees it."""
    return Subscription(
        id=row.id,
        name=row.name,
        places=row.selection.places,
        topics=row.selection.topics,
        datasets=row.selection.datasets,
        created_at=row.created_at,
    )


def _unknown(subscription_id: SubscriptionId) -> NotFound:
    return NotFound(f"This workspace has no subscription {subscription_id}")
