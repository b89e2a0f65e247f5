"""Connections that wait for other programs' locks, until they are stopped."""

from __future__ import annotations

import sqlite3
import time
from typing import Any

from ploti.client.alarm import Alarm
from ploti.sync.destinations.sqlite.faults import code_of

_PAUSE = 0.02


class _Patient(sqlite3.Connection):
    """SQLite's own wait, a sleep within it, ends for nothing but the lock and the time."""

    lock_timeout: float
    alarm: Alarm

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:  # noqa: ANN401
        """Try until no lock is in the way: one that is refused has changed nothing."""
        give_up = time.monotonic() + self.lock_timeout
        while True:
            try:
                return super().execute(sql, parameters)
            except sqlite3.OperationalError as error:
                if code_of(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= give_up:
                    raise
            self.alarm.pause(_PAUSE)


def connect(address: str, *, lock_timeout: float, alarm: Alarm) -> sqlite3.Connection:
    """A connection to a `file:` address that leaves transactions to its user.

    Like what else a run has open, it may be used by one thread after another.
    """
    connection = sqlite3.connect(
        address,
        uri=True,
        timeout=0,
        isolation_level=None,
        check_same_thread=False,
        factory=_Patient,
    )
    connection.lock_timeout, connection.alarm = lock_timeout, alarm
    return connection
