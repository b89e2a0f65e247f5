"""Port of the work to be done at a time."""

from __future__ import annotations

from typing import Protocol

from ploti.model.wire import Instant
from ploti.server.ports.rows import JobKind, JobRow


class Jobs(Protocol):
    """Work to be done at a time, planned in the transaction that causes it."""

    def put(self, kind: JobKind, subject: str, *, at: Instant) -> None:
        """Plan a job, in place of the one that there was; a lease of that one ends."""
        ...

    def drop(self, kind: JobKind, subject: str) -> None:
        """Forget a job, if there is one."""
        ...

    def is_planned(self, kind: JobKind, subject: str) -> bool:
        """Whether there is such a job."""
        ...

    def is_any_due(self, *, now: Instant) -> bool:
        """Whether there is anything to claim; only reads."""
        ...

    def claim(self, *, now: Instant, until: Instant, token: str, limit: int) -> list[JobRow]:
        """Take jobs that are due, the longest due first, under a lease that lasts `until`."""
        ...

    def renew(self, job: JobRow, *, until: Instant) -> bool:
        """Make a lease last longer; false where the job was done, planned anew or taken over."""
        ...

    def free(self, *, now: Instant) -> None:
        """End every lease: at the start, when nobody can be at work."""
        ...
