"""A folder of GeoParquet files as a destination: each table is one file, exchanged as a whole."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import duckdb

from ploti.client.alarm import Alarm
from ploti.errors import DestinationBusy, SyncError
from ploti.model.ids import SubscriptionId
from ploti.sync.costs import Weights
from ploti.sync.destination import Session
from ploti.sync.destinations.parquet.recorded import (
    OWN,
    Recorded,
    read_state,
    said_plainly,
    write_state,
)
from ploti.sync.destinations.parquet.session import ParquetSession, finish_moves
from ploti.sync.destinations.parquet.tables import Tables
from ploti.sync.engine import open_engine
from ploti.sync.locked import locked

_MEMORY = "512MB"
_PAUSE = 0.05


class Parquet:
    """The folder at `path`; what is ploti's own lies in `_ploti` below it."""

    weights = Weights(step=256 * 1024, change=1.0, table=1.0)
    """Changes are folded into the whole, which is written anew; a snapshot is taken as it is.

    That takes 50 ns of CPU time a byte, a snapshot 5 to 10 and its way through the network, which
    at 25 MB/s is worth as much: one version is folded, for two or more the snapshot is fetched.
    """

    def __init__(
        self, path: Path, *, subscription_id: SubscriptionId, lock_timeout: float, alarm: Alarm
    ) -> None:
        self._path = path
        self._subscription_id = subscription_id
        self._lock_timeout = lock_timeout
        self._alarm = alarm

    @cached_property
    def _engine(self) -> duckdb.DuckDBPyConnection:
        """What reads and writes the files; what does not fit in its memory goes into the folder."""
        return open_engine(spill=self._own / "spill", memory_limit=_MEMORY)

    @property
    def _own(self) -> Path:
        return self._path / OWN

    @property
    def name(self) -> str:
        """How to call it in messages."""
        return f"parquet:{self._path}"

    @property
    def downloads(self) -> Path:
        """A folder within, and so on its disk."""
        return self._own / "downloads"

    @property
    def exists(self) -> bool:
        """Whether anything was ever synced into it."""
        return read_state(self._path) is not None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other clients out, and finish what a killed run had committed."""
        self._make()
        with locked(self._own / "sync", name=self.name):
            with said_plainly(self.name):
                self._tidy()
            yield

    @contextmanager
    def session(self) -> Iterator[Session]:
        """The folder, made if need be."""
        self._make()
        recorded = read_state(self._path)
        if recorded is None:
            recorded = Recorded()
            with said_plainly(self.name):
                write_state(self._path, recorded)
        with said_plainly(self.name):
            yield self._session(recorded)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """The folder as it is at one moment: no commit comes in between."""
        if not self.exists:
            raise SyncError(f"There is no {self.name} yet: `ploti feeds sync` makes it")
        with said_plainly(self.name), self._held(fcntl.LOCK_SH):
            yield self._session(read_state(self._path) or Recorded())

    def _session(self, recorded: Recorded) -> ParquetSession:
        return ParquetSession(
            self._path,
            recorded,
            Tables(self._engine),
            self._subscription_id,
            lambda: self._held(fcntl.LOCK_EX),
        )

    def _make(self) -> None:
        if not self._path.parent.is_dir():
            raise SyncError(f"There is no folder {self._path.parent}: make it, then sync into it")
        with said_plainly(self.name):
            self._own.mkdir(parents=True, exist_ok=True)
            (self._own / "commit.lock").touch()

    def _tidy(self) -> None:
        recorded = read_state(self._path)
        if recorded is None:
            return
        with self._held(fcntl.LOCK_EX):
            finish_moves(self._path, recorded)
        for left in self._own.glob("*.new"):
            left.unlink()

    @contextmanager
    def _held(self, how: int) -> Iterator[None]:
        """Readers and commits keep each other out, for as long as either takes."""
        give_up = time.monotonic() + self._lock_timeout
        with (self._own / "commit.lock").open() as file:
            while True:
                try:
                    fcntl.flock(file, how | fcntl.LOCK_NB)
                    break
                except BlockingIOError as error:
                    if time.monotonic() >= give_up:
                        raise DestinationBusy(
                            f"{self.name} is in use by another ploti: try again later"
                        ) from error
                self._alarm.pause(_PAUSE)
            yield
