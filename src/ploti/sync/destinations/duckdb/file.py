"""A DuckDB file as a destination; it is open only while there is something to do with it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import duckdb

from ploti.client.alarm import Alarm
from ploti.errors import DestinationBusy, SyncError
from ploti.model.ids import SubscriptionId
from ploti.model.sql import literal
from ploti.sync.costs import Weights
from ploti.sync.destination import Session
from ploti.sync.destinations.duckdb.session import DuckDBSession
from ploti.sync.destinations.duckdb.tables import ALIAS, failure, first_line
from ploti.sync.engine import open_engine
from ploti.sync.file import File

_IN_USE = ("Could not set lock on file", "Unique file handle conflict")
_NO_DATABASE = "not a valid DuckDB database file"
_PAUSE = 0.2


class DuckDB(File):
    """The file at `path`, which other processes may read between two transactions."""

    weights = Weights()

    def __init__(
        self, path: Path, *, subscription_id: SubscriptionId, lock_timeout: float, alarm: Alarm
    ) -> None:
        super().__init__(
            "duckdb",
            path,
            subscription_id=subscription_id,
            lock_timeout=lock_timeout,
            alarm=alarm,
        )

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        """A database in memory, to which the file is attached for as long as it is open.

        To make one anew each time is six times dearer than to attach a file to it.
        """
        return open_engine(spill=self._spill)

    @property
    def _spill(self) -> Path:
        """A folder for what a load has in hand beyond its memory."""
        return self._beside("spill")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other clients out by a file beside it."""
        with super().lock():
            self._finish_killed_run()
            try:
                yield
            finally:
                shutil.rmtree(self._spill, ignore_errors=True)

    def _finish_killed_run(self) -> None:
        """Bring what a killed run has committed, but left beside the file, into it."""
        if self._path.with_name(f"{self._path.name}.wal").exists():
            with self.session():
                pass

    @contextmanager
    def session(self) -> Iterator[Session]:
        """The file, opened for writing."""
        with _said_plainly(), self._attached("") as connection:
            session = DuckDBSession(connection, self._subscription_id)
            session.set_up()
            yield session

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """The file, opened for reading."""
        self._check_exists()
        with _said_plainly(), self._attached(" (READ_ONLY)") as connection:
            yield DuckDBSession(connection, self._subscription_id)

    @contextmanager
    def _attached(self, mode: str) -> Iterator[duckdb.DuckDBPyConnection]:
        """The file under a fixed alias: a file's own name could be that of a schema in it."""
        self._attach(self._connection, mode)
        try:
            yield self._connection
        except BaseException:
            # It may be in any state; closed, it lets go of the file for certain.
            self._connection.close()
            del self._connection
            raise
        try:
            self._connection.execute(f"DETACH {ALIAS}")
        except duckdb.Error:
            # What was committed stands in the log beside the file, and is moved in by the next.
            self._connection.close()
            del self._connection
            raise

    def _attach(self, connection: duckdb.DuckDBPyConnection, mode: str) -> None:
        give_up = time.monotonic() + self._lock_timeout
        while True:
            try:
                connection.execute(f"ATTACH {literal(str(self._path))} AS {ALIAS}{mode}")
                return
            except duckdb.Error as error:
                if _NO_DATABASE in str(error):
                    raise SyncError(
                        f"{self.name} is no DuckDB database: name another file, or move this one"
                        " away and sync makes it anew"
                    ) from error
                if not any(sign in str(error) for sign in _IN_USE):
                    raise SyncError(f"{self.name} cannot be opened: {first_line(error)}") from error
                if time.monotonic() >= give_up:
                    raise DestinationBusy(
                        f"{self.name} is in use by another program: {first_line(error)}"
                    ) from error
            self._alarm.pause(_PAUSE)


@contextmanager
def _said_plainly() -> Iterator[None]:
    """Whatever DuckDB refuses beyond a table's own faults is the whole destination's."""
    try:
        yield
    except duckdb.Error as error:
        raise failure(error) from error
