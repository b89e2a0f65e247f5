"""Readers that tell how much of a source is read while they read it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ploti.server.build.progress import Telling
from ploti.server.ports.building import Reader
from ploti.server.sources.declaration import Declaration
from ploti.server.sources.raw import RawTable

_LOOK_EVERY = 0.5
"""Seconds between two looks at what was read."""

_ACCOUNT = Path("/proc/self/io")
_READ = "rchar:"
_WRITTEN = ("rows", "features")
"""What the names of the files begin with that readers leave: they are not read before the end."""


def told(
    readers: Sequence[Reader], telling: Telling, *, look_every: float = _LOOK_EVERY
) -> list[Reader]:
    """The readers, each telling the share that is read, whatever way it reads.

    The share is of the bytes of the source and of what it unpacks to, by the system's own account
    of this process; where there is none, nothing is told.
    """
    return [_Told(reader, telling, look_every) for reader in readers]


class _Told:
    """A reader with somebody who looks over its shoulder."""

    def __init__(self, reader: Reader, telling: Telling, look_every: float) -> None:
        self.format = reader.format
        self.matches = reader.matches
        self._reader = reader
        self._telling = telling
        self._look_every = look_every

    def read(self, path: str, *, declaration: Declaration, folder: str) -> RawTable:
        with self._looking(Path(path), Path(folder)):
            return self._reader.read(path, declaration=declaration, folder=folder)

    @contextmanager
    def _looking(self, source: Path, folder: Path) -> Iterator[None]:
        begun = _bytes_read()
        if begun is None:
            yield
            return
        over = threading.Event()

        def look() -> None:
            while not over.wait(self._look_every):
                with suppress(FileNotFoundError):  # a file that is gone by the second look
                    total = source.stat().st_size + _unpacked(folder)
                    self._telling.reach(((_bytes_read() or 0) - begun) / max(total, 1))

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _bytes_read() -> int | None:
    """All that this process has read of files so far."""
    try:
        lines = _ACCOUNT.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith(_READ)), None)


def _unpacked(folder: Path) -> int:
    """The bytes of the files in a folder that are there to be read."""
    files = (each for each in folder.rglob("*") if not each.name.startswith(_WRITTEN))
    return sum(each.stat().st_size for each in files if each.is_file())
