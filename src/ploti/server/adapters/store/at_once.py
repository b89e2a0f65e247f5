"""Reads of microseconds, done by who asks: a database in this process needs no other thread."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from ploti.server.adapters.store.bodies import Bodies
from ploti.server.adapters.store.log import ByKey, Found, SqlLog
from ploti.server.adapters.store.store import Busy, look
from ploti.server.ports.store import Transaction

T = TypeVar("T")

PRIMARY = 0xFF
"""The part of SQLite's codes that tells the kind."""


class ReaderAtOnce:
    """Reads over one connection, which is kept, with the transaction over it made only once.

    Its engine leaves BEGIN to it, and never waits for a lock.
    """

    def __init__(self, engine: Engine, *, bodies: Bodies) -> None:
        self._connection = engine.connect()
        self._connection.begin()  # of SQLAlchemy's, once for all: the database's are made below
        self._driver: Any = self._connection.connection.driver_connection
        self._transaction = look(self._connection, bodies=bodies)
        self._log = SqlLog(self._connection, bodies=bodies)
        self._free = threading.Lock()

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run work over one consistent moment; raises Busy where it would have to wait."""

        def read() -> T:
            self._driver.execute("BEGIN")
            try:
                return work(self._transaction)
            finally:
                self._driver.rollback()

        return self._run(read)

    def by_key(self, asked: ByKey) -> Found | None:
        """What a log tells a key: one statement, which sees one moment without a transaction."""
        return self._run(lambda: self._log.by_key(asked))

    def _run(self, work: Callable[[], T]) -> T:
        if not self._free.acquire(blocking=False):
            raise Busy
        try:
            return work()
        except (sqlite3.OperationalError, DBAPIError) as error:
            if _is_busy(error):
                raise Busy from error
            raise
        finally:
            self._free.release()

    def close(self) -> None:
        """Let the connection go, and the file."""
        self._connection.close()
        self._connection.engine.dispose()


def _is_busy(error: Exception) -> bool:
    cause = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(cause, "sqlite_errorcode", 0) & PRIMARY
    return code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
