"""Port of the alerts to the operator that are still to be delivered."""

from __future__ import annotations

from enum import StrEnum
from typing import NewType, Protocol

from ploti.model.wire import Instant, Value

AlertId = NewType("AlertId", str)


class AlertType(StrEnum):
    """What the operator is told of."""

    HOLD_CREATED = "hold.created"
    SOURCE_FAILING = "source.failing"
    WEBHOOK_OFF = "webhook.off"
    DISK_LOW = "disk.low"
    RETENTION_STOPPED = "retention.stopped"


class AlertRow(Value, kw_only=True):
    """An alert; `id` is made of its cause, so that there is one for each.

    `body` is what is sent. One that was sent, or given up, is kept only while its cause lasts.
    """

    id: AlertId
    type: AlertType
    body: str
    raised_at: Instant
    tries: int = 0
    ended_at: Instant | None = None


class Alerts(Protocol):
    """Alerts, each with a job that delivers it."""

    def add(self, alert: AlertRow) -> bool:
        """Keep a new alert; false where there is one of this id."""
        ...

    def get(self, alert_id: AlertId) -> AlertRow | None:
        """An alert; None where there is none."""
        ...

    def save(self, alert: AlertRow) -> None:
        """Keep what came of an alert."""
        ...

    def drop(self, alert_id: AlertId) -> None:
        """Forget an alert, if there is one."""
        ...
