"""Telling the operator: an alert is planned in the transaction that causes it, one a cause."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from ploti.model.wire import Instant, encode
from ploti.server.ports.alerts import AlertId, AlertRow, AlertType
from ploti.server.ports.rows import DatasetRow, HoldRow, JobKind, WebhookRow
from ploti.server.ports.store import Transaction

DISK_LOW = AlertId("alrt_disk_low")
"""There is one for as long as the disk is low."""


def alert_hold(tx: Transaction, hold: HoldRow, *, now: Instant) -> None:
    """Tell that a version waits for review."""
    data = {
        "datasetId": hold.dataset_id,
        "holdId": hold.id,
        "version": hold.version,
        "reason": hold.reason,
        "since": hold.since,
    }
    _raise(tx, AlertType.HOLD_CREATED, _id_of(hold.id), data, now=now)


def alert_failing(tx: Transaction, dataset: DatasetRow, *, now: Instant) -> None:
    """Tell that a source cannot be read: once for all its failures in a row."""
    since = dataset.failing_since
    if since is None:
        raise ValueError(f"{dataset.id} does not fail")
    data = {"datasetId": dataset.id, "since": since, "detail": dataset.failure}
    _raise(tx, AlertType.SOURCE_FAILING, _id_of(dataset.id, str(since)), data, now=now)


def alert_webhook_off(tx: Transaction, webhook: WebhookRow, *, now: Instant) -> None:
    """Tell that a webhook was turned off, and why."""
    data = {
        "webhookId": webhook.id,
        "workspaceId": webhook.workspace_id,
        "subscriptionId": webhook.subscription_id,
        "reason": webhook.off_reason,
        "since": webhook.off_at,
    }
    _raise(tx, AlertType.WEBHOOK_OFF, _id_of(webhook.id, str(webhook.off_at)), data, now=now)


def alert_disk_low(tx: Transaction, *, free: int, needed: int, now: Instant) -> None:
    """Tell that checks wait for room on the disk; sizes are in bytes."""
    data = {"freeBytes": free, "neededBytes": needed}
    _raise(tx, AlertType.DISK_LOW, DISK_LOW, data, now=now)


def alert_retention(tx: Transaction, why: str, *, now: Instant) -> None:
    """Tell that nothing was removed that is past retention, since the clock has jumped."""
    _raise(tx, AlertType.RETENTION_STOPPED, _id_of("retention", str(now)), {"detail": why}, now=now)


def _raise(
    tx: Transaction,
    type_: AlertType,
    alert_id: AlertId,
    data: Mapping[str, object],
    *,
    now: Instant,
) -> None:
    body = encode({"id": alert_id, "type": type_, "timestamp": now, "data": data}).decode()
    if tx.alerts.add(AlertRow(id=alert_id, type=type_, body=body, raised_at=now)):
        tx.jobs.put(JobKind.ALERT, alert_id, at=now)


def _id_of(*cause: str) -> AlertId:
    return AlertId(f"alrt_{hashlib.sha256('|'.join(cause).encode()).hexdigest()[:24]}")
