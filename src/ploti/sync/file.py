"""A destination that is one file: what lies beside it, and the lock that keeps others out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ploti.client.alarm import Alarm
from ploti.errors import SyncError
from ploti.model.ids import SubscriptionId
from ploti.sync.locked import locked


class File:
    """The file at `path`, called by its kind and its path."""

    def __init__(
        self,
        kind: str,
        path: Path,
        *,
        subscription_id: SubscriptionId,
        lock_timeout: float,
        alarm: Alarm,
    ) -> None:
        self._kind = kind
        self._path = path
        self._subscription_id = subscription_id
        self._lock_timeout = lock_timeout
        self._alarm = alarm

    @property
    def name(self) -> str:
        """How to call it in messages."""
        return f"{self._kind}:{self._path}"

    @property
    def downloads(self) -> Path:
        """A folder beside the file, and so on its disk."""
        return self._beside("downloads")

    @property
    def exists(self) -> bool:
        """Whether the file is there."""
        return self._path.exists()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other clients out by a file beside it."""
        with locked(self._path, name=self.name):
            yield

    def _beside(self, what: str) -> Path:
        return self._path.with_name(f".{self._path.name}.{what}")

    def _check_exists(self) -> None:
        if not self.exists:
            raise SyncError(f"There is no {self.name} yet: `ploti feeds sync` makes it")
