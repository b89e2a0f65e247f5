"""What metrics count in the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Column, Connection, String, cast, func, select

from ploti.model.admin import Queue
from ploti.model.webhook import DeliveryState, WebhookState
from ploti.model.wire import Instant
from ploti.server.adapters.store import driver
from ploti.server.adapters.store.runs import Kept
from ploti.server.adapters.store.tables import (
    build_attempt,
    dataset,
    delivery,
    feed_body,
    feed_log,
    hold,
    version,
    webhook,
)
from ploti.server.ports.measures import Measures

_ON = webhook.c.state == WebhookState.ON
_LANES = webhook.join(feed_log, feed_log.c.subscription_id == webhook.c.subscription_id)
_NEXT = """
SELECT w.cursor, l.first_seq, l.settled_seq, l.newest, (
    SELECT first_seq || bodies FROM feed_run
    WHERE log = l.log AND first_seq <= w.cursor + 1 AND w.cursor < l.settled_seq
    ORDER BY first_seq DESC LIMIT 1
)
FROM webhook AS w JOIN feed_log AS l ON l.subscription_id = w.subscription_id
WHERE w.state = 'on' AND w.cursor < l.last_seq
"""
# As text: the two are different words.
_WEBHOOK_STATE = func.coalesce(cast(webhook.c.off_reason, String), cast(webhook.c.state, String))
_WAITS = delivery.c.state == DeliveryState.WAITING


def measure(connection: Connection, *, jobs: Sequence[Queue]) -> Measures:
    """How things stand, as one moment."""
    ask: Callable[..., Any] = connection.scalar
    return Measures(
        events_behind=ask(_behind()) or 0,
        undelivered_since=min(
            filter(None, (_next_since(connection), ask(_waiting_since()))), default=None
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


def _next_since(connection: Connection) -> Instant | None:
    """The time of the oldest event that a lane has not come to."""
    found: set[int] = set()
    for cursor, *kept in driver.ask(connection, _NEXT, ()):
        _, bodies = Kept(*kept).between(cursor, cursor + 1)
        found.update(bodies)
    oldest = select(feed_body.c.at).where(feed_body.c.id == min(found, default=0))
    return connection.scalars(oldest).first()


def _waiting_since() -> Any:  # noqa: ANN401  as above
    return select(func.min(delivery.c.created_at)).where(_WAITS)


def _by(connection: Connection, column: Column[Any] | Any) -> dict[str, int]:  # noqa: ANN401  as above
    found = connection.execute(select(column, func.count()).group_by(column).order_by(column))
    return {str(value): count for value, count in found}
