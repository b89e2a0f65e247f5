"""Webhooks and the leases of their lanes in tables."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import (
    BindParameter,
    Connection,
    RowMapping,
    Select,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.sql import ColumnElement

from ploti.model.ids import MemberId, SubscriptionId, WebhookId, WorkspaceId
from ploti.model.webhook import DeliveryState, LastDay, OffReason, WebhookState
from ploti.model.wire import Instant
from ploti.server.adapters.store.columns import At, fields_of, value_of
from ploti.server.adapters.store.tables import delivery, delivery_attempt, feed_log, webhook
from ploti.server.deliver.health import SLOW, Health
from ploti.server.ports.rows import Claim, ReadyLane, SealedSecret, WebhookRow

_P95 = 0.95
_MENDABLE = (OffReason.GONE, OffReason.FAILING)
"""Reasons after which a webhook can be turned on again."""


class SqlWebhooks:
    """The port's `Webhooks` over one connection; `locks` where the transaction writes."""

    def __init__(self, connection: Connection, *, locks: bool) -> None:
        self._connection = connection
        self._locks = locks

    def add(self, row: WebhookRow) -> None:
        """Keep a new webhook."""
        self._connection.execute(insert(webhook).values({**_fields(row), "lease_token": 0}))

    def save(self, row: WebhookRow) -> None:
        """Keep a changed webhook; what is under way for it is not recorded any more."""
        changed = {**_fields(row), "lease_token": webhook.c.lease_token + 1, "lease_until": None}
        self._connection.execute(update(webhook).where(webhook.c.id == row.id).values(changed))

    def count_round(self, webhook_id: WebhookId) -> None:
        """Count that something is sent again; what is under way goes on."""
        more = {"rounds": webhook.c.rounds + 1}
        self._connection.execute(update(webhook).where(webhook.c.id == webhook_id).values(more))

    def delete(self, webhook_id: WebhookId) -> None:
        """Remove a webhook with its deliveries."""
        for gone in (
            delete(delivery_attempt).where(delivery_attempt.c.webhook_id == webhook_id),
            delete(delivery).where(delivery.c.webhook_id == webhook_id),
            delete(webhook).where(webhook.c.id == webhook_id),
        ):
            self._connection.execute(gone)

    def get(self, webhook_id: WebhookId, *, workspace: WorkspaceId) -> WebhookRow | None:
        """A webhook of this workspace."""
        same = (webhook.c.id == webhook_id, webhook.c.workspace_id == workspace)
        return self._one(*same)

    def page(
        self, *, workspace: WorkspaceId, after: tuple[Instant, WebhookId] | None, limit: int
    ) -> list[WebhookRow]:
        """The workspace's webhooks made after another one, oldest first."""
        place = (webhook.c.created_at, webhook.c.id)
        wanted = select(webhook).where(webhook.c.workspace_id == workspace)
        if after is not None:
            wanted = wanted.where(tuple_(*place) > after)
        ordered = wanted.order_by(*place).limit(limit)
        return [_row(row) for row in self._connection.execute(ordered).mappings()]

    def turn_off(
        self,
        reason: OffReason,
        *,
        at: Instant,
        subscription: SubscriptionId | None = None,
        member: MemberId | None = None,
    ) -> None:
        """Turn off for good every webhook of a subscription or a member; what waits is cancelled.

        One that is off already gets the reason, unless it was off for good before.
        """
        of = (
            webhook.c.subscription_id == subscription
            if subscription is not None
            else webhook.c.member_id == member
        )
        alive = and_(of, or_(webhook.c.off_reason.is_(None), webhook.c.off_reason.in_(_MENDABLE)))
        waiting = and_(
            delivery.c.state == DeliveryState.WAITING,
            delivery.c.webhook_id.in_(select(webhook.c.id).where(alive)),
        )
        cancelled = {"state": DeliveryState.CANCELLED, "next_at": None, "ended_at": at}
        self._connection.execute(update(delivery).where(waiting).values(cancelled))
        off = {
            "state": WebhookState.OFF,
            "off_reason": reason,
            "off_at": at,
            "lease_token": webhook.c.lease_token + 1,
            "lease_until": None,
        }
        self._connection.execute(update(webhook).where(alive).values(off))

    def last_day(self, webhook_id: WebhookId, *, since: Instant) -> LastDay:
        """How the attempts since then went."""
        of = (
            delivery_attempt.c.webhook_id == webhook_id,
            delivery_attempt.c.started_at >= since,
        )
        good = func.sum(case((delivery_attempt.c.delivered, 1), else_=0))
        count, delivered = self._connection.execute(select(func.count(), good).where(*of)).one()
        if not count:
            return LastDay(attempts=0, success_rate=None, p95_ms=None)
        by_time = select(delivery_attempt.c.ms).where(*of).order_by(delivery_attempt.c.ms)
        ninety_fifth = by_time.limit(1).offset(int(_P95 * (count - 1)))
        return LastDay(
            attempts=count,
            success_rate=round(delivered / count, 4),
            p95_ms=self._connection.scalar(ninety_fifth),
        )

    def ready(self, *, at: Instant, limit: int) -> list[ReadyLane]:
        """Lanes with something due and no lease, those first that were served longest ago."""
        found = []
        for wanted, slow in ((_READY_SLOW, True), (_READY, False)):
            rows = self._connection.execute(wanted, {"at": at, "most": limit})
            found += [(row.served_at, row.id, slow) for row in rows]
        return [ReadyLane(webhook_id=id_, slow=slow_) for _, id_, slow_ in sorted(found)]

    def claim(self, ids: Collection[WebhookId], *, at: Instant, until: Instant) -> list[Claim]:
        """Lease those of these lanes that nobody else has meanwhile."""
        free = select(webhook.c.id).where(webhook.c.id.in_(ids), _IS_FREE)
        leased = (
            update(webhook)
            .where(webhook.c.id.in_(free.with_for_update(skip_locked=True)))
            .values(lease_until=until, lease_token=webhook.c.lease_token + 1)
            .returning(webhook.c.id, webhook.c.lease_token)
        )
        rows = self._connection.execute(leased, {"at": at})
        return [Claim(webhook_id=row.id, token=row.lease_token) for row in rows]

    def claimed(self, claim: Claim) -> WebhookRow | None:
        """The webhook behind a claim; None where the claim does not hold any more."""
        found = self._connection.execute(_CLAIMED, _of(claim)).mappings().first()
        return None if found is None else _row(found)

    def give_back(self, claim: Claim, row: WebhookRow) -> bool:
        """Keep a lane's state and end its lease; False where the claim does not hold any more."""
        lane = {
            **fields_of(row.health),
            "state": row.state,
            "off_reason": row.off_reason,
            "off_at": row.off_at,
            "cursor": row.cursor,
            "served_at": row.served_at,
            "lease_until": None,
        }
        return self._connection.execute(_GIVE_BACK, lane | _of(claim)).rowcount == 1

    def end_leases(self) -> None:
        """End every lease: at the start of the only worker, when none can be at work."""
        free = {"lease_until": None, "lease_token": webhook.c.lease_token + 1}
        leased = webhook.c.lease_until.is_not(None)
        self._connection.execute(update(webhook).where(leased).values(free))

    def sealed(self) -> list[SealedSecret]:
        """The secrets of all webhooks, to prove that they can be opened."""
        return [each for secrets in self._connection.scalars(_SECRETS) for each in secrets]

    def _one(self, *same: ColumnElement[bool]) -> WebhookRow | None:
        wanted = select(webhook).where(*same)
        if self._locks:
            wanted = wanted.with_for_update()
        found = self._connection.execute(wanted).mappings().first()
        return None if found is None else _row(found)


