"""The one folder that holds all that an embedded server keeps, locked while it runs."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ploti.errors import ConfigError, PlotiError

_LOCK = "lock"
_SIGNING = "secret"
_KEYS = "keys"


class DataFolder:
    """A folder with the database, the blobs, the work of builds, the secret and the lock.

    Raises ConfigError where the path can be no such folder: it is made (mode 0700) where there is
    none, and one that holds something else is not touched.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        root = self.path.absolute()  # a build runs in a folder of its own, and is told paths
        self.database = root / "ploti.db"
        self.blobs = root / "blobs"
        self.work = root / "work"
        self.keys = self.path / _KEYS
        try:
            self._make()
        except OSError as error:
            raise ConfigError(f"--data {path}: {error.strerror}") from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder; the system lets go of it however this process ends.

        Raises PlotiError where another server holds it.
        """
        descriptor = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise PlotiError(
                f"Another ploti serve runs on {self.path}: stop it first, or name another folder"
            ) from None
        try:
            yield
        finally:
            os.close(descriptor)

    def secret(self, make: Callable[[], str]) -> bytes:
        """The server's secret, which is made once and kept for good."""
        file = self.path / _SIGNING
        if not file.exists():
            _write(file, make())
        return file.read_bytes()

    def keep_keys(self, keys: Sequence[str]) -> None:
        """Write these keys a line each, where only the folder's owner can read them."""
        _write(self.keys, "".join(f"{key}\n" for key in keys))

    def _make(self) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        names = {path.name for path in self.path.iterdir()}
        if names and _LOCK not in names:
            raise ConfigError(
                f"--data {self.path}: the folder holds something else; name a new or empty one"
            )


def _write(file: Path, text: str) -> None:
    """Write a small file whole and durably, readable by its owner alone."""
    part = file.with_name(f".{file.name}.part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())
    part.rename(file)
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(folder)
    os.close(folder)
