"""How a server does, for staff: queues, failing sources, builds under way, sizes."""

from __future__ import annotations

from ploti.model.admin import Disk, RetentionRun, Status
from ploti.model.wire import Instant
from ploti.server.ports.store import Transaction


def read_status(tx: Transaction, *, disk: Disk, now: Instant) -> Status:
    """Everything that staff watch, as one moment."""
    return Status(
        at=now,
        queues=tx.overview.queues(now=now),
        failing=tx.overview.failing(),
        building=tx.overview.building(),
        retention=_last_run(tx),
        disk=disk,
        sizes=tx.overview.sizes(),
    )


def _last_run(tx: Transaction) -> RetentionRun | None:
    run = tx.retention.last_run()
    if run is None:
        return None
    return RetentionRun(run_at=run.run_at, pruned_to=run.pruned_to, stopped=run.stopped)
