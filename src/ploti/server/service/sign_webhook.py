"""A body signed with a webhook's secrets, and an attempt as it is kept."""

from __future__ import annotations

from ploti.model.ids import DeliveryId
from ploti.model.signature import sign
from ploti.model.wire import Instant
from ploti.server.deliver.answers import Answer, is_success
from ploti.server.ports.outside import Sealer
from ploti.server.ports.rows import DeliveryRow, TryRow, WebhookRow


def make_headers(
    sealer: Sealer, webhook: WebhookRow, delivery_id: DeliveryId, body: bytes, *, at: Instant
) -> dict[str, str]:
    """The headers of an attempt: signed at its moment, by every secret that is good then."""
    good = [each for each in webhook.secrets if each.until is None or at < each.until]
    secrets = [sealer.open(each.text) for each in good]
    return sign(body, id=delivery_id, at=at, secrets=secrets)


def make_try(
    delivery: DeliveryRow, answer: Answer, *, number: int, began: Instant, url: str
) -> TryRow:
    """An attempt as it is kept."""
    return TryRow(
        delivery_id=delivery.id,
        webhook_id=delivery.webhook_id,
        number=number,
        started_at=began,
        ms=answer.ms,
        url=url,
        address=answer.address,
        status=answer.status,
        error=answer.error,
        location=answer.location,
        response=answer.excerpt,
        delivered=is_success(answer),
    )
