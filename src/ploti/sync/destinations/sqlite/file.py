"""A SQLite file as a destination; it is open only while there is something to do with it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path

import duckdb

from ploti.client.alarm import Alarm
from ploti.model.ids import SubscriptionId
from ploti.sync.costs import Weights
from ploti.sync.destination import Session
from ploti.sync.destinations.sqlite.faults import said_of_the_whole
from ploti.sync.destinations.sqlite.layout import Layout
from ploti.sync.destinations.sqlite.patient import connect
from ploti.sync.destinations.sqlite.session import SQLiteSession
from ploti.sync.engine import open_engine
from ploti.sync.file import File

PLAIN = Layout()


class SQLite(File):
    """The file at `path`, which other programs may read at any time, and write between syncs."""

    weights = Weights(step=128 * 1024, change=3.5, table=0.003)

    def __init__(
        self,
        path: Path,
        *,
        subscription_id: SubscriptionId,
        lock_timeout: float,
        alarm: Alarm,
        layout: Layout = PLAIN,
    ) -> None:
        super().__init__(
            layout.kind,
            path,
            subscription_id=subscription_id,
            lock_timeout=lock_timeout,
            alarm=alarm,
        )
        self._layout = layout

    @cached_property
    def _engine(self) -> duckdb.DuckDBPyConnection:
        """What reads the Parquet files; it knows nothing of the SQLite file."""
        return open_engine()

    @contextmanager
    def session(self) -> Iterator[Session]:
        """The file, opened for writing."""
        with self._opened("rwc") as connection:
            session = self._session(connection)
            session.set_up()
            yield session

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """The file, opened for reading; what a killed run left half done is taken back first."""
        self._check_exists()
        with self._opened("rw") as connection:
            connection.execute("PRAGMA query_only = ON")
            yield self._session(connection)

    def _session(self, connection: sqlite3.Connection) -> SQLiteSession:
        return SQLiteSession(connection, self._engine, self._layout, self._subscription_id)

    @contextmanager
    def _opened(self, mode: str) -> Iterator[sqlite3.Connection]:
        address = f"{self._path.absolute().as_uri()}?mode={mode}"
        with (
            said_of_the_whole(self.name),
            closing(
                connect(address, lock_timeout=self._lock_timeout, alarm=self._alarm)
            ) as connection,
        ):
            self._layout.prepare(connection)
            yield connection
