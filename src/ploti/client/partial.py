"""A file that is not whole yet: the bytes that are here, and their hash so far."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import BinaryIO

from ploti.client.calls import Progress
from ploti.errors import SyncError
from ploti.model.version import File

_BLOCK = 2**20


class Partial:
    """An open file that is to become `file`; its methods do IO and may be run in a thread."""

    def __init__(self, opened: BinaryIO, file: File, progress: Progress | None) -> None:
        self.file = file
        self.done = 0
        self._opened = opened
        self._hash = hashlib.sha256()
        self._progress = progress

    def take_up(self) -> None:
        """Count and hash what an earlier try left, or drop it where that cannot be the file's."""
        self._opened.seek(0)
        while block := self._opened.read(_BLOCK):
            self._count(block)
        if self.done > self.file.bytes:
            self.restart()

    def append(self, block: bytes) -> None:
        """Add bytes at the end; raises SyncError where they are more than the file has."""
        if self.done + len(block) > self.file.bytes:
            raise SyncError(f"more bytes came than the {self.file.bytes} that the version gives")
        self._opened.write(block)
        self._count(block)
        if self._progress is not None:
            self._progress(self.done, self.file.bytes)

    def restart(self) -> None:
        """Forget all bytes."""
        self._opened.truncate(0)
        self.done = 0
        self._hash = hashlib.sha256()

    def renew(self, file: File) -> None:
        """Go on with a fresh link to the same file; raises SyncError where it is another."""
        if (file.bytes, file.sha256) != (self.file.bytes, self.file.sha256):
            raise SyncError("the server gives another file for the same version now")
        self.file = file

    def is_whole(self) -> bool:
        """Whether all bytes are here."""
        return self.done == self.file.bytes

    def is_right(self) -> bool:
        """Whether the bytes that are here have the file's hash."""
        return self._hash.hexdigest() == self.file.sha256

    def _count(self, block: bytes) -> None:
        self.done += len(block)
        self._hash.update(block)


def is_there(path: Path, file: File) -> bool:
    """Whether the whole file, by its sum, is at this path already."""
    if not path.is_file() or path.stat().st_size != file.bytes:
        return False
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest() == file.sha256


def check_room(folder: Path, wanted: int) -> None:
    """Raises SyncError where the folder's disk has less room than that many bytes."""
    free = shutil.disk_usage(folder).free
    if free < wanted:
        raise SyncError(f"{folder} has room for {free} bytes, and {wanted} are to come: make room")
