"""Webhooks made, changed, turned on again and deleted; deliveries sent again and given up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import msgspec

from ploti.errors import Conflict, Expired, Fault, InvalidInput, Unauthenticated
from ploti.model.event import EventType
from ploti.model.ids import DeliveryId, WebhookId
from ploti.model.webhook import (
    NOW,
    Delivery,
    DeliveryKind,
    DeliveryState,
    NewWebhook,
    OffReason,
    Resume,
    Webhook,
    WebhookPatch,
    WebhookState,
    WebhookWithSecret,
)
from ploti.model.wire import UNSET, Instant, Unset
from ploti.server.deliver.health import Health
from ploti.server.deliver.naming import delivery_id
from ploti.server.eventlog.paging import Extent, position
from ploti.server.membership.principal import FEEDS, Principal, require
from ploti.server.ports.outside import Ids, Poster, Sealer
from ploti.server.ports.rows import DeliveryRow, SealedSecret, WebhookRow
from ploti.server.ports.store import Transaction
from ploti.server.service.read_subscriptions import find_log, find_subscription
from ploti.server.service.read_webhooks import (
    find_delivery,
    find_webhook,
    get_delivery,
    show_webhook,
)

BOTH_SIGN_FOR = timedelta(hours=24)
"""How long the secret before signs beside a new one."""

_NEVER_AGAIN = {OffReason.SUBSCRIPTION_DELETED, OffReason.MEMBER_LEFT}


async def check_endpoint(poster: Poster, url: str | Unset) -> None:
    """Raise InvalidInput where an address may not be a webhook's; before any transaction."""
    if url is not UNSET and (wrong := await poster.refuse(url)):
        raise _refused("url", wrong)


def create_webhook(
    tx: Transaction,
    principal: Principal,
    new: NewWebhook,
    *,
    ids: Ids,
    sealer: Sealer,
    now: Instant,
) -> WebhookWithSecret:
    """Make a webhook for what its subscription's log gets from now on (R-144 to R-150).

    Raises Forbidden, NotFound for the subscription, or InvalidInput.
    """
    require(principal, FEEDS)
    if new.subscription_id is UNSET:
        raise _refused("subscriptionId", "is needed: name the subscription whose events to send")
    _check_stays(tx, principal)
    find_subscription(tx, principal, new.subscription_id)  # which is not deleted meanwhile
    secret = ids.signing_secret()
    row = WebhookRow(
        id=ids.webhook(),
        workspace_id=principal.workspace_id,
        subscription_id=new.subscription_id,
        member_id=principal.member_id,
        url=new.url,
        events=None if new.events is UNSET else _checked(new.events),
        secrets=[SealedSecret(text=sealer.seal(secret), until=None)],
        created_at=now,
        state=WebhookState.ON,
        off_reason=None,
        off_at=None,
        cursor=find_log(tx, principal, new.subscription_id).last,
        rounds=0,
        replay_until=0,
        health=Health(),
    )
    tx.webhooks.add(row)
    return _with_secret(tx, row, secret)


def update_webhook(
    tx: Transaction,
    principal: Principal,
    webhook_id: WebhookId,
    patch: WebhookPatch,
    *,
    now: Instant,
) -> Webhook:
    """Change a webhook by a merge patch; with another address what waits is due now.

    Raises NotFound, Forbidden or InvalidInput.
    """
    before = find_webhook(tx, principal, webhook_id)
    row = msgspec.structs.replace(
        before,
        url=before.url if patch.url is UNSET else patch.url,
        events=before.events if patch.events is UNSET else _checked_or_all(patch.events),
    )
    if row.url != before.url:
        row = make_due(tx, row, now=now)
    tx.webhooks.save(row, at=now)
    return show_webhook(tx, row)


def delete_webhook(tx: Transaction, principal: Principal, webhook_id: WebhookId) -> None:
    """Remove a webhook with its deliveries; raises NotFound or Forbidden."""
    tx.webhooks.delete(find_webhook(tx, principal, webhook_id).id)


def rotate_secret(
    tx: Transaction,
    principal: Principal,
    webhook_id: WebhookId,
    *,
    ids: Ids,
    sealer: Sealer,
    now: Instant,
) -> WebhookWithSecret:
    """Give a webhook a new secret; the one before signs beside it for 24 hours.

    Raises NotFound or Forbidden.
    """
    before = find_webhook(tx, principal, webhook_id)
    secret = ids.signing_secret()
    until = Instant.of(now + BOTH_SIGN_FOR)
    older = [
        SealedSecret(text=each.text, until=each.until or until)
        for each in before.secrets
        if each.until is None or now < each.until
    ]
    secrets = [SealedSecret(text=sealer.seal(secret), until=None), *older]
    row = make_due(tx, msgspec.structs.replace(before, secrets=secrets), now=now)
    tx.webhooks.save(row, at=now)
    return _with_secret(tx, row, secret)


