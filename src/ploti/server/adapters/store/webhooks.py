"""Webhooks and the leases of their lanes in tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import (
    BindParameter,
    Connection,
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

from ploti.model.ids import DatasetId, MemberId, SubscriptionId, WebhookId, WorkspaceId
from ploti.model.webhook import DeliveryState, LastDay, OffReason, WebhookState
from ploti.model.wire import Instant
from ploti.server.adapters.store.columns import At, fields_of, value_of
from ploti.server.adapters.store.dialect import chunks, is_postgres
from ploti.server.adapters.store.driver import Columns, as_taken, ask
from ploti.server.adapters.store.tables import (
    delivery,
    delivery_attempt,
    feed_log,
    membership,
    webhook,
)
from ploti.server.deliver.health import Health
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
        # Due at once: an event that another transaction appended meanwhile may have been told
        new = {**_fields(row), "due_at": row.created_at, "lease_token": 0}
        self._connection.execute(insert(webhook).values(new))

    def save(self, row: WebhookRow, *, at: Instant) -> None:
        """Keep a changed webhook, to be looked at `at`; what is under way is recorded no more."""
        changed = {
            **_fields(row),
            "due_at": at if row.state is WebhookState.ON else None,
            "lease_token": webhook.c.lease_token + 1,
            "lease_until": None,
        }
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
            "due_at": None,
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

    def plan(self, row: WebhookRow, *, at: Instant) -> None:
        """Have a lane that is locked be due when its next turn is, `at` or later, if there is one.

        What was appended before it was locked is seen: told of it or not, the lane comes to it.
        """
        begins, sends = str(row.health.begins_at(at)), str(row.health.sends_at(at))
        fresh = (begins, row.subscription_id, row.cursor)
        is_on = row.state is WebhookState.ON
        values = (*fresh, sends, sends, row.id, row.id) if is_on else (row.id,)
        ask(self._connection, _PLAN if is_on else _REST, values)

    def has_news(self) -> bool:
        """Whether events were appended since lanes were told."""
        return ask(self._connection, _NEWS, ()).fetchone() is not None

    def tell_lanes(self, *, at: Instant) -> None:
        """Have the lanes whose logs were appended to since the last time be due."""
        news = ask(self._connection, _TAKE_NEWS, ()).fetchall()
        lanes: set[WebhookId] = set()
        for told, whose in ((0, _delivering), (1, webhook.c.subscription_id.in_)):
            for ids in chunks({row[told] for row in news if row[told] is not None}):
                lanes.update(self._connection.scalars(select(webhook.c.id).where(whose(ids))))
        for chunk in chunks(lanes):
            self._tell(webhook.c.id.in_(chunk), at=at)

    def ready(self, *, at: Instant, limit: int) -> list[ReadyLane]:
        """Lanes that are due and have no lease, those first that are for longest."""
        found = []
        for slow in (True, False):
            rows = ask(self._connection, _READY, (slow, str(at), str(at), limit)).fetchall()
            found += [(*row, slow) for row in rows]
        return [ReadyLane(webhook_id=id_, slow=slow_) for _, id_, slow_ in sorted(found)]

    def claim(self, ids: Collection[WebhookId], *, at: Instant, until: Instant) -> list[Claim]:
        """Lease those of these lanes that nobody else has meanwhile."""
        if not ids:
            return []
        statement = _CLAIM[is_postgres(self._connection)].format(ids=", ".join("?" * len(ids)))
        rows = ask(self._connection, statement, (str(until), *ids, str(at))).fetchall()
        return [Claim(webhook_id=WebhookId(id_), token=token) for id_, token in rows]

    def claimed(self, claim: Claim) -> WebhookRow | None:
        """The webhook behind a claim; None where the claim does not hold any more."""
        found = ask(self._connection, _CLAIMED, (claim.webhook_id, claim.token)).fetchone()
        return None if found is None else _row(_COLUMNS.read(self._connection, found))

    def give_back(self, claim: Claim, row: WebhookRow) -> bool:
        """Keep a lane's state and end its lease; False where the claim does not hold any more."""
        lane = {
            **_health(row),
            "state": row.state,
            "off_reason": row.off_reason,
            "off_at": row.off_at,
            "cursor": row.cursor,
            "lease_until": None,
        }
        values = (*as_taken(lane.values()), claim.webhook_id, claim.token)
        changed = ", ".join([f"{name} = ?" for name in lane])
        statement = f"UPDATE webhook SET {changed} WHERE {_HOLDS}"  # noqa: S608  names of ours
        return bool(ask(self._connection, statement, values).rowcount == 1)

    def end_leases(self) -> None:
        """End every lease: at the start of the only worker, when none can be at work."""
        free = {"lease_until": None, "lease_token": webhook.c.lease_token + 1}
        leased = webhook.c.lease_until.is_not(None)
        self._connection.execute(update(webhook).where(leased).values(free))

    def sealed(self) -> list[SealedSecret]:
        """The secrets of all webhooks, to prove that they can be opened."""
        return [each for secrets in self._connection.scalars(_SECRETS) for each in secrets]

    def _tell(self, chosen: ColumnElement[bool], *, at: Instant) -> None:
        """Have those of the chosen lanes be due that have not come to the end of their logs.

        Locked first, in their order: a turn that is being recorded may have ended without them.
        """
        if is_postgres(self._connection):
            in_order = select(webhook.c.id).where(chosen).order_by(webhook.c.id)
            locked = in_order.with_for_update().subquery()
            self._connection.execute(select(func.count()).select_from(locked))
        self._connection.execute(_TOLD.where(chosen), {"at": at})

    def _one(self, *same: ColumnElement[bool]) -> WebhookRow | None:
        wanted = select(webhook).where(*same)
        if self._locks:
            wanted = wanted.with_for_update()
        found = self._connection.execute(wanted).mappings().first()
        return None if found is None else _row(found)


