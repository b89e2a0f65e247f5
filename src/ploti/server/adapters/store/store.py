"""The store over SQLite: one thread that writes, a few that read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy import Connection

from ploti.server.adapters.store.accounts import SqlMembers, SqlPlans, SqlWorkspaces
from ploti.server.adapters.store.bodies import Bodies
from ploti.server.adapters.store.builds import SqlBuilds
from ploti.server.adapters.store.datasets import SqlDatasets
from ploti.server.adapters.store.deliveries import SqlDeliveries
from ploti.server.adapters.store.holds import SqlHolds
from ploti.server.adapters.store.jobs import SqlJobs
from ploti.server.adapters.store.keys import SqlKeys
from ploti.server.adapters.store.log import SqlLog
from ploti.server.adapters.store.migrate import migrate
from ploti.server.adapters.store.overview import SqlOverview
from ploti.server.adapters.store.requests import SqlAnswers, SqlAudit
from ploti.server.adapters.store.retention import SqlRetention
from ploti.server.adapters.store.sqlite import open_readers, open_writer
from ploti.server.adapters.store.subscriptions import SqlMemberships, SqlSubscriptions
from ploti.server.adapters.store.versions import SqlStates, SqlVersions
from ploti.server.adapters.store.webhooks import SqlWebhooks
from ploti.server.ports.store import Transaction

T = TypeVar("T")

_READERS = 4
"""Threads that read, each over a connection."""


class SqliteStore:
    """The port's `Store` over one SQLite file, which is made and migrated where needed.

    Work waits its turn in the queue of the writing thread; readers go on meanwhile (WAL).
    """

    def __init__(self, path: str) -> None:
        self._writer = open_writer(path)
        try:
            with self._writer.begin() as connection:
                migrate(connection)
        except Exception:
            self._writer.dispose()
            raise
        self._readers = open_readers(path, connections=_READERS)
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="store-write")
        self._reading = ThreadPoolExecutor(_READERS, thread_name_prefix="store-read")
        self._bodies = Bodies()
        self._bells: list[Callable[[], None]] = []

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run work that only reads, over one consistent moment."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reading, self._read, work)

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run work in one transaction: all of it is durable when this returns, or none."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._writing, self._write, work)

    def on_log(self, bell: Callable[[], None]) -> None:
        """Have `bell` called, in the writing thread, after each commit that added events."""
        self._bells.append(bell)

    async def close(self) -> None:
        """Finish what is under way and let the database go."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._writing, self._writer.dispose)
        self._writing.shutdown()
        self._reading.shutdown()
        self._readers.dispose()

    def _read(self, work: Callable[[Transaction], T]) -> T:
        with self._readers.begin() as connection:
            return work(_transaction(connection, SqlLog(connection, bodies=self._bodies)))

    def _write(self, work: Callable[[Transaction], T]) -> T:
        with self._writer.begin() as connection:
            log = SqlLog(connection)
            result = work(_transaction(connection, log))
        if log.appended:
            for bell in self._bells:
                bell()
        return result


def _transaction(connection: Connection, log: SqlLog) -> Transaction:
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
        builds=SqlBuilds(connection),
        jobs=SqlJobs(connection),
        retention=SqlRetention(connection),
        overview=SqlOverview(connection),
        subscriptions=SqlSubscriptions(connection),
        memberships=SqlMemberships(connection),
        log=log,
        webhooks=SqlWebhooks(connection),
        deliveries=SqlDeliveries(connection),
    )