def resume_webhook(
    tx: Transaction, principal: Principal, webhook_id: WebhookId, resume: Resume, *, now: Instant
) -> Webhook:
    """Turn a webhook on, to send what its log has after a cursor, or from now on.

    What waited is given up for that. Raises NotFound, Forbidden, Conflict where it is off for good,
    and InvalidInput or Expired for the cursor.
    """
    before = find_webhook(tx, principal, webhook_id)
    if before.off_reason in _NEVER_AGAIN:
        raise Conflict(f"{webhook_id} is off for good ({before.off_reason}): create another one")
    start = _start(resume, find_log(tx, principal, before.subscription_id))
    row = msgspec.structs.replace(
        before,
        state=WebhookState.ON,
        off_reason=None,
        off_at=None,
        cursor=start,
        rounds=before.rounds + 1,
        replay_until=max(before.cursor, before.replay_until),
        health=Health(last_success_at=before.health.last_success_at),
    )
    tx.deliveries.cancel(row.id, at=now)
    tx.webhooks.save(row, at=now)
    return show_webhook(tx, row)


def retry_delivery(
    tx: Transaction,
    principal: Principal,
    webhook_id: WebhookId,
    of: DeliveryId,
    *,
    now: Instant,
) -> Delivery:
    """Send an event again as a delivery of its own, now; one that waits is due now itself.

    Raises NotFound, Forbidden, Conflict where the webhook is off or there is no event, and Expired
    where the event is kept no more.
    """
    webhook = find_webhook(tx, principal, webhook_id)
    found = find_delivery(tx, webhook, of)
    if webhook.state is WebhookState.OFF:
        raise Conflict(f"{webhook_id} is off ({webhook.off_reason}): resume it first")
    if found.seq is None or found.dataset_id is None:
        raise Conflict(f"{of} was a test: send another one")
    if found.seq < find_log(tx, principal, webhook.subscription_id).first:
        raise Expired(f"The event of {of} is kept no more: read the manifest")
    if found.state is DeliveryState.WAITING:
        raised = found if found.next_at is None else msgspec.structs.replace(found, next_at=now)
        tx.deliveries.save(raised)
    else:
        raised = _again(webhook, found, now=now)
        tx.deliveries.add([raised])
        tx.webhooks.count_round(webhook.id)
    tx.deliveries.settle(webhook.id, [found.dataset_id], at=now)
    tx.webhooks.plan(webhook, at=now)
    return get_delivery(tx, webhook, raised.id)


def skip_delivery(
    tx: Transaction, principal: Principal, webhook_id: WebhookId, of: DeliveryId, *, now: Instant
) -> Delivery:
    """Give up a delivery that waits; the next one of its dataset is due.

    Raises NotFound, Forbidden, and Conflict where it does not wait.
    """
    webhook = find_webhook(tx, principal, webhook_id)
    found = find_delivery(tx, webhook, of)
    if found.state is not DeliveryState.WAITING or found.dataset_id is None:
        raise Conflict(f"{of} does not wait: it is {found.state}")
    tx.deliveries.save(
        msgspec.structs.replace(found, state=DeliveryState.CANCELLED, next_at=None, ended_at=now)
    )
    tx.deliveries.settle(webhook.id, [found.dataset_id], at=now)
    tx.webhooks.plan(webhook, at=now)
    return get_delivery(tx, webhook, of)


def make_due(tx: Transaction, webhook: WebhookRow, *, now: Instant) -> WebhookRow:
    """Let what waits be due now, and the webhook's pauses be over; to be saved by the caller."""
    tx.deliveries.make_due(webhook.id, at=now)
    health = msgspec.structs.replace(webhook.health, paced_until=None, paused_until=None)
    return msgspec.structs.replace(webhook, health=health)


def _check_stays(tx: Transaction, principal: Principal) -> None:
    """Raise Unauthenticated where the member has left since its key was admitted (R-159)."""
    member = tx.members.lock(principal.member_id)
    if member is None or member.left_at is not None:
        raise Unauthenticated("The member of this key has left the workspace: get another key")


def _again(webhook: WebhookRow, found: DeliveryRow, *, now: Instant) -> DeliveryRow:
    seq = found.seq or 0
    return DeliveryRow(
        id=delivery_id(webhook.id, seq, again=webhook.rounds + 1),
        webhook_id=webhook.id,
        seq=seq,
        dataset_id=found.dataset_id,
        kind=DeliveryKind.MANUAL,
        state=DeliveryState.WAITING,
        attempts=0,
        next_at=now,
        created_at=now,
        ended_at=None,
    )


def _start(resume: Resume, extent: Extent) -> int:
    try:
        return extent.last if resume.from_ == NOW else position(resume.from_, extent)
    except InvalidInput as error:
        raise _refused("from", f"must be '{NOW}' or a cursor: {error.detail}") from None


def _checked_or_all(events: Sequence[EventType] | None) -> list[EventType] | None:
    return None if events is None else _checked(events)


def _checked(events: Sequence[EventType]) -> list[EventType]:
    if not events:
        raise _refused("events", "is empty: leave it out for events of every type")
    return [kind for kind in EventType if kind in events]


def _with_secret(tx: Transaction, row: WebhookRow, secret: str) -> WebhookWithSecret:
    return WebhookWithSecret(**msgspec.structs.asdict(show_webhook(tx, row)), secret=secret)


def _refused(field: str, message: str) -> InvalidInput:
    return InvalidInput(f"{field} {message}", errors=(Fault(field, message),))
