"""What metrics count in the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Column, Connection, String, and_, cast, func, select

from ploti.model.admin import Queue
from ploti.model.webhook import DeliveryState, WebhookState
from ploti.server.adapters.store.tables import (
    build_attempt,
    dataset,
    delivery,
    feed_body,
    feed_event,
    feed_log,
    hold,
    version,
    webhook,
)
from ploti.server.ports.measures import Measures

_ON = webhook.c.state == WebhookState.ON
_LANES = webhook.join(feed_log, feed_log.c.subscription_id == webhook.c.subscription_id)
_IS_NEXT = and_(feed_event.c.log == feed_log.c.log, feed_event.c.seq == webhook.c.cursor + 1)
# As text: the two are different words.
_WEBHOOK_STATE = func.coalesce(cast(webhook.c.off_reason, String), cast(webhook.c.state, String))
_WAITS = delivery.c.state == DeliveryState.WAITING


def measure(connection: Connection, *, jobs: Sequence[Queue]) -> Measures:
    """How things stand, as one moment."""
    ask: Callable[..., Any] = connection.scalar
    return Measures(
        events_behind=ask(_behind()) or 0,
        undelivered_since=min(
            filter(None, (ask(_next_since()), ask(_waiting_since()))), default=None
        ),
        waiting=ask(select(func.count()).select_from(delivery).where(_WAITS)),
        webhooks=_by(connection, _WEBHOOK_STATE),
        versions=_by(connection, version.c.state),
        holds=_by(connection, hold.c.state),
        building=ask(
            select(func.count()).select_from(build_attempt).where(build_attempt.c.state == "open")
        ),
        failing_sources=ask(
            select(func.count()).select_from(dataset).where(dataset.c.failing_since.is_not(None))
        ),
        jobs=jobs,
    )


def _behind() -> Any:  # noqa: ANN401  a statement of SQLAlchemy's
    return select(func.sum(feed_log.c.last_seq - webhook.c.cursor)).select_from(_LANES).where(_ON)


def _next_since() -> Any:  # noqa: ANN401  as above
    """The time of the oldest event that a lane has not come to."""
    body = feed_body.c.id == feed_event.c.body_id
    return (
        select(func.min(feed_body.c.at))
        .select_from(_LANES.join(feed_event, _IS_NEXT).join(feed_body, body))
        .where(_ON)
    )


def _waiting_since() -> Any:  # noqa: ANN401  as above
    return select(func.min(delivery.c.created_at)).where(_WAITS)


def _by(connection: Connection, column: Column[Any] | Any) -> dict[str, int]:  # noqa: ANN401  as above
    found = connection.execute(select(column, func.count()).group_by(column).order_by(column))
    return {str(value): count for value, count in found}
