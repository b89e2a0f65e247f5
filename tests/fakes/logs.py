"""Logs and lanes straight in a transaction: subscriptions, webhooks, events."""

from ploti.model.event import EventType
from ploti.model.ids import DatasetId, MemberId, SubscriptionId, WebhookId, WorkspaceId
from ploti.model.subscription import Selection
from ploti.model.webhook import WebhookState
from ploti.model.wire import Instant
from ploti.server.deliver.health import Health
from ploti.server.eventlog.drafts import Draft
from ploti.server.ports.rows import SubscriptionRow, WebhookRow

WORKSPACE = WorkspaceId("ws_1")


def subscription(number: int, *datasets: DatasetId, now: Instant) -> SubscriptionRow:
    return SubscriptionRow(
        id=SubscriptionId(f"sub_{number}"),
        workspace_id=WORKSPACE,
        name="",
        selection=Selection(datasets=[*datasets]),
        created_at=now,
    )


def webhook(number: int, *, now: Instant) -> WebhookRow:
    """A webhook of the subscription with the same number, that is on."""
    return WebhookRow(
        id=WebhookId(f"wh_{number}"),
        workspace_id=WORKSPACE,
        subscription_id=SubscriptionId(f"sub_{number}"),
        member_id=MemberId("mem_1"),
        url="https://receiver.example",
        events=None,
        secrets=[],
        created_at=now,
        state=WebhookState.ON,
        off_reason=None,
        off_at=None,
        cursor=0,
        rounds=0,
        replay_until=0,
        health=Health(),
    )


def stale(dataset: DatasetId) -> Draft:
    return Draft(type=EventType.STALE, dataset_id=dataset, linked_version=None, data="{}")
