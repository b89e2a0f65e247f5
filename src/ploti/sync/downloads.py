"""Files on their way: a temporary folder beside the destination, and room for what is to come."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ploti.errors import SyncError
from ploti.model.version import Version
from ploti.sync.feed import Feed, FileError, Role

_ROOM = 3
"""Times a file's size: the file itself, and the rows that it becomes while the old ones stand."""


class Downloads:
    """The folder, and the feed that fills it."""

    def __init__(self, feed: Feed, folder: Path) -> None:
        self._feed = feed
        self._folder = folder

    @contextmanager
    def opened(self) -> Iterator[None]:
        """An empty folder, gone at the end; what a killed run left in it goes first."""
        try:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder.mkdir(parents=True)
        except OSError as error:
            raise SyncError(f"Cannot make {self._folder}: {error.strerror}") from error
        try:
            yield
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def fetch(self, version: Version, role: Role) -> Path:
        """A file of the version, checked.

        Raises:
            FileError: There is none, or it is damaged.
            SyncError: There is no room for it.
        """
        files = version.files.snapshot if role == "snapshot" else version.files.changes
        if files is None:
            raise FileError(f"version {version.version} has no {role} file any more")
        self._check_room(sum(file.bytes for file in files))
        to = self._folder / f"{version.dataset_id}.{version.version}.{role}.parquet"
        return self._feed.fetch(version.dataset_id, version.version, role, to)

    def clear(self) -> None:
        """Remove what was fetched: it is in the destination, or of no use."""
        for file in self._folder.iterdir():
            file.unlink()

    def _check_room(self, size: int) -> None:
        free = shutil.disk_usage(self._folder).free
        if free < _ROOM * size:
            raise SyncError(
                f"The disk is too full: {self._folder.parent} has {free:,} bytes free, and a file"
                f" of {size:,} bytes is to become a table there. Make room, then run sync again"
            )
