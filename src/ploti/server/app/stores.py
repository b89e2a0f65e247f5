"""Which database the settings mean, and the clock that all who use it go by."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection

from ploti.server.adapters.clock import OffsetClock, ShiftedClock, ShiftedTimer, SystemClock
from ploti.server.adapters.data_folder import DataFolder
from ploti.server.adapters.ids import RandomIds
from ploti.server.adapters.store import (
    PostgresStore,
    SqliteStore,
    SqlStore,
    read_postgres,
    read_sqlite,
)
from ploti.server.ports.outside import Clock
from ploti.server.settings import Settings

T = TypeVar("T")

OF_WEBHOOKS = b"ploti secrets of webhooks"
"""What the key is for that webhooks' secrets are sealed with."""


def open_store(settings: Settings, folder: DataFolder) -> SqlStore:
    """The database, this process's alone: the folder's own, or the one of PostgreSQL.

    It is made and migrated where needed. Where another server takes a lost one over, this process
    ends as by SIGTERM.
    """
    if settings.database_url is None:
        return SqliteStore(str(folder.database))
    return PostgresStore(settings.database_url, now=SystemClock().now, lost=_end)


def read_database(settings: Settings, folder: DataFolder, work: Callable[[Connection], T]) -> T:
    """Run work over one moment of the database as it stands, whoever else is at it.

    Raises ConfigError where it cannot be reached.
    """
    if settings.database_url is None:
        return read_sqlite(str(folder.database), work)
    return read_postgres(settings.database_url, work)


def secrets_of(settings: Settings, folder: DataFolder) -> list[bytes]:
    """What secrets are kept with, the newest first; the folder's own goes with its own database."""
    given = [each.encode() for each in settings.secret_keys]
    if settings.database_url is not None:
        return given
    return [*given, folder.secret(lambda: RandomIds().secret(""))]


def clock_of(settings: Settings, store: SqlStore) -> Clock:
    """The database's clock, moved as a test wants it."""
    clock = OffsetClock(SystemClock(), offset=store.clock_offset)
    return ShiftedClock(clock, Path(settings.test_clock)) if settings.test_clock else clock


def timer_of(settings: Settings) -> ShiftedTimer | None:
    """What a test has moved with the clock; None where time passes by itself."""
    return ShiftedTimer(Path(settings.test_clock)) if settings.test_clock else None


def _end() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
