"""The test of a webhook: one signed `ping` now, whatever its filter and state."""

from __future__ import annotations

import msgspec

from ploti.model.ids import DeliveryId
from ploti.model.webhook import Delivery, DeliveryKind, DeliveryState, OffReason, Ping
from ploti.model.wire import Instant, encode
from ploti.server.deliver.answers import Answer, Result, judge
from ploti.server.ports.rows import DeliveryRow, TryRow, WebhookRow
from ploti.server.ports.store import Transaction
from ploti.server.service.change_webhook import make_due
from ploti.server.service.deliver_due import Delivering, switched_off
from ploti.server.service.raise_alert import alert_webhook_off
from ploti.server.service.read_webhooks import show_delivery
from ploti.server.service.sign_webhook import make_headers, make_try


async def send_ping(parts: Delivering, webhook: WebhookRow) -> Delivery:
    """Send one `ping` and keep what came of it (R-164, R-165, S-49).

    It is tried once. After a 2xx what waits is due now; a 410 turns the webhook off.
    """
    began = parts.clock.now()
    ping = parts.ids.token("ping_")
    body = encode({"id": ping, "type": Ping.type, "timestamp": began, "data": {}})
    row = _delivery(webhook, DeliveryId(parts.ids.token("msg_")), at=began)
    headers = make_headers(parts.sealer, webhook, row.id, body, at=began)
    answer = await parts.poster.post(webhook.url, body=body, headers=headers)
    at = parts.clock.now()
    attempt = make_try(row, answer, number=1, began=began, url=webhook.url)
    ended = _ended(row, answer, at=at)
    await parts.store.write(lambda tx: _record(tx, webhook, ended, attempt, answer, at=at))
    return show_delivery(ended, [attempt])


def _delivery(webhook: WebhookRow, delivery_id: DeliveryId, *, at: Instant) -> DeliveryRow:
    return DeliveryRow(
        id=delivery_id,
        webhook_id=webhook.id,
        seq=None,
        dataset_id=None,
        kind=DeliveryKind.TEST,
        state=DeliveryState.FAILED,
        attempts=1,
        next_at=None,
        created_at=at,
        ended_at=at,
    )


def _result(answer: Answer, *, at: Instant) -> Result:
    return judge(answer, attempts=1, at=at, chance=0).result


def _ended(row: DeliveryRow, answer: Answer, *, at: Instant) -> DeliveryRow:
    delivered = _result(answer, at=at) is Result.DELIVERED
    state = DeliveryState.DELIVERED if delivered else DeliveryState.FAILED
    return msgspec.structs.replace(row, state=state, ended_at=at)


def _record(
    tx: Transaction,
    pinged: WebhookRow,
    row: DeliveryRow,
    attempt: TryRow,
    answer: Answer,
    *,
    at: Instant,
) -> None:
    webhook = tx.webhooks.get(pinged.id, workspace=pinged.workspace_id)
    if webhook is None:
        return
    tx.deliveries.add([row])
    tx.deliveries.add_attempts([attempt])
    match _result(answer, at=at):
        case Result.DELIVERED:
            tx.webhooks.save(make_due(tx, webhook, now=at), at=at)
        case Result.GONE if webhook.off_reason is None:
            tx.deliveries.cancel(webhook.id, at=at)
            off = switched_off(webhook, OffReason.GONE, at=at)
            tx.webhooks.save(off, at=at)
            alert_webhook_off(tx, off, now=at)
        case _:
            pass
