"""Blobs as files below one folder: each whole and on the disk before its name is there."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
import re
import shutil
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

from ploti.errors import NotFound, SourceError
from ploti.model.wire import Instant
from ploti.server.adapters.blobs.signing import LinkSigner
from ploti.server.ports.links import Link
from ploti.server.ports.outside import StoredBlob

T = TypeVar("T")

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_BATCH = 1 << 20
"""Bytes gathered before a thread writes them: a hop for each network chunk would cost more."""

_TRIED = 1 << 16
_THREADS = 4
_UNFINISHED = ".unfinished"


class FolderBlobs:
    """The Blobs and LinkedFiles ports over a folder that this process alone writes.

    What an earlier process left unfinished is removed when the folder is opened. `spare` bytes of
    the disk stay free while a stream is kept: the database is beside it.
    """

    def __init__(self, folder: Path, *, signer: LinkSigner, spare: int = 0) -> None:
        self._root = folder
        self._spare = spare
        self._signer = signer
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="blobs")
        self._numbers = itertools.count()
        self._tree = threading.Lock()
        self._unfinished = folder / _UNFINISHED
        shutil.rmtree(self._unfinished, ignore_errors=True)
        self._unfinished.mkdir(parents=True)

    async def receive(self, name: str, chunks: AsyncIterator[bytes], *, limit: int) -> StoredBlob:
        """Keep a stream; raises SourceError where it is longer than `limit`, or has no room."""
        path = self._path(name)
        part = self._unfinished / str(next(self._numbers))
        digest = hashlib.sha256()
        size = 0
        try:
            with await self._run(lambda: part.open("wb")) as file:
                async for batch in _batches(chunks):
                    size += len(batch)
                    if size > limit:
                        raise SourceError(
                            f"The state is larger than {limit} bytes (PLOTI_MAX_SOURCE)"
                        )
                    await self._run(lambda batch=batch: self._write(file, batch, digest))  # type: ignore[misc]
                await self._run(lambda: _sync(file))
            await self._run(lambda: self._place(part, path))
        finally:
            part.unlink(missing_ok=True)
        return StoredBlob(name=name, bytes=size, sha256=digest.hexdigest())

    async def adopt(self, name: str, path: str) -> None:
        """Keep the file at `path`, which is gone afterwards; durable once this returns."""
        await self._run(lambda: self._adopt(Path(path), self._path(name)))

    async def copy(self, name: str, to: str) -> None:
        """Keep the same bytes under another name too; durable once this returns."""
        await self._run(lambda: self._copy(self._path(name), self._path(to)))

    @asynccontextmanager
    async def local(self, name: str) -> AsyncIterator[str]:
        """A path at which the blob can be read while the context is open."""
        yield str(self._path(name))

    async def lines(self, name: str, *, start: int, count: int) -> list[bytes]:
        """So many lines of a text, and no more than those in memory; raises NotFound."""
        return await self._run(lambda: self._lines(name, start, start + count))

    async def delete(self, name: str) -> None:
        """Remove a blob; nothing happens where there is none."""
        await self._run(lambda: self._delete(self._path(name)))

    async def try_out(self) -> None:
        """Keep a few bytes for a moment; raises OSError where nothing can be kept."""
        part = self._unfinished / str(next(self._numbers))
        await self._run(lambda: _try_out(part))

    async def free(self) -> int:
        """The bytes of the folder's disk that are free to this process."""
        return await self._run(lambda: shutil.disk_usage(self._root).free)

    async def names(self, prefix: str) -> list[str]:
        """All names below a prefix, which ends in a slash or is empty; sorted."""
        folder = self._path(prefix.rstrip("/")) if prefix else self._root
        return await self._run(lambda: self._names(folder))

    def link(self, name: str, *, file_name: str, sha256: str, expires_at: Instant) -> str:
        """An address at which the blob can be had without a key until `expires_at`."""
        self._path(name)
        return self._signer.link(name, file_name=file_name, sha256=sha256, expires_at=expires_at)

    def check(self, blob: str, query: Mapping[str, str]) -> Link:
        """What the link says; raises Forbidden where it is expired or was changed."""
        return self._signer.check(blob, query)

    @asynccontextmanager
    async def open(self, blob: str) -> AsyncIterator[OpenBlob]:
        """The blob, open while the context is; raises NotFound where it is not kept any more."""
        file = await self._run(lambda: self._open(blob))
        try:
            yield OpenBlob(file, self._pool)
        finally:
            await self._run(file.close)

    def close(self) -> None:
        """End the threads; what was being written is finished first."""
        self._pool.shutdown()

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def _path(self, name: str) -> Path:
        parts = name.split("/")
        if not all(_PART.fullmatch(part) for part in parts):
            raise ValueError(f"'{name}' is no name for a blob")
        return self._root.joinpath(*parts)

    def _write(self, file: BinaryIO, batch: bytes, digest: hashlib._Hash) -> None:
        if self._spare and shutil.disk_usage(self._root).free < self._spare + len(batch):
            raise SourceError(
                f"The state does not fit on the server's disk, of which {self._spare:,} bytes stay"
                " free (PLOTI_MIN_FREE)"
            )
        digest.update(batch)
        file.write(batch)

    def _adopt(self, source: Path, path: Path) -> None:
        with source.open("rb") as file:
            os.fsync(file.fileno())
        self._place(source, path)

    def _place(self, source: Path, path: Path) -> None:
        with self._tree:
            if path.exists():
                raise FileExistsError(f"blob {path.name} is there already")
            self._make_folder(path.parent)
            source.rename(path)
            _sync_folder(path.parent)

    def _copy(self, source: Path, path: Path) -> None:
        """A blob is never written again, so two names may share its bytes."""
        with self._tree:
            self._make_folder(path.parent)
            path.hardlink_to(source)
            _sync_folder(path.parent)

    def _make_folder(self, folder: Path) -> None:
        if not folder.is_dir():
            self._make_folder(folder.parent)
            folder.mkdir()
            _sync_folder(folder.parent)

    def _lines(self, name: str, start: int, end: int) -> list[bytes]:
        with self._open(name) as file:
            return list(itertools.islice(file, start, end))

    def _open(self, name: str) -> BinaryIO:
        try:
            return self._path(name).open("rb")
        except FileNotFoundError:
            raise NotFound("This file is not kept any more") from None

    def _delete(self, path: Path) -> None:
        with self._tree:
            path.unlink(missing_ok=True)
            for folder in path.parents:
                if folder == self._root or not _remove_empty(folder):
                    return

    def _names(self, folder: Path) -> list[str]:
        return sorted(
            str(path.relative_to(self._root))
            for path in folder.rglob("*")
            if path.is_file() and self._unfinished not in path.parents
        )


class OpenBlob:
    """An open file, read by place in the pool's threads."""

    def __init__(self, file: BinaryIO, pool: ThreadPoolExecutor) -> None:
        self._file = file.fileno()
        self._pool = pool
        self.size = os.fstat(self._file).st_size

    async def read(self, start: int, *, length: int) -> bytes:
        """Up to `length` bytes from `start` on; none at the end."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, os.pread, self._file, length, start)


async def _batches(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    gathered = bytearray()
    async for chunk in chunks:
        gathered += chunk
        if len(gathered) >= _BATCH:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)


def _try_out(part: Path) -> None:
    try:
        part.write_bytes(bytes(_TRIED))
    finally:
        part.unlink(missing_ok=True)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_empty(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:
        return False
    return True
