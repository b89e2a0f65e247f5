"""The one folder that holds all that an embedded server keeps, locked while it runs."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from ploti.errors import ConfigError, PlotiError
from ploti.server.ports.outside import Given

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
        self.given = root / "given"
        try:
            self._make()
        except OSError as error:
            raise ConfigError(f"--data {path}: {error.strerror}") from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder; the system lets go of it however this process ends.

        One that was new is taken away again where the block fails before anything is kept in it.
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
        except BaseException:
            self._leave_as_found()
            raise
        finally:
            os.close(descriptor)

    def is_locked(self) -> bool:
        """Whether a server runs on the folder."""
        with (self.path / _LOCK).open() as opened:
            try:
                fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

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
        root = self.path.absolute()
        self._made = [path for path in (root, *root.parents) if not path.exists()]
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        names = {path.name for path in self.path.iterdir()}
        self._was_empty = not names
        if names and _LOCK not in names:
            raise ConfigError(
                f"--data {self.path}: the folder holds something else; name a new or empty one"
            )

    def _leave_as_found(self) -> None:
        if self._was_empty and [path.name for path in self.path.iterdir()] == [_LOCK]:
            (self.path / _LOCK).unlink()
            with suppress(OSError):  # another server came to keep something beside it
                for path in self._made:
                    path.rmdir()


class FolderMark:
    """The port's `Mark` as a small file in the folder, beside the blobs."""

    def __init__(self, folder: DataFolder) -> None:
        self._file = folder.given
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="mark")

    def read(self) -> Given:
        """What stands there; nothing given where nothing does."""
        try:
            number, *rest = self._file.read_text(encoding="utf-8").split()
            return Given(number=int(number), restored=rest == [_RESTORED])
        except FileNotFoundError:
            return Given(number=0)
        except ValueError:
            raise ConfigError(f"{self._file} holds no number: put back the one of before") from None

    async def write(self, given: Given) -> None:
        """Write it down durably, in place of what stood there."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._pool, _write, self._file, mark_text(given))

    def close(self) -> None:
        """End the thread that writes."""
        self._pool.shutdown()


def mark_text(given: Given) -> str:
    """How a mark stands in its file."""
    return f"{given.number} {_RESTORED}\n" if given.restored else f"{given.number}\n"


_RESTORED = "restored"


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
