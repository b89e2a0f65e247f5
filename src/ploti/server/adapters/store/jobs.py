"""Jobs in a table: planned, claimed under a lease, done."""

from __future__ import annotations

from sqlalchemy import Connection, and_, delete, select, update
from sqlalchemy.sql import ColumnElement

from ploti.model.wire import Instant
from ploti.server.adapters.store.columns import columns_of, fields_of, value_of
from ploti.server.adapters.store.dialect import put
from ploti.server.adapters.store.tables import job
from ploti.server.ports.rows import JobKind, JobRow


class SqlJobs:
    """The port's `Jobs` over one connection; `planned` tells whether the bell is to ring."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.planned = False

    def put(self, kind: JobKind, subject: str, *, at: Instant) -> None:
        """Plan a job, in place of the one that there was; a lease of that one ends."""
        planned = JobRow(kind=kind, subject=subject, run_at=at)
        put(self._connection, job, fields_of(planned))
        self.planned = True

    def drop(self, kind: JobKind, subject: str) -> None:
        """Forget a job, if there is one."""
        self._connection.execute(delete(job).where(_same(kind, subject)))

    def is_planned(self, kind: JobKind, subject: str) -> bool:
        """Whether there is such a job."""
        wanted = select(job.c.run_at).where(_same(kind, subject))
        return self._connection.scalars(wanted).first() is not None

    def is_any_due(self, *, now: Instant) -> bool:
        """Whether there is anything to claim; only reads."""
        wanted = select(job.c.run_at).where(job.c.run_at <= now).limit(1)
        return self._connection.scalars(wanted).first() is not None

    def claim(self, *, now: Instant, until: Instant, token: str, limit: int) -> list[JobRow]:
        """Take jobs that are due, the longest due first, under a lease that lasts `until`."""
        due = _JOB.where(job.c.run_at <= now).order_by(job.c.run_at, job.c.subject).limit(limit)
        locked = due.with_for_update(skip_locked=True)
        found = [value_of(JobRow, row) for row in self._connection.execute(locked).mappings()]
        for each in found:
            same = _same(each.kind, each.subject)
            self._connection.execute(update(job).where(same).values(run_at=until, token=token))
        return [JobRow(kind=e.kind, subject=e.subject, run_at=until, token=token) for e in found]

    def renew(self, claimed: JobRow, *, until: Instant) -> bool:
        """Make a lease last longer; false where the job was done, planned anew or taken over."""
        same = and_(_same(claimed.kind, claimed.subject), job.c.token == claimed.token)
        done = self._connection.execute(update(job).where(same).values(run_at=until))
        return done.rowcount == 1

    def free(self, *, now: Instant) -> None:
        """End every lease: at the start, when nobody can be at work."""
        leased = job.c.token.is_not(None)
        self._connection.execute(update(job).where(leased).values(run_at=now, token=None))


def _same(kind: JobKind, subject: str) -> ColumnElement[bool]:
    return and_(job.c.kind == kind, job.c.subject == subject)


_JOB = select(*columns_of(job, JobRow))