_SECRETS = select(webhook.c.secrets)


def _fields(row: WebhookRow) -> dict[str, Any]:
    fields = fields_of(row)
    del fields["health"]
    return {**fields, **_health(row)}


def _health(row: WebhookRow) -> dict[str, Any]:
    return {**fields_of(row.health), "slow": row.health.is_slow}


def _row(row: Mapping[Any, Any]) -> WebhookRow:
    return WebhookRow(**{name: row[name] for name in _OWN}, health=value_of(Health, row))


def _later(at: ColumnElement[Any], until: ColumnElement[Any]) -> ColumnElement[Any]:
    return case((until > at, until), else_=at)


def _delivering(datasets: list[DatasetId]) -> ColumnElement[bool]:
    members = select(membership.c.subscription_id).where(membership.c.dataset_id.in_(datasets))
    return webhook.c.subscription_id.in_(members)


# Made once, with a parameter, for each time that lanes are told costs two thirds.
_AT: BindParameter[Instant] = bindparam("at", type_=At)
_IS_BEHIND = exists().where(
    feed_log.c.subscription_id == webhook.c.subscription_id,
    feed_log.c.last_seq > webhook.c.cursor,
)
_BEGINS = _later(_later(_AT, webhook.c.paused_until), webhook.c.paced_until)
_TOLD = (
    update(webhook)
    .where(webhook.c.state == WebhookState.ON, _IS_BEHIND)
    .where(or_(webhook.c.due_at.is_(None), webhook.c.due_at > _BEGINS))
    .values(due_at=_BEGINS)
)
_IS_FREE = "state = 'on' AND (lease_until IS NULL OR lease_until <= ?)"
_READY = f"""
SELECT due_at, id FROM webhook WHERE slow = ? AND due_at <= ? AND {_IS_FREE}
ORDER BY due_at LIMIT ?
"""  # noqa: S608  words of ours
_CLAIM = [
    f"""
UPDATE webhook SET lease_until = ?, lease_token = lease_token + 1
WHERE id IN (SELECT id FROM webhook WHERE id IN ({{ids}}) AND {_IS_FREE} {locking})
RETURNING id, lease_token
"""  # noqa: S608  words of ours
    for locking in ("", "FOR UPDATE SKIP LOCKED")
]
_NEWS = "SELECT id FROM feed_news LIMIT 1"
_TAKE_NEWS = "DELETE FROM feed_news RETURNING dataset_id, subscription_id"
_PLAN = """
UPDATE webhook SET due_at = (
    SELECT min(due) FROM (
        SELECT CAST(? AS VARCHAR) AS due FROM feed_log WHERE subscription_id = ? AND last_seq > ?
        UNION ALL
        SELECT CASE WHEN next_at > ? THEN next_at ELSE ? END FROM (
            SELECT min(next_at) AS next_at FROM delivery
            WHERE webhook_id = ? AND state = 'waiting' AND next_at IS NOT NULL
        ) AS earliest
        WHERE next_at IS NOT NULL
    ) AS turn
) WHERE id = ?
"""
_REST = "UPDATE webhook SET due_at = NULL WHERE id = ?"
_OWN = [name for name in WebhookRow.__struct_fields__ if name != "health"]
_COLUMNS = Columns(webhook, [*_OWN, *Health.__struct_fields__])
_HOLDS = "id = ? AND lease_token = ?"
_CLAIMED = f"SELECT {_COLUMNS.listed} FROM webhook WHERE {_HOLDS}"  # noqa: S608  names of ours
