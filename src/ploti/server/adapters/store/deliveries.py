"""Deliveries and their attempts in tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import (
    BindParameter,
    Connection,
    and_,
    bindparam,
    delete,
    func,
    select,
    tuple_,
    update,
)
from sqlalchemy.sql import ColumnElement

from ploti.model.ids import DatasetId, DeliveryId, WebhookId
from ploti.model.webhook import DeliveryState
from ploti.model.wire import Instant
from ploti.server.adapters.store.columns import columns_of, fields_of, value_of
from ploti.server.adapters.store.driver import ask, insert_all
from ploti.server.adapters.store.tables import delivery, delivery_attempt
from ploti.server.ports.rows import DeliveryRow, TryRow


class SqlDeliveries:
    """The port's `Deliveries` over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, deliveries: Sequence[DeliveryRow]) -> None:
        """Keep new deliveries."""
        insert_all(self._connection, delivery, deliveries)

    def save(self, row: DeliveryRow) -> None:
        """Keep what changed of a delivery that still waits; one that was given up stays so."""
        same = and_(delivery.c.id == row.id, delivery.c.state == DeliveryState.WAITING)
        self._connection.execute(update(delivery).where(same).values(fields_of(row)))

    def get(self, delivery_id: DeliveryId, *, webhook: WebhookId) -> DeliveryRow | None:
        """A delivery of this webhook."""
        same = (delivery.c.id == delivery_id, delivery.c.webhook_id == webhook)
        found = self._connection.execute(_DELIVERY.where(*same)).mappings().first()
        return None if found is None else value_of(DeliveryRow, found)

    def page(
        self, webhook_id: WebhookId, *, before: tuple[Instant, DeliveryId] | None, limit: int
    ) -> list[DeliveryRow]:
        """A webhook's deliveries begun before another one, newest first."""
        place = (delivery.c.created_at, delivery.c.id)
        wanted = _DELIVERY.where(delivery.c.webhook_id == webhook_id)
        if before is not None:
            wanted = wanted.where(tuple_(*place) < before)
        newest = wanted.order_by(*(each.desc() for each in place)).limit(limit)
        rows = self._connection.execute(newest).mappings()
        return [value_of(DeliveryRow, row) for row in rows]

    def add_attempts(self, attempts: Sequence[TryRow]) -> None:
        """Keep attempts."""
        insert_all(self._connection, delivery_attempt, attempts)

    def attempts(self, ids: Collection[DeliveryId]) -> list[TryRow]:
        """The attempts of these deliveries, in their order."""
        wanted = (
            select(*columns_of(delivery_attempt, TryRow))
            .where(delivery_attempt.c.delivery_id.in_(ids))
            .order_by(delivery_attempt.c.delivery_id, delivery_attempt.c.number)
        )
        return [value_of(TryRow, row) for row in self._connection.execute(wanted).mappings()]

    def due(self, webhook_id: WebhookId, *, at: Instant, limit: int) -> list[DeliveryRow]:
        """A webhook's waiting deliveries whose time has come, by their events' numbers."""
        found = self._connection.execute(_DUE, {"of": webhook_id, "at": at, "most": limit})
        return [value_of(DeliveryRow, row) for row in found.mappings()]

    def waiting(self, webhook_id: WebhookId) -> set[DatasetId]:
        """The datasets of which something waits."""
        return {row[0] for row in ask(self._connection, _WAITING, (webhook_id,))}

    def settle(
        self, webhook_id: WebhookId, datasets: Collection[DatasetId], *, at: Instant
    ) -> None:
        """Let the earliest waiting one of each dataset be due, `at` unless it has a time."""
        for dataset_id in datasets:
            waits = and_(_waits(webhook_id), delivery.c.dataset_id == dataset_id)
            earliest = select(func.min(delivery.c.seq)).where(waits).scalar_subquery()
            first = and_(waits, delivery.c.seq == earliest, delivery.c.next_at.is_(None))
            later = and_(waits, delivery.c.seq > earliest, delivery.c.next_at.is_not(None))
            self._connection.execute(update(delivery).where(later).values(next_at=None))
            self._connection.execute(update(delivery).where(first).values(next_at=at))

    def make_due(self, webhook_id: WebhookId, *, at: Instant) -> None:
        """Let what has a time be due at `at`."""
        timed = and_(_waits(webhook_id), delivery.c.next_at > at)
        self._connection.execute(update(delivery).where(timed).values(next_at=at))

    def cancel(self, webhook_id: WebhookId, *, at: Instant) -> None:
        """Give up all that waits."""
        given_up = {"state": DeliveryState.CANCELLED, "next_at": None, "ended_at": at}
        self._connection.execute(update(delivery).where(_waits(webhook_id)).values(given_up))

    def prune(self, *, before: Instant) -> None:
        """Forget deliveries that ended before this."""
        old = delivery.c.ended_at < before
        ids = select(delivery.c.id).where(old)
        of = delivery_attempt.c.delivery_id.in_(ids)
        self._connection.execute(delete(delivery_attempt).where(of))
        self._connection.execute(delete(delivery).where(old))


_DELIVERY = select(*columns_of(delivery, DeliveryRow))


def _waits(webhook_id: WebhookId | BindParameter[WebhookId]) -> ColumnElement[bool]:
    return and_(delivery.c.webhook_id == webhook_id, delivery.c.state == DeliveryState.WAITING)


# Asked in every turn: made once, with parameters, they cost a fifth.
_OF: BindParameter[WebhookId] = bindparam("of")
_DUE = (
    _DELIVERY.where(_waits(_OF), delivery.c.next_at <= bindparam("at"))
    .order_by(delivery.c.seq)
    .limit(bindparam("most"))
)
_WAITING = """
SELECT DISTINCT dataset_id FROM delivery WHERE webhook_id = ? AND state = 'waiting'
"""
