"""The store over PostgreSQL: many writers at once, which locks in one order keep apart."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from select import POLLIN, poll
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from sqlalchemy import Connection, Engine, create_engine, event, select, text
from sqlalchemy.exc import DBAPIError, DisconnectionError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool
from sqlalchemy.sql import func

from ploti.errors import ConfigError, Unavailable
from ploti.server.adapters.store.asking import Asking, Row, prepare
from ploti.server.adapters.store.listener import CHANNEL, Listener, connect
from ploti.server.adapters.store.log import BY_KEY, ByKey, Found
from ploti.server.adapters.store.migrate import migrate
from ploti.server.adapters.store.store import Busy, SqlStore, Topic
from ploti.server.ports.store import Transaction

T = TypeVar("T")

_WRITERS = 8
_READERS = 8
"""Threads, each with a connection of its own."""

_ASKED = 4
"""Connections of the event loop's own, for pages: with the listener's, 21 in all."""

_LOOK = "look"
_OLDEST = 150_000
"""PostgreSQL 15, as its `server_version_num` counts."""

_TRIES = 5
_MIGRATING = 0x706C6F7469
"""The lock that a migration has, of PostgreSQL's advisory ones."""

_PATIENCE = "60s"

_ASKED_PATIENCE = "5s"
"""Where a page waits longer for a lock, a thread waits on, and tells it in the end."""


class PostgresStore(SqlStore):
    """The port's `Store` over a database of PostgreSQL, which is migrated where needed.

    Transactions write at once; those that the database ends to break a circle of waits are run
    again. `now` is this machine's clock. With `lost` the database is this process's for as long as
    it runs: where another one has it already, PlotiError is raised, and `lost` is called, in some
    thread, where another one has taken it since. Raises ConfigError for a database that cannot be
    used.
    """

    def __init__(
        self, url: str, *, now: Callable[[], datetime], lost: Callable[[], None] | None = None
    ) -> None:
        self._listener = Listener(url, ring=self._ring, now=now, lost=lost)
        try:
            writer = _open(url, connections=_WRITERS, reads=False)
            _prepare(writer)
        except BaseException:
            self._listener.close()
            raise
        readers = _open(url, connections=_READERS, reads=True)
        super().__init__(writer=writer, reader=readers, writers=_WRITERS, readers=_READERS)
        self._asking = Asking(
            lambda: self._reading.run(lambda: _open_asked(url)), connections=_ASKED
        )
        self._listener.start()

    def clock_offset(self) -> timedelta:
        """How far the database's clock is ahead of this machine's, as last measured."""
        return self._listener.offset

    async def close(self) -> None:
        """Finish what is under way and let the database go."""
        await self._asking.close()
        await super().close()
        self._listener.close()

    def _read(self, work: Callable[[Transaction], T]) -> T:
        try:
            return super()._read(work)
        except (DBAPIError, psycopg.Error) as error:
            _tell(error)
            raise

    async def _ask_log(self, asked: ByKey) -> Found | None:
        """What a log tells a key, by the event loop itself, if a connection of its own is free."""
        try:
            return await self._log_by_loop(asked)
        except Busy:
            return await super()._ask_log(asked)

    async def _log_by_loop(self, asked: ByKey) -> Found | None:
        row = await self._asking.ask(asked.values())
        seen = asked.see(_read_by_key(row)) if row else None
        if seen is None:
            return None
        bodies = self._bodies.known(seen.bodies)
        if bodies is None:
            raise Busy
        return seen.found(bodies)

    def _log_by_thread(self, asked: ByKey) -> Found | None:
        try:
            return super()._log_by_thread(asked)
        except (DBAPIError, psycopg.Error) as error:
            _tell(error)
            raise

    def _write(self, work: Callable[[Transaction], T]) -> T:
        for left in reversed(range(_TRIES)):
            try:
                return super()._write(work)
            except (DBAPIError, psycopg.Error) as error:
                if left and isinstance(_cause(error), _AGAIN):
                    continue
                _tell(error)
                raise
        raise AssertionError("the last try returns or raises")

    def _announce(self, connection: Connection, topics: list[Topic]) -> None:
        """One notice a transaction; what listens rings the bells, here as everywhere."""
        if topics:
            connection.execute(select(func.pg_notify(CHANNEL, " ".join(topics))))

    def _committed(self, topics: list[Topic]) -> None:
        """Leave the bells to the listener, which hears of this commit too."""


