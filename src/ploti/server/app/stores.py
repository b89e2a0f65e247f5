"""Which database the settings mean, and the clock that all who use it go by."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from ploti.server.adapters.clock import OffsetClock, ShiftedClock, SystemClock
from ploti.server.adapters.data_folder import DataFolder
from ploti.server.adapters.store import PostgresStore, SqliteStore, SqlStore
from ploti.server.ports.outside import Clock
from ploti.server.settings import Settings


def open_store(settings: Settings, folder: DataFolder) -> SqlStore:
    """The database, this process's alone: the folder's own, or the one of PostgreSQL.

    It is made and migrated where needed. Where another server takes a lost one over, this process
    ends as by SIGTERM.
    """
    if settings.database_url is None:
        return SqliteStore(str(folder.database))
    return PostgresStore(settings.database_url, now=SystemClock().now, lost=_end)


def clock_of(settings: Settings, store: SqlStore) -> Clock:
    """The database's clock, moved as a test wants it."""
    clock = OffsetClock(SystemClock(), offset=store.clock_offset)
    return ShiftedClock(clock, Path(settings.test_clock)) if settings.test_clock else clock


def _end() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
