"""How a server does, for staff: queues, failing sources, builds under way, sizes."""

from __future__ import annotations

from ploti.model.admin import Status
from ploti.model.wire import Instant
from ploti.server.ports.store import Transaction


def read_status(tx: Transaction, *, now: Instant) -> Status:
    """Everything that staff watch, as one moment."""
    return Status(
        at=now,
        queues=tx.overview.queues(now=now),
        failing=tx.overview.failing(),
        building=tx.overview.building(),
        sizes=tx.overview.sizes(),
    )
