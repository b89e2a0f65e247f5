"""Bodies of requests that are read while they are sent, so that a file is never held whole."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import anyio.to_thread

from ploti.client.calls import Progress, Upload
from ploti.errors import ConfigError

CHUNK = 2**20
"""Bytes read at a time."""


@dataclass(frozen=True, slots=True)
class Body:
    """What is left of an open file; `size` in bytes is None where only its end will tell."""

    file: BinaryIO
    size: int | None
    progress: Progress | None

    async def chunks(self) -> AsyncIterator[bytes]:
        """The bytes, at most `size` of them."""
        done = 0
        while chunk := await anyio.to_thread.run_sync(self.file.read, self._wanted(done)):
            done += len(chunk)
            yield chunk
            if self.progress is not None:
                self.progress(done, self.size)

    def _wanted(self, done: int) -> int:
        return CHUNK if self.size is None else min(CHUNK, self.size - done)


@asynccontextmanager
async def open_body(upload: Upload) -> AsyncIterator[Body]:
    """Open an upload's file, where only its path is given; raises ConfigError where it cannot."""
    if not isinstance(upload.source, str):
        yield Body(upload.source, _size_left(upload.source), upload.progress)
        return
    try:
        file = await anyio.to_thread.run_sync(_open, upload.source)
    except OSError as error:
        raise ConfigError(f"cannot read {upload.source}: {error.strerror}") from error
    with file:
        yield Body(file, _size_left(file), upload.progress)


def _open(path: str) -> BinaryIO:
    return Path(path).open("rb")


def _size_left(file: BinaryIO) -> int | None:
    try:
        status = os.fstat(file.fileno())
        return status.st_size - file.tell() if stat.S_ISREG(status.st_mode) else None
    except (OSError, AttributeError):
        return None
