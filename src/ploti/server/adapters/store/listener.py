"""One connection that hears what others commit, knows the database's clock, and holds its lock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta

import psycopg
import structlog
from psycopg import errors
from psycopg.conninfo import make_conninfo

from ploti.errors import ConfigError, PlotiError
from ploti.server.adapters.store.store import Topic

CHANNEL = "ploti"
"""What transactions notify; the payload is topics, with spaces between."""

_LOG = structlog.get_logger()
_ALONE = 0x706C6F746931
"""The lock of the server that has the database to itself, of PostgreSQL's advisory ones."""

_LOOK = 1.0
"""Seconds between looks at the clock, and at whether the connection still lives."""

_PAUSE = 1.0
_CONNECT_WITHIN = 10
_LIVES = ("keepalives_idle", 30), ("keepalives_interval", 10), ("keepalives_count", 3)
"""Seconds, seconds and probes until a connection to a machine that is gone ends, on both sides."""

_ALONE_WITHIN = "5s"
"""The database notices soon that a server was killed, but not at once."""


def connect(url: str) -> psycopg.Connection:
    """A connection that begins no transaction by itself."""
    lives = {name: str(value) for name, value in _LIVES}
    own = {"connect_timeout": str(_CONNECT_WITHIN), "application_name": "ploti"}
    return psycopg.connect(make_conninfo(url, **own, **lives), autocommit=True)


class Listener:
    """Rings the bells of what is committed, in a thread of its own.

    After a lost connection it comes back by itself, and rings them all: something may have been
    missed. `now` is this machine's clock. Raises ConfigError where the database cannot be reached
    at first, and PlotiError where it is to be had alone and another server has it.
    """

    def __init__(
        self,
        url: str,
        *,
        ring: Callable[[list[Topic]], None],
        now: Callable[[], datetime],
        lost: Callable[[], None] | None = None,
    ) -> None:
        self._url = url
        self._ring = ring
        self._now = now
        self._lost = lost
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="store-listen", daemon=True)
        self.offset = timedelta()
        try:
            self._connection = self._open()
        except psycopg.Error as error:
            reason = str(error).strip().splitlines()[0]
            raise ConfigError(f"PLOTI_DATABASE_URL: {reason}") from None

    def start(self) -> None:
        """Begin to hear; what was committed since it was made is heard, too."""
        self._thread.start()

    def close(self) -> None:
        """Let go of the connection, and with it of the lock."""
        self._over.set()
        if self._thread.ident is not None:
            with suppress(psycopg.Error), connect(self._url) as waking:
                waking.execute("SELECT pg_notify(%s, '')", (CHANNEL,))
            self._thread.join()
        self._connection.close()

    def _open(self) -> psycopg.Connection:
        connection = connect(self._url)
        try:
            for name, value in _LIVES:
                connection.execute(f"SET tcp_{name} = {value}")
            if self._lost is not None:
                _have_alone(connection)
            connection.execute(f"LISTEN {CHANNEL}")
            self._measure(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self._hear()
            except psycopg.Error as error:
                _LOG.warning("the connection that listens is lost", reason=str(error).strip())
                self._come_back()

    def _hear(self) -> None:
        for notice in self._connection.notifies(timeout=_LOOK):
            self._ring(_topics(notice.payload.split()))
            if self._over.is_set():
                return
        self._measure(self._connection)

    def _come_back(self) -> None:
        self._connection.close()
        while not self._over.wait(_PAUSE):
            try:
                self._connection = self._open()
            except psycopg.Error:
                continue
            except PlotiError:
                _LOG.critical("another server has the database meanwhile: this one ends")
                if self._lost is not None:
                    self._lost()
                self._over.set()
                return
            self._ring([*Topic])
            return

    def _measure(self, connection: psycopg.Connection) -> None:
        """The offset by the middle of the question's way: wrong by half of it at most."""
        before = self._now()
        row = connection.execute("SELECT clock_timestamp()").fetchone()
        after = self._now()
        if row is not None:
            self.offset = row[0] - (before + (after - before) / 2)


def _have_alone(connection: psycopg.Connection) -> None:
    connection.execute(f"SET lock_timeout = '{_ALONE_WITHIN}'")
    try:
        connection.execute("SELECT pg_advisory_lock(%s)", (_ALONE,))
    except errors.LockNotAvailable:
        raise PlotiError(
            "Another ploti serve runs on this database: stop it first, or name another one"
        ) from None


def _topics(words: Iterable[str]) -> list[Topic]:
    return [topic for topic in Topic if topic in words]
