"""The store over SQL: threads that write and threads that read, each over a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from enum import StrEnum
from typing import TypeVar

from sqlalchemy import Connection, Engine

from ploti.model.ids import SubscriptionId
from ploti.model.wire import Instant
from ploti.server.adapters.store.accounts import SqlMembers, SqlPlans, SqlWorkspaces
from ploti.server.adapters.store.alerts import SqlAlerts
from ploti.server.adapters.store.bodies import Bodies
from ploti.server.adapters.store.builds import SqlBuilds
from ploti.server.adapters.store.datasets import SqlDatasets
from ploti.server.adapters.store.deliveries import SqlDeliveries
from ploti.server.adapters.store.holds import SqlHolds
from ploti.server.adapters.store.jobs import SqlJobs
from ploti.server.adapters.store.keys import SqlKeys
from ploti.server.adapters.store.log import ByKey, Found, SqlLog
from ploti.server.adapters.store.overview import SqlOverview
from ploti.server.adapters.store.proposals import SqlProposals
from ploti.server.adapters.store.recovery import SqlRecovery
from ploti.server.adapters.store.requests import SqlAnswers, SqlAudit
from ploti.server.adapters.store.retention import SqlRetention
from ploti.server.adapters.store.subscriptions import SqlMemberships, SqlSubscriptions
from ploti.server.adapters.store.threads import Threads
from ploti.server.adapters.store.versions import SqlStates, SqlVersions
from ploti.server.adapters.store.webhooks import SqlWebhooks
from ploti.server.ports.store import Transaction

T = TypeVar("T")
Bell = Callable[[], None]


class Busy(Exception):
    """What would take microseconds has to wait just now: a thread, which may wait, is to do it."""


class Topic(StrEnum):
    """What a commit is told about."""

    LOG = "log"
    JOBS = "jobs"


class SqlStore:
    """What is the same over every database; work waits its turn for a thread that is free.

    `writers` and `readers` are how many threads there are, each with a connection of its engine.
    """

    def __init__(self, *, writer: Engine, reader: Engine, writers: int, readers: int) -> None:
        self._writer = writer
        self._readers = reader
        self._writing = ThreadPoolExecutor(writers, thread_name_prefix="store-write")
        self._reading = Threads(readers, name="store-read")
        self._bodies = Bodies()
        self._bells: dict[Topic, list[Bell]] = {topic: [] for topic in Topic}

    async def read(self, work: Callable[[Transaction], T], *, briefly: bool = False) -> T:
        """Run work that only reads, over one consistent moment, in a thread that reads."""
        del briefly  # it saves nothing where a database is asked over a socket
        return await self._reading.run(lambda: self._read(work))

    async def log_by_key(
        self, digest: str, subscription_id: SubscriptionId, *, after: int, limit: int, now: Instant
    ) -> Found | None:
        """Who calls with a key, the extent of a log of theirs, and its events after a position."""
        return await self._ask_log(ByKey(digest, subscription_id, after, limit, now))

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run work in one transaction: all of it is durable when this returns, or none."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._writing, self._write, work)

    def on_log(self, bell: Bell) -> None:
        """Have `bell` called, in some thread, after each commit that added events."""
        self._bells[Topic.LOG].append(bell)

    def on_jobs(self, bell: Bell) -> None:
        """Have `bell` called, in some thread, after each commit that planned jobs."""
        self._bells[Topic.JOBS].append(bell)

    def clock_offset(self) -> timedelta:
        """How far the database's clock is ahead of this machine's."""
        return timedelta()

    async def close(self) -> None:
        """Finish what is under way and let the database go."""
        await self._reading.run(self._writing.shutdown)
        self._reading.shutdown()
        self._writer.dispose()
        self._readers.dispose()

    def _read(self, work: Callable[[Transaction], T]) -> T:
        with self._readers.begin() as connection:
            return work(look(connection, bodies=self._bodies))

    async def _ask_log(self, asked: ByKey) -> Found | None:
        """What a log tells a key, by a thread, which may wait."""
        return await self._reading.run(lambda: self._log_by_thread(asked))

    def _log_by_thread(self, asked: ByKey) -> Found | None:
        with self._readers.begin() as connection:
            return SqlLog(connection, bodies=self._bodies).by_key(asked)

    def _write(self, work: Callable[[Transaction], T]) -> T:
        with self._writer.begin() as connection:
            log, jobs = SqlLog(connection), SqlJobs(connection)
            result = work(_transaction(connection, log, jobs, writes=True))
            topics = {Topic.LOG: log.appended, Topic.JOBS: jobs.planned}
            told = [topic for topic, is_told in topics.items() if is_told]
            self._announce(connection, told)
        self._committed(told)
        return result

    def _announce(self, connection: Connection, topics: list[Topic]) -> None:
        """Have the database tell others at the commit; here nobody else is at the database."""

    def _committed(self, topics: list[Topic]) -> None:
        """Ring the bells, where the database does not have that done."""
        self._ring(topics)

    def _ring(self, topics: list[Topic]) -> None:
        for topic in topics:
            for bell in self._bells[topic]:
                bell()


def look(connection: Connection, *, bodies: Bodies | None = None) -> Transaction:
    """The repositories over a connection that only reads, whoever begins its transactions."""
    return _transaction(connection, SqlLog(connection, bodies=bodies), SqlJobs(connection))


def _transaction(
    connection: Connection, log: SqlLog, jobs: SqlJobs, *, writes: bool = False
) -> Transaction:
    return Transaction(
        workspaces=SqlWorkspaces(connection),
        plans=SqlPlans(connection),
        members=SqlMembers(connection),
        keys=SqlKeys(connection),
        audit=SqlAudit(connection),
        answers=SqlAnswers(connection),
        datasets=SqlDatasets(connection),
        versions=SqlVersions(connection),
        states=SqlStates(connection),
        holds=SqlHolds(connection),
        proposals=SqlProposals(connection),
        builds=SqlBuilds(connection),
        jobs=jobs,
        alerts=SqlAlerts(connection),
        retention=SqlRetention(connection),
        recovery=SqlRecovery(connection),
        overview=SqlOverview(connection),
        subscriptions=SqlSubscriptions(connection, locks=writes),
        memberships=SqlMemberships(connection),
        log=log,
        webhooks=SqlWebhooks(connection, locks=writes),
        deliveries=SqlDeliveries(connection),
    )
