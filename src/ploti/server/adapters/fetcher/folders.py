"""Sources that are files: below folders that the operator opened, and nowhere else."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ploti.errors import SourceError
from ploti.server.sources.location import file_path

_CHUNK = 1 << 20


class Folders:
    """The folders of PLOTI_FILE_ROOTS; without one, no file is read."""

    def __init__(self, roots: Sequence[str], *, threads: ThreadPoolExecutor) -> None:
        self._roots = [Path(root).resolve() for root in roots]
        self._threads = threads

    async def read(self, url: str) -> AsyncGenerator[bytes, None]:
        """A file's bytes.

        Raises SourceError where the real path, after links, lies outside the folders, where there
        is no such file, and where the file changed while it was read.
        """
        loop = asyncio.get_running_loop()
        descriptor = await loop.run_in_executor(self._threads, self._open, url)
        try:
            before = os.fstat(descriptor)
            size = 0
            while chunk := await loop.run_in_executor(self._threads, os.read, descriptor, _CHUNK):
                size += len(chunk)
                if size > before.st_size:
                    break  # it may grow for ever
                yield chunk
            after = os.fstat(descriptor)
            if size != before.st_size or after.st_mtime_ns != before.st_mtime_ns:
                raise SourceError(f"the file {url} changed while it was read: check it again")
        finally:
            os.close(descriptor)

    def _open(self, url: str) -> int:
        path = Path(file_path(url))
        try:
            real = path.resolve()
            self._refuse_outside(path, real)
            # What became a link since is not followed; a pipe does not make the server wait.
            descriptor = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except (OSError, RuntimeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "its links form a loop"
            raise SourceError(f"the file {path} cannot be read: {reason}") from None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise SourceError(f"{path} is not a file")
        return descriptor

    def _refuse_outside(self, path: Path, real: Path) -> None:
        if any(real.is_relative_to(root) for root in self._roots):
            return
        opened = ":".join(map(str, self._roots)) or "nothing"
        raise SourceError(
            f"the file {path} is outside the folders that this server may read:"
            f" PLOTI_FILE_ROOTS opens {opened}"
        )
