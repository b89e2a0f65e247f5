"""Room on the disk: checks wait while there is too little, and the operator is told once."""

from __future__ import annotations

from ploti.errors import Unavailable
from ploti.model.admin import Disk
from ploti.model.wire import Instant
from ploti.server.ports.outside import Blobs, Clock
from ploti.server.ports.rows import JobKind
from ploti.server.ports.store import Store, Transaction
from ploti.server.service.raise_alert import DISK_LOW, alert_disk_low

_AGAIN_IN = 60


async def read_disk(blobs: Blobs, *, needed: int) -> Disk:
    """The room that there is for blobs, and the room that checks need, in bytes."""
    free = await blobs.free()
    return Disk(free_bytes=free, needed_bytes=needed, checks_wait=free < needed)


async def watch_disk(store: Store, blobs: Blobs, clock: Clock, *, needed: int) -> Disk:
    """The room now; where it has become too little, or enough again, that is kept."""
    disk = await read_disk(blobs, needed=needed)
    told = await store.read(lambda tx: tx.alerts.get(DISK_LOW) is not None)
    if disk.checks_wait != told:
        now = clock.now()
        await store.write(lambda tx: _keep(tx, disk, now=now))
    return disk


async def expect_room(store: Store, blobs: Blobs, clock: Clock, *, needed: int) -> None:
    """Raise Unavailable where a check has to wait for room."""
    disk = await watch_disk(store, blobs, clock, needed=needed)
    if disk.checks_wait:
        raise Unavailable(
            f"Checks wait: {disk.free_bytes:,} bytes of the server's disk are free, and"
            f" PLOTI_MIN_FREE asks for {disk.needed_bytes:,}. Make room on it, then try again",
            retry_after=_AGAIN_IN,
        )


def _keep(tx: Transaction, disk: Disk, *, now: Instant) -> None:
    if disk.checks_wait:
        alert_disk_low(tx, free=disk.free_bytes, needed=disk.needed_bytes, now=now)
    else:
        tx.jobs.drop(JobKind.ALERT, DISK_LOW)
        tx.alerts.drop(DISK_LOW)
