"""The workspace's webhooks, and what was sent to each."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta

import msgspec

from ploti.errors import NotFound
from ploti.model.ids import DeliveryId, WebhookId, event_id
from ploti.model.page import DeliveryPage, WebhookPage
from ploti.model.webhook import Attempt, Delivery, Webhook
from ploti.model.wire import Instant
from ploti.server.membership.principal import FEEDS, Principal, require
from ploti.server.ports.rows import DeliveryRow, TryRow, WebhookRow
from ploti.server.ports.store import Transaction
from ploti.server.service.page_lists import check_limit, cut, read_timed_cursor, timed_cursor

_DAY = timedelta(days=1)


def find_webhook(tx: Transaction, principal: Principal, webhook_id: WebhookId) -> WebhookRow:
    """A webhook of the caller's workspace.

    Raises NotFound, and Forbidden where the key lacks `feeds`: it gets a subscription's events.
    """
    found = tx.webhooks.get(webhook_id, workspace=principal.workspace_id)
    if found is None:
        raise NotFound(f"This workspace has no webhook {webhook_id}")
    require(principal, FEEDS)
    return found


def find_delivery(tx: Transaction, webhook: WebhookRow, delivery_id: DeliveryId) -> DeliveryRow:
    """A delivery of a webhook; raises NotFound."""
    found = tx.deliveries.get(delivery_id, webhook=webhook.id)
    if found is None:
        raise NotFound(f"{webhook.id} has no delivery {delivery_id}")
    return found


def get_webhook(
    tx: Transaction, principal: Principal, webhook_id: WebhookId, *, now: Instant
) -> Webhook:
    """One webhook, with how its last day went; raises NotFound or Forbidden."""
    row = find_webhook(tx, principal, webhook_id)
    last_day = tx.webhooks.last_day(row.id, since=Instant.of(now - _DAY))
    return msgspec.structs.replace(show_webhook(tx, row), last_day=last_day)


def list_webhooks(
    tx: Transaction, principal: Principal, *, cursor: str | None, limit: int
) -> WebhookPage:
    """The workspace's webhooks, oldest first; none of a subscription's without `feeds` (S-47)."""
    check_limit(limit)
    place = read_timed_cursor(cursor)
    if FEEDS not in principal.permissions:
        return WebhookPage(webhooks=[], next_cursor=None)
    found = tx.webhooks.page(
        workspace=principal.workspace_id,
        after=place and (place[0], WebhookId(place[1])),
        limit=limit + 1,
    )
    page, next_cursor = cut(
        found, limit=limit, cursor=lambda row: timed_cursor(row.created_at, row.id)
    )
    return WebhookPage(webhooks=[show_webhook(tx, row) for row in page], next_cursor=next_cursor)


def list_deliveries(
    tx: Transaction, principal: Principal, webhook_id: WebhookId, *, cursor: str | None, limit: int
) -> DeliveryPage:
    """A webhook's deliveries with their attempts, newest first; raises NotFound or Forbidden."""
    check_limit(limit)
    place = read_timed_cursor(cursor)
    webhook = find_webhook(tx, principal, webhook_id)
    before = place and (place[0], DeliveryId(place[1]))
    found = tx.deliveries.page(webhook.id, before=before, limit=limit + 1)
    page, next_cursor = cut(
        found, limit=limit, cursor=lambda row: timed_cursor(row.created_at, row.id)
    )
    return DeliveryPage(deliveries=_show_all(tx, page), next_cursor=next_cursor)


def get_delivery(tx: Transaction, webhook: WebhookRow, delivery_id: DeliveryId) -> Delivery:
    """One delivery with its attempts; raises NotFound."""
    (shown,) = _show_all(tx, [find_delivery(tx, webhook, delivery_id)])
    return shown


def show_webhook(tx: Transaction, row: WebhookRow) -> Webhook:
    """A webhook as its workspace sees it: nothing of its secret."""
    last = tx.log.last_numbers([row.subscription_id]).get(row.subscription_id, row.cursor)
    return Webhook(
        id=row.id,
        url=row.url,
        subscription_id=row.subscription_id,
        events=row.events,
        created_at=row.created_at,
        member_id=row.member_id,
        member_name=tx.members.names([row.member_id]).get(row.member_id, ""),
        state=row.state,
        off_reason=row.off_reason,
        off_at=row.off_at,
        last_success_at=row.health.last_success_at,
        failing_since=row.health.failing_since,
        events_behind=max(0, last - row.cursor),
    )


def _show_all(tx: Transaction, rows: list[DeliveryRow]) -> list[Delivery]:
    tries: defaultdict[DeliveryId, list[TryRow]] = defaultdict(list)
    for each in tx.deliveries.attempts([row.id for row in rows]):
        tries[each.delivery_id].append(each)
    return [show_delivery(row, tries[row.id]) for row in rows]


def show_delivery(row: DeliveryRow, tries: list[TryRow]) -> Delivery:
    """A delivery as its workspace sees it."""
    return Delivery(
        id=row.id,
        kind=row.kind,
        event_id=None if row.seq is None else event_id(row.seq),
        dataset_id=row.dataset_id,
        state=row.state,
        created_at=row.created_at,
        ended_at=row.ended_at,
        next_attempt_at=row.next_at,
        attempts=[
            Attempt(
                number=each.number,
                started_at=each.started_at,
                ms=each.ms,
                url=each.url,
                address=each.address,
                status=each.status,
                error=each.error,
                location=each.location,
                response=each.response,
            )
            for each in tries
        ],
    )
