"""A SQLite file as a destination; open between two versions, it is locked for nobody."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import duckdb

from ploti.client.alarm import Alarm
from ploti.model.ids import SubscriptionId
from ploti.sync.costs import Weights
from ploti.sync.destination import Session
from ploti.sync.destinations.sqlite.faults import said_of_the_whole
from ploti.sync.destinations.sqlite.layout import Layout
from ploti.sync.destinations.sqlite.patient import connect
from ploti.sync.destinations.sqlite.session import SQLiteSession
from ploti.sync.destinations.sqlite.tables import Tables
from ploti.sync.engine import open_engine
from ploti.sync.file import File

PLAIN = Layout()


class _Open(NamedTuple):
    """A connection for writing, with what its tables know, and the file that it is to."""

    connection: sqlite3.Connection
    tables: Tables
    file: tuple[int, int] | None


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
        self._is_locked = False
        self._kept: _Open | None = None

    @cached_property
    def _engine(self) -> duckdb.DuckDBPyConnection:
        """What reads the Parquet files; it knows nothing of the SQLite file."""
        return open_engine()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other clients out; what is open is kept as well."""
        with super().lock():
            self._is_locked = True
            try:
                yield
            finally:
                self._is_locked = False
                self._let_go()

    @contextmanager
    def session(self) -> Iterator[Session]:
        """The file, opened for writing, or open still since the last time."""
        with said_of_the_whole(self.name), self._writing() as (connection, tables, _):
            session = SQLiteSession(connection, tables, self._layout, self._subscription_id)
            session.set_up()
            yield session

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """The file, opened for reading; what a killed run left half done is taken back first."""
        self._check_exists()
        with said_of_the_whole(self.name), closing(self._connect("rw")) as connection:
            connection.execute("PRAGMA query_only = ON")
            tables = Tables(connection, self._engine, self._layout)
            yield SQLiteSession(connection, tables, self._layout, self._subscription_id)

    @contextmanager
    def _writing(self) -> Iterator[_Open]:
        """What was kept, if the file is still the same; it is kept again if all went well."""
        if self._kept is None or self._kept.file != self._identity():
            self._let_go()
            file = self._identity()
            connection = self._connect("rwc")
            self._kept = _Open(connection, Tables(connection, self._engine, self._layout), file)
        try:
            yield self._kept
        except BaseException:
            self._let_go()
            raise
        if not self._is_locked or _has_wal(self._kept.connection):
            self._let_go()

    def _let_go(self) -> None:
        if self._kept is not None:
            self._kept.connection.close()
            self._kept = None

    def _identity(self) -> tuple[int, int] | None:
        """What tells the file from one that is put in its place; None where there is none."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _connect(self, mode: str) -> sqlite3.Connection:
        address = f"{self._path.absolute().as_uri()}?mode={mode}"
        connection = connect(address, lock_timeout=self._lock_timeout, alarm=self._alarm)
        try:
            self._layout.prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def _has_wal(connection: sqlite3.Connection) -> bool:
    """Whether commits go to a file beside it first, and into it when the last program closes it."""
    found: tuple[str] = connection.execute("PRAGMA journal_mode").fetchone()
    return found == ("wal",)
