"""Whose fault an error of PostgreSQL's is: one table's, or the whole destination's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from ploti.errors import DestinationBusy, SyncError
from ploti.sync.destination import DestinationLost, TableError

_OF_THE_TABLE = (
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.NotSupportedError,
    psycopg.ProgrammingError,
)
_CODES_OF_THE_TABLE = ("09", "27", "2B", "2F", "38", "39", "54", "55000", "55006")
"""And by the code: a trigger, what depends on the table, routines, limits, a table in use."""

_BUSY = (errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure)


@contextmanager
def said_of_the_table() -> Iterator[None]:
    """Tell the faults of one table from those of the whole destination."""
    try:
        yield
    except (errors.UniqueViolation, errors.CardinalityViolation) as error:
        raise TableError(f"a record id or another constraint is broken: {_said(error)}") from error
    except errors.InsufficientPrivilege:
        raise
    except psycopg.Error as error:
        if not _is_of_the_table(error):
            raise
        raise TableError(_said(error)) from error


def _is_of_the_table(error: psycopg.Error) -> bool:
    return isinstance(error, _OF_THE_TABLE) or (error.sqlstate or "").startswith(
        _CODES_OF_THE_TABLE
    )


@contextmanager
def said_of_the_whole(name: str) -> Iterator[None]:
    """Whatever PostgreSQL refuses beyond a table's own faults is the whole destination's."""
    try:
        yield
    except errors.DiskFull as error:
        raise SyncError(f"The disk of {name} is full: {_said(error)}") from error
    except errors.InsufficientPrivilege as error:
        raise SyncError(
            f"{_said(error)}: let this user CREATE in the database and in its default schema"
        ) from error
    except _BUSY as error:
        raise DestinationBusy(f"{name} is in use by another program: {_said(error)}") from error
    except psycopg.OperationalError as error:
        if _is_lost(error):
            raise DestinationLost(f"The connection to {name} was lost: {_said(error)}") from error
        raise SyncError(f"{name} failed: {_said(error)}") from error
    except psycopg.Error as error:
        raise SyncError(f"{name} failed: {_said(error)}") from error


def _is_lost(error: psycopg.OperationalError) -> bool:
    """Without a code it is the connection's; 08 is that too, 57P is a server that goes down."""
    code = error.sqlstate
    return code is None or code.startswith(("08", "57P"))


def _said(error: psycopg.Error) -> str:
    """What went wrong in one line, with the detail that names things."""
    parts = [error.diag.message_primary or str(error).partition("\n")[0], error.diag.message_detail]
    return "; ".join(part.replace("\n", ", ") for part in parts if part)
