"""What came of lanes' turns, kept in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from ploti.model.ids import DatasetId
from ploti.model.webhook import WebhookState
from ploti.model.wire import Instant, Value
from ploti.server.ports.rows import Claim, DeliveryRow, TryRow, WebhookRow
from ploti.server.ports.store import Transaction
from ploti.server.service.raise_alert import alert_webhook_off


class Turn(Value, kw_only=True):
    """A turn that ended `at`: the lane after it, and its deliveries that are new or changed.

    `blocked` are the datasets of which something waits.
    """

    claim: Claim
    webhook: WebhookRow
    new: list[DeliveryRow]
    changed: list[DeliveryRow]
    tries: list[TryRow]
    blocked: set[DatasetId]
    at: Instant


def record_turns(tx: Transaction, turns: Sequence[Turn]) -> None:
    """Keep what came of turns, but of those whose lanes were changed or claimed meanwhile."""
    held = [turn for turn in turns if tx.webhooks.give_back(turn.claim, turn.webhook)]
    tx.deliveries.add([row for turn in held for row in turn.new])
    for turn in held:
        for row in turn.changed:
            tx.deliveries.save(row)
    tx.deliveries.add_attempts([each for turn in held for each in turn.tries])
    for turn in held:
        _plan(tx, turn)


def _plan(tx: Transaction, turn: Turn) -> None:
    """Settle what is to come in the lane, or that nothing is."""
    if turn.webhook.state is WebhookState.OFF:
        tx.deliveries.cancel(turn.webhook.id, at=turn.at)
        alert_webhook_off(tx, turn.webhook, now=turn.at)
    touched = [*turn.new, *turn.changed]
    waiting = {row.dataset_id for row in touched if row.dataset_id in turn.blocked}
    tx.deliveries.settle(turn.webhook.id, waiting, at=turn.at)
    tx.webhooks.plan(turn.webhook, at=turn.at)
