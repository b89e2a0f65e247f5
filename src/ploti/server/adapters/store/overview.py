"""What staff watch, counted out of the tables."""

from __future__ import annotations

from sqlalchemy import Connection, Table, and_, func, select

from ploti.model.admin import BuildUnderWay, FailingSource, HoldState, Queue, Sizes
from ploti.model.ids import DatasetId
from ploti.model.wire import Instant
from ploti.server.adapters.store.columns import value_of
from ploti.server.adapters.store.measures import measure
from ploti.server.adapters.store.tables import (
    build_attempt,
    dataset,
    feed_log,
    hold,
    job,
    subscription,
    version,
    version_file,
)
from ploti.server.ports.measures import Measures


class SqlOverview:
    """The port's `Overview` over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def queues(self, *, now: Instant) -> list[Queue]:
        """The jobs of each kind."""
        # Each part out of an index of its own: only those planned are counted one by one
        count, oldest = func.count().label("jobs"), func.min(job.c.run_at).label("oldest")
        kinds = select(job.c.kind, count).group_by(job.c.kind)
        planned = kinds.subquery()
        is_due = and_(job.c.token.is_(None), job.c.run_at <= now)
        due = kinds.add_columns(oldest).where(is_due).subquery()
        running = kinds.where(job.c.token.is_not(None)).subquery()
        wanted = (
            select(
                planned.c.kind,
                planned.c.jobs.label("planned"),
                func.coalesce(due.c.jobs, 0).label("due"),
                func.coalesce(running.c.jobs, 0).label("running"),
                due.c.oldest.label("oldest_due"),
            )
            .outerjoin_from(planned, due, due.c.kind == planned.c.kind)
            .outerjoin(running, running.c.kind == planned.c.kind)
            .order_by(planned.c.kind)
        )
        return [value_of(Queue, row) for row in self._connection.execute(wanted).mappings()]

    def failing(self) -> list[FailingSource]:
        """The sources that could not be read last, the longest failing first."""
        wanted = (
            select(
                dataset.c.id.label("dataset_id"),
                dataset.c.failing_since.label("since"),
                dataset.c.failures,
                dataset.c.failure.label("detail"),
            )
            .where(dataset.c.failing_since.is_not(None))
            .order_by(dataset.c.failing_since, dataset.c.id)
        )
        return [value_of(FailingSource, row) for row in self._connection.execute(wanted).mappings()]

    def building(self, dataset_id: DatasetId | None = None) -> list[BuildUnderWay]:
        """The checks and pushes under way, oldest first."""
        attempt = build_attempt.c
        wanted = (
            select(
                *(attempt.dataset_id, attempt.version, attempt.started_at.label("since")),
                attempt.progress,
            )
            .where(attempt.state == "open")
            .order_by(attempt.started_at, attempt.id)
        )
        if dataset_id is not None:
            wanted = wanted.where(attempt.dataset_id == dataset_id)
        return [value_of(BuildUnderWay, row) for row in self._connection.execute(wanted).mappings()]

    def sizes(self) -> Sizes:
        """How much there is of everything."""
        is_open = select(func.count()).select_from(hold).where(hold.c.state == HoldState.OPEN)
        total = select(func.coalesce(func.sum(version_file.c.bytes), 0))
        # Out of the counters, between which there is no gap: the events are too many to be counted
        kept = func.sum(feed_log.c.last_seq - feed_log.c.first_seq + 1)
        return Sizes(
            datasets=self._count(dataset),
            versions=self._count(version),
            subscriptions=self._count(subscription),
            events=self._connection.scalars(select(func.coalesce(kept, 0))).one(),
            open_holds=self._connection.scalars(is_open).one(),
            file_bytes=self._connection.scalars(total).one(),
        )

    def measures(self, *, now: Instant) -> Measures:
        """What metrics tell of the tables."""
        return measure(self._connection, jobs=self.queues(now=now))

    def _count(self, table: Table) -> int:
        return self._connection.scalars(select(func.count()).select_from(table)).one()
