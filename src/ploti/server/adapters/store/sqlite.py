"""The store over SQLite: how a connection is made, and how its transactions begin."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from ploti.errors import ConfigError
from ploti.server.adapters.store.at_once import PRIMARY, ReaderAtOnce
from ploti.server.adapters.store.log import ByKey, Found
from ploti.server.adapters.store.migrate import migrate
from ploti.server.adapters.store.store import Busy, SqlStore
from ploti.server.ports.store import Transaction

T = TypeVar("T")

_PATIENCE = 10
"""Seconds to wait for a lock; only another program on the file can have one (a backup, say)."""

_CACHE = 32_768
"""KiB of pages that one transaction may change before it spills: a release to 10,000 logs."""

_PAGE = 8_192
"""Bytes of a page: a release to 10,000 logs of 90 events writes half as many as of 4 KiB."""

_CHECKPOINT = 4_000
"""Pages of the write-ahead log between checkpoints: releases to the same logs share the cost."""


_BROKEN = {
    sqlite3.SQLITE_NOTADB: "is no database",
    sqlite3.SQLITE_CORRUPT: "is a database that is damaged",
}

_READERS = 4
"""Threads that read, each over a connection."""

_READS = ("query_only=ON",)


class SqliteStore(SqlStore):
    """The port's `Store` over one SQLite file, which is made and migrated where needed.

    One thread writes; readers go on meanwhile (WAL).
    """

    def __init__(self, path: str) -> None:
        writer = open_writer(path)
        try:
            with readable(path), writer.begin() as connection:
                migrate(connection)
        except Exception:
            writer.dispose()
            raise
        readers = open_readers(path, connections=_READERS)
        super().__init__(writer=writer, reader=readers, writers=1, readers=_READERS)
        self._at_once = ReaderAtOnce(
            _open(path, connections=1, begin=None, pragmas=_READS, patience=0), bodies=self._bodies
        )

    async def read(self, work: Callable[[Transaction], T], *, briefly: bool = False) -> T:
        """Run work that only reads; what is brief is done here and now, if nothing is locked."""
        if briefly:
            with suppress(Busy):
                return self._at_once.read(work)
        return await super().read(work)

    async def close(self) -> None:
        """Finish what is under way and let the file go."""
        self._at_once.close()
        await super().close()

    async def _ask_log(self, asked: ByKey) -> Found | None:
        """What a log tells a key, here and now, if nothing is locked."""
        try:
            return self._at_once.by_key(asked)
        except Busy:
            return await super()._ask_log(asked)


def open_writer(path: str) -> Engine:
    """The engine with the one writing connection: durable at each commit, locked from BEGIN on."""
    return _open(
        path,
        connections=1,
        begin="BEGIN IMMEDIATE",
        pragmas=(
            f"page_size={_PAGE}",
            "journal_mode=WAL",
            "synchronous=FULL",
            f"cache_size=-{_CACHE}",
            f"wal_autocheckpoint={_CHECKPOINT}",
        ),
    )


def open_readers(path: str, *, connections: int) -> Engine:
    """An engine whose transactions each see one moment and cannot write."""
    return _open(path, connections=connections, begin="BEGIN", pragmas=_READS)


def read_sqlite(path: str, work: Callable[[Connection], T]) -> T:
    """Run work over one consistent moment of a database, which nobody migrates for it."""
    engine = open_readers(path, connections=1)
    try:
        with readable(path), engine.begin() as connection:
            return work(connection)
    finally:
        engine.dispose()


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Raises ConfigError in place of what SQLite says of a file that is no database, or broken."""
    try:
        yield
    except (sqlite3.DatabaseError, DBAPIError) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        code = getattr(cause, "sqlite_errorcode", 0) & PRIMARY
        if code not in _BROKEN:
            raise
        raise ConfigError(
            f"{path} {_BROKEN[code]}: put back the one that was there, or name another folder"
        ) from error


def _open(
    path: str,
    *,
    connections: int,
    begin: str | None,
    pragmas: tuple[str, ...],
    patience: int = _PATIENCE,
) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=path),
        poolclass=QueuePool,
        pool_size=connections,
        max_overflow=0,
        pool_reset_on_return=None,  # every connection comes back from an ended transaction
        connect_args={"timeout": patience, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def _prepare(raw: object, _entry: ConnectionPoolEntry) -> None:
        raw.isolation_level = None  # type: ignore[attr-defined]  # BEGIN is ours to say
        with readable(path):
            for pragma in pragmas:
                raw.execute(f"PRAGMA {pragma}").close()  # type: ignore[attr-defined]

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if begin:
            connection.exec_driver_sql(begin)

    return engine
