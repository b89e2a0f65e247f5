"""A PostgreSQL database as a destination, over one connection that holds the lock as well."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import duckdb
import psycopg
from psycopg.conninfo import conninfo_to_dict

from ploti.client.alarm import Alarm
from ploti.errors import ConfigError, DestinationBusy, SyncError
from ploti.model.ids import SubscriptionId
from ploti.sync.costs import Weights
from ploti.sync.destination import DestinationLost, Session
from ploti.sync.destinations.postgres import recorded
from ploti.sync.destinations.postgres.faults import said_of_the_whole
from ploti.sync.destinations.postgres.session import PostgresSession
from ploti.sync.destinations.postgres.tables import Tables
from ploti.sync.destinations.postgres.wire import Wire
from ploti.sync.engine import open_engine

_LOCK = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
_ENDING, _PAUSE = 1.0, 0.02
"""Seconds in which a server learns that the client before has ended, and between two looks."""


class Postgres:
    """The database at an address `postgresql://…`; several subscriptions may share it."""

    weights = Weights(step=192 * 1024, change=2.2, table=0.002)

    def __init__(
        self,
        address: str,
        *,
        subscription_id: SubscriptionId,
        lock_timeout: float,
        alarm: Alarm,
        replace_views: bool = False,
    ) -> None:
        self._address = address
        self._subscription_id = subscription_id
        self._lock_timeout = lock_timeout
        self._alarm = alarm
        self._replace_views = replace_views
        self._locked: Tables | None = None
        self._name = _without_secrets(address)

    @cached_property
    def _engine(self) -> duckdb.DuckDBPyConnection:
        """What reads the Parquet files; one thread keeps their order in little memory.

        A thread of its own for what is written would spin for as long as PostgreSQL, to which it
        goes by a pipe, is the slower one: 0.7 CPU s for a million rows.
        """
        engine = open_engine(threads="1", async_threads="0")
        engine.execute("SET TimeZone = 'UTC'")
        return engine

    @property
    def name(self) -> str:
        """How to call it in messages: without a password, and without options that may hide one."""
        return self._name

    @property
    def downloads(self) -> Path:
        """A folder of this user's for files on their way, one for each destination."""
        cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        key = hashlib.sha256(f"{self._name} {self._subscription_id}".encode()).hexdigest()
        return Path(cache).expanduser() / "ploti" / "downloads" / key[:16]

    @property
    def exists(self) -> bool:
        """Whether anything was ever synced into it."""
        with self._opened() as tables:
            return recorded.is_set_up(tables.wire)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other clients of the subscription out, by an advisory lock that dies with us."""
        self._locked = self._connect_locked()
        try:
            yield
        finally:
            self._locked.wire.close()
            self._locked = None

    @contextmanager
    def session(self) -> Iterator[Session]:
        """The database, over the connection that holds the lock where one does."""
        if self._locked is None:
            with self._opened() as tables:
                yield self._set_up(tables)
            return
        if not self._locked.wire.is_open:
            self._locked = self._connect_locked()
        with self._said_of_the_whole():
            yield self._set_up(self._locked)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """The database as it is at one moment."""
        with self._opened() as tables:
            tables.wire.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            if not recorded.is_set_up(tables.wire):
                raise SyncError(f"There is no copy in {self.name} yet: `ploti feeds sync` makes it")
            yield PostgresSession(tables, self._subscription_id)

    def _set_up(self, tables: Tables) -> PostgresSession:
        session = PostgresSession(tables, self._subscription_id)
        session.set_up()
        return session

    def _tables(self, wire: Wire) -> Tables:
        return Tables(wire, self._engine, replace_views=self._replace_views)

    @contextmanager
    def _opened(self) -> Iterator[Tables]:
        wire = self._connect()
        try:
            with self._said_of_the_whole():
                yield self._tables(wire)
        finally:
            wire.close()

    @contextmanager
    def _said_of_the_whole(self) -> Iterator[None]:
        """What fails once all was stopped was broken off by that."""
        try:
            with said_of_the_whole(self.name):
                yield
        except SyncError:
            self._alarm.check()
            raise

    def _connect(self) -> Wire:
        try:
            return Wire(self._address, lock_timeout=self._lock_timeout, alarm=self._alarm)
        except psycopg.Error as error:
            said = str(error).strip().replace("\n", "; ")
            raise DestinationLost(f"{self.name} cannot be reached: {said}") from error

    def _connect_locked(self) -> Tables:
        wire = self._connect()
        try:
            with self._said_of_the_whole():
                self._take_lock(wire)
        except BaseException:
            wire.close()
            raise
        return self._tables(wire)

    def _take_lock(self, wire: Wire) -> None:
        give_up = time.monotonic() + _ENDING
        while not wire.value(_LOCK, f"ploti sync {self._subscription_id}"):
            if time.monotonic() >= give_up:
                raise DestinationBusy(
                    f"Another ploti keeps {self._subscription_id} in {self.name} in step:"
                    " one at a time"
                )
            self._alarm.pause(_PAUSE)


def _without_secrets(address: str) -> str:
    try:
        parts = conninfo_to_dict(address)
    except psycopg.Error as error:
        raise ConfigError(
            "The destination's address cannot be read: give postgresql://USER@HOST:PORT/DATABASE"
        ) from error
    user = f"{parts['user']}@" if parts.get("user") else ""
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{user}{parts.get('host', '')}{port}/{parts.get('dbname', '')}"
