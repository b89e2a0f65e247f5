"""Whose fault an error of SQLite's is: one table's, or the whole destination's."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from ploti.errors import DestinationBusy, SyncError
from ploti.sync.destination import TableError

_OF_THE_WHOLE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
    }
)


@contextmanager
def said_of_the_table() -> Iterator[None]:
    """Tell the faults of one table from those of the whole destination."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise TableError(f"a record id or another constraint is broken: {error}") from error
    except sqlite3.Error as error:
        if code_of(error) in _OF_THE_WHOLE:
            raise
        raise TableError(str(error)) from error


@contextmanager
def said_of_the_whole(name: str) -> Iterator[None]:
    """Whatever SQLite refuses beyond a table's own faults is the whole destination's."""
    try:
        yield
    except sqlite3.Error as error:
        if code_of(error) == sqlite3.SQLITE_BUSY:
            raise DestinationBusy(f"{name} is in use by another program: {error}") from error
        if code_of(error) == sqlite3.SQLITE_NOTADB:
            raise SyncError(
                f"{name} is no SQLite database: name another file, or move this one away"
            ) from error
        raise SyncError(f"{name} failed: {error}") from error


def code_of(error: sqlite3.Error) -> int:
    """The primary code, of which an extended one is a variant."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) & 0xFF
