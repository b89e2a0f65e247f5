"""Port of the database for webhooks: their lanes, and what was sent to each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from ploti.model.ids import (
    DatasetId,
    DeliveryId,
    MemberId,
    SubscriptionId,
    WebhookId,
    WorkspaceId,
)
from ploti.model.webhook import LastDay, OffReason
from ploti.model.wire import Instant
from ploti.server.ports.rows import Claim, DeliveryRow, ReadyLane, SealedSecret, TryRow, WebhookRow


class Webhooks(Protocol):
    """Webhooks with their lanes, which workers claim by a lease and a fencing token."""

    def add(self, webhook: WebhookRow) -> None:
        """Keep a new webhook."""
        ...

    def save(self, webhook: WebhookRow, *, at: Instant) -> None:
        """Keep a changed webhook, to be looked at `at`; what is under way is recorded no more."""
        ...

    def count_round(self, webhook_id: WebhookId) -> None:
        """Count that something is sent again; what is under way goes on."""
        ...

    def delete(self, webhook_id: WebhookId) -> None:
        """Remove a webhook with its deliveries."""
        ...

    def get(self, webhook_id: WebhookId, *, workspace: WorkspaceId) -> WebhookRow | None:
        """A webhook of this workspace; nobody else changes it while the transaction writes."""
        ...

    def page(
        self, *, workspace: WorkspaceId, after: tuple[Instant, WebhookId] | None, limit: int
    ) -> list[WebhookRow]:
        """The workspace's webhooks made after another one, oldest first."""
        ...

    def turn_off(
        self,
        reason: OffReason,
        *,
        at: Instant,
        subscription: SubscriptionId | None = None,
        member: MemberId | None = None,
    ) -> None:
        """Turn off for good every webhook of a subscription or a member; what waits is cancelled.

        One that is off already gets the reason, unless it was off for good before.
        """
        ...

    def last_day(self, webhook_id: WebhookId, *, since: Instant) -> LastDay:
        """How the attempts since then went."""
        ...

    def plan(self, webhook: WebhookRow, *, at: Instant) -> None:
        """Have a lane that is locked be due when its next turn is, `at` or later, if there is one.

        After whatever was changed of its deliveries.
        """
        ...

    def has_news(self) -> bool:
        """Whether events were appended since lanes were told."""
        ...

    def tell_lanes(self, *, at: Instant) -> None:
        """Have the lanes whose logs were appended to since the last time be due."""
        ...

    def ready(self, *, at: Instant, limit: int) -> list[ReadyLane]:
        """Lanes that are due and have no lease, those first that are for longest.

        Of the slow ones and the others up to `limit` each.
        """
        ...

    def claim(self, ids: Collection[WebhookId], *, at: Instant, until: Instant) -> list[Claim]:
        """Lease those of these lanes that nobody else has meanwhile."""
        ...

    def claimed(self, claim: Claim) -> WebhookRow | None:
        """The webhook behind a claim; None where the claim does not hold any more."""
        ...

    def give_back(self, claim: Claim, webhook: WebhookRow) -> bool:
        """Keep a lane's state and end its lease; False where the claim does not hold any more."""
        ...

    def sealed(self) -> list[SealedSecret]:
        """The secrets of all webhooks, to prove that they can be opened."""
        ...

    def end_leases(self) -> None:
        """End every lease: at the start of the only worker, when none can be at work."""
        ...


class Deliveries(Protocol):
    """Deliveries and their attempts."""

    def add(self, deliveries: Sequence[DeliveryRow]) -> None:
        """Keep new deliveries."""
        ...

    def save(self, delivery: DeliveryRow) -> None:
        """Keep what changed of a delivery that still waits; one that was given up stays so."""
        ...

    def get(self, delivery_id: DeliveryId, *, webhook: WebhookId) -> DeliveryRow | None:
        """A delivery of this webhook."""
        ...

    def page(
        self, webhook_id: WebhookId, *, before: tuple[Instant, DeliveryId] | None, limit: int
    ) -> list[DeliveryRow]:
        """A webhook's deliveries begun before another one, newest first."""
        ...

    def add_attempts(self, attempts: Sequence[TryRow]) -> None:
        """Keep attempts."""
        ...

    def attempts(self, ids: Collection[DeliveryId]) -> list[TryRow]:
        """The attempts of these deliveries, in their order."""
        ...

    def due(self, webhook_id: WebhookId, *, at: Instant, limit: int) -> list[DeliveryRow]:
        """A webhook's waiting deliveries whose time has come, by their events' numbers."""
        ...

    def waiting(self, webhook_id: WebhookId) -> set[DatasetId]:
        """The datasets of which something waits."""
        ...

    def settle(
        self, webhook_id: WebhookId, datasets: Collection[DatasetId], *, at: Instant
    ) -> None:
        """Let the earliest waiting one of each dataset be due, `at` unless it has a time."""
        ...

    def make_due(self, webhook_id: WebhookId, *, at: Instant) -> None:
        """Let what has a time be due at `at`."""
        ...

    def cancel(self, webhook_id: WebhookId, *, at: Instant) -> None:
        """Give up all that waits."""
        ...

    def prune(self, *, before: Instant) -> None:
        """Forget deliveries that ended before this."""
        ...
