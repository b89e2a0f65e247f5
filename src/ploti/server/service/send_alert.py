"""An alert delivered to the operator: signed, tried again with growing waits, and then given up."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from ploti.errors import PlotiError
from ploti.model.signature import sign
from ploti.model.wire import Instant
from ploti.server.deliver.answers import Answer, Result, judge
from ploti.server.ports.alerts import AlertId, AlertRow, AlertType
from ploti.server.ports.outside import Clock, Ids, Poster
from ploti.server.ports.rows import JobKind
from ploti.server.ports.store import Store, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Alerting:
    """Where alerts go, and what signs them."""

    poster: Poster
    url: str
    secret: str


async def send_alert(
    alerting: Alerting | None, alert_id: AlertId, *, store: Store, clock: Clock, ids: Ids
) -> None:
    """Send an alert once; what came of it plans the next try, or ends it.

    It is tried as often as a delivery to a webhook; without `alerting` it is let go. Raises
    PlotiError where it was given up.
    """
    alert = await store.read(lambda tx: tx.alerts.get(alert_id))
    if alert is None or alerting is None:
        now = clock.now()
        await store.write(lambda tx: _end(tx, alert_id, alert, now=now))
        return
    body, began = alert.body.encode(), clock.now()
    headers = sign(body, id=alert_id, at=began, secrets=[alerting.secret])
    answer = await alerting.poster.post(alerting.url, body=body, headers=headers)
    now, chance = clock.now(), ids.chance()
    if await store.write(lambda tx: _record(tx, alert_id, answer, chance=chance, now=now)):
        return
    said = answer.error or f"it answered {answer.status}"
    raise PlotiError(f"The alert {alert.type} could not be delivered to PLOTI_ALERT_URL: {said}")


def _record(
    tx: Transaction, alert_id: AlertId, answer: Answer, *, chance: float, now: Instant
) -> bool:
    """Keep what came of a try; false where it was the last and failed."""
    alert = tx.alerts.get(alert_id)
    if alert is None:
        tx.jobs.drop(JobKind.ALERT, alert_id)
        return True
    tries = alert.tries + 1
    verdict = judge(answer, attempts=tries, at=now, chance=chance)
    if verdict.next_at is not None:
        tx.alerts.save(replace(alert, tries=tries))
        tx.jobs.put(JobKind.ALERT, alert_id, at=verdict.next_at)
        return True
    _end(tx, alert_id, alert, now=now)
    return verdict.result is Result.DELIVERED


def _end(tx: Transaction, alert_id: AlertId, alert: AlertRow | None, *, now: Instant) -> None:
    """Forget an alert, but for one whose cause may still last."""
    tx.jobs.drop(JobKind.ALERT, alert_id)
    if alert is not None and alert.type is AlertType.DISK_LOW:
        tx.alerts.save(replace(alert, ended_at=now))
    else:
        tx.alerts.drop(alert_id)