_SECRETS = select(webhook.c.secrets)


def _of(claim: Claim) -> dict[str, object]:
    return {"claimed": claim.webhook_id, "token": claim.token}


def _fields(row: WebhookRow) -> dict[str, Any]:
    fields = fields_of(row)
    health: Health = fields.pop("health")
    return {**fields, **fields_of(health)}


def _row(row: RowMapping) -> WebhookRow:
    own = [name for name in WebhookRow.__struct_fields__ if name != "health"]
    return WebhookRow(**{name: row[name] for name in own}, health=value_of(Health, row))


def _is_over(column: ColumnElement[Any]) -> ColumnElement[bool]:
    return or_(column.is_(None), column <= _AT)


def _ready(kind: ColumnElement[bool]) -> Select[tuple[WebhookId, Instant]]:
    return (
        select(webhook.c.id, webhook.c.served_at)
        .join_from(webhook, feed_log, feed_log.c.subscription_id == webhook.c.subscription_id)
        .where(kind, _IS_FREE, _IS_DUE)
        .order_by(webhook.c.served_at)
        .limit(bindparam("most"))
    )


# Asked at every look and in every turn: made once, with parameters, they cost a fifth.
_AT: BindParameter[Instant] = bindparam("at", type_=At)
_IS_FREE = and_(webhook.c.state == WebhookState.ON, _is_over(webhook.c.lease_until))
_IS_SLOW = or_(webhook.c.failing_since.is_not(None), webhook.c.average_ms > SLOW)
_FRESH = and_(feed_log.c.last_seq > webhook.c.cursor, _is_over(webhook.c.paced_until))
_WAITING = exists().where(
    delivery.c.webhook_id == webhook.c.id,
    delivery.c.state == DeliveryState.WAITING,
    delivery.c.next_at <= _AT,
)
_IS_DUE = and_(_is_over(webhook.c.paused_until), or_(_FRESH, _WAITING))
_READY_SLOW, _READY = _ready(_IS_SLOW), _ready(~_IS_SLOW)
_HOLDS = and_(webhook.c.id == bindparam("claimed"), webhook.c.lease_token == bindparam("token"))
_CLAIMED = select(webhook).where(_HOLDS)
_GIVE_BACK = update(webhook).where(_HOLDS)