_AGAIN = (errors.DeadlockDetected, errors.SerializationFailure)


def _cause(error: DBAPIError | psycopg.Error) -> BaseException | None:
    """The driver's own error, which a statement that went straight to it raises itself."""
    return error.orig if isinstance(error, DBAPIError) else error


def _tell(error: DBAPIError | psycopg.Error) -> None:
    """Raise what callers are told where the database is away, full or too busy."""
    cause = _cause(error)
    if isinstance(cause, errors.DiskFull):
        raise OSError(errno.ENOSPC, "The database's disk is full") from error
    if isinstance(cause, psycopg.OperationalError | errors.IdleInTransactionSessionTimeout):
        raise Unavailable("The database does not answer: try again", retry_after=5) from error


def _open(url: str, *, connections: int, reads: bool) -> Engine:
    def open_one() -> psycopg.Connection:
        raw = connect(url)
        raw.execute(f"SET lock_timeout = '{_PATIENCE}'")
        if reads:
            raw.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            raw.read_only = True
        else:
            raw.execute(f"SET idle_in_transaction_session_timeout = '{_PATIENCE}'")
            raw.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        raw.autocommit = False
        return raw

    engine = create_engine(
        "postgresql+psycopg://",
        creator=open_one,
        poolclass=QueuePool,
        pool_size=connections,
        max_overflow=0,
    )
    event.listen(engine, "connect", _look_at)
    event.listen(engine, "checkout", _refuse_ended)
    return engine


def _look_at(connection: psycopg.Connection, record: ConnectionPoolEntry) -> None:
    """Have at hand what tells whether there is something to be read on a connection."""
    record.info[_LOOK] = look = poll()
    look.register(connection.fileno(), POLLIN)


def _refuse_ended(_: psycopg.Connection, record: ConnectionPoolEntry, *_more: object) -> None:
    """Have the pool open another, where the database or what lies between has ended this one.

    Nothing is said on a connection that nobody asks anything, but its end.
    """
    if record.info[_LOOK].poll(0):
        raise DisconnectionError


def read_postgres(url: str, work: Callable[[Connection], T]) -> T:
    """Run work over one consistent moment of a database, which nobody migrates for it.

    Raises ConfigError where the database cannot be reached.
    """
    with _opened(url, reads=True) as engine, engine.begin() as connection:
        return work(connection)


def write_postgres(url: str, work: Callable[[Connection], T]) -> T:
    """Run work in one transaction over a database, which is migrated first.

    Raises ConfigError where the database cannot be reached or used.
    """
    with _opened(url, reads=False) as engine:
        _prepare(engine)
        with engine.begin() as connection:
            return work(connection)


@contextmanager
def _opened(url: str, *, reads: bool) -> Iterator[Engine]:
    engine = _open(url, connections=1, reads=reads)
    try:
        yield engine
    except OperationalError as error:
        raise _unreachable(error) from None
    finally:
        engine.dispose()


def _unreachable(error: OperationalError) -> ConfigError:
    return ConfigError(f"PLOTI_DATABASE_URL: {str(error.orig).strip().splitlines()[0]}")


def _open_asked(url: str) -> psycopg.Connection:
    """A connection for the one statement by which pages are read."""
    connection = connect(url)
    connection.execute("SET default_transaction_read_only = on")
    connection.execute(f"SET lock_timeout = '{_ASKED_PATIENCE}'")
    prepare(connection, BY_KEY[True])
    return connection


def _read_by_key(row: Row) -> list[Any]:
    """The row of `BY_KEY` with its numbers."""
    texts = [value if value is None else value.decode() for value in row]
    return [*texts[:5], *map(int, filter(None, texts[5:8])), *texts[8:]]


def _prepare(writer: Engine) -> None:
    try:
        with writer.begin() as connection:
            _check_version(connection)
            connection.execute(select(func.pg_advisory_xact_lock(_MIGRATING)))
            migrate(connection)
    except BaseException:
        writer.dispose()
        raise


def _check_version(connection: Connection) -> None:
    version = connection.execute(text("SHOW server_version_num")).scalar_one()
    if int(version) < _OLDEST:
        raise ConfigError("PLOTI_DATABASE_URL: ploti needs PostgreSQL 15 or newer")
