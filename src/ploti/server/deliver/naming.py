"""The ids of deliveries, which follow from webhook and event: a crash repeats the same one."""

from __future__ import annotations

from ploti.model.ids import DeliveryId, WebhookId


def delivery_id(webhook_id: WebhookId, seq: int, *, again: int = 0) -> DeliveryId:
    """The id of the delivery of event number `seq`; `again` numbers a redelivery by hand.

    It holds no full stop, which the signed text uses between its parts.
    """
    own = f"msg_{webhook_id.removeprefix('wh_')}_{seq:012d}"
    return DeliveryId(f"{own}_r{again}" if again else own)
