"""Downloads of a version's files: resumed when broken, checked before they are used."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import anyio
import httpx2
from anyio.to_thread import run_sync as in_thread

from ploti.client.calls import BUILDING, Progress
from ploti.client.endpoints import get_dataset, get_version
from ploti.client.partial import Partial, check_room, is_there
from ploti.client.problems import Broken, pause_after, read_refusal
from ploti.client.sides import BlockingSide
from ploti.client.transport import Transport, origin, read_answer
from ploti.errors import ConfigError, PlotiError, SyncError
from ploti.model.version import File

Role = Literal["snapshot", "changes", "schema", "id_map"]

BLOCK = 128 * 1024
"""Bytes that are waited for, written and hashed at a time."""
PATIENCE = 60.0
"""Seconds for each block: a download that is slower counts as broken."""


class DamagedFile(SyncError):
    """A file's bytes are not those that its version names."""


class LinkRefused(SyncError):
    """A signed link has expired."""


class MissingFile(SyncError):
    """The version has no file of this kind."""


def fetch_file(
    client: BlockingSide,
    dataset_id: str,
    version: int,
    role: Role,
    *,
    format: str | None = None,
    to: Path,
    progress: Progress | None = None,
) -> Path:
    """Download one file of a version to the path `to`, which is given back.

    Until all its bytes are there and have the sha256 that the version gives, the file is called
    `<to>.part`; a broken download goes on from there, with fresh links when they have expired.
    A file at `to` that has the right sum already is left as it is.

    Raises:
        SyncError: The version has no such file (`MissingFile`), its bytes are damaged
            (`DamagedFile`), there is no room for it, or it cannot be written.
        TransportError: The server cannot be reached, or no more bytes come.
        ApiError: The server refuses (`Expired`, `NotSubscribed`, `NotFound`, ...).
    """
    return client.run(
        download, dataset_id, version, to=to, role=role, format=format, progress=progress
    )


async def download(
    transport: Transport,
    dataset_id: str,
    version: int | None = None,
    *,
    to: str | os.PathLike[str],
    role: Role = "snapshot",
    format: str | None = None,
    progress: Progress | None = None,
) -> Path:
    """Download a file of a version (left out: of the current one) to the path `to`.

    `role` is `snapshot`, `changes`, `id_map` or `schema`; `format` is `geoparquet` (without
    geometry plain `parquet`) or `csv`. The bytes are checked against the version's sha256 before
    the file has its name; a broken download is resumed, and expired links are asked for anew.

    Raises:
        SyncError: There is no such file or no room for it, or its bytes are damaged.
        TransportError: The server cannot be reached, or no more bytes come.
        ApiError: The server refuses.
        ConfigError: There is no such `role`.
    """
    if role not in get_args(Role):
        raise ConfigError(f"'{role}' is no file of a version: give {', '.join(get_args(Role))}")
    number = await _current(transport, dataset_id) if version is None else version
    wanted = _Wanted(dataset_id, number, role, format)
    file = await wanted.look_up(transport)
    try:
        return await _download(transport, wanted, file, Path(to), progress)
    except OSError as error:
        raise SyncError(f"cannot write {to}: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which file: asked for again, it is the same one with a fresh link."""

    dataset_id: str
    version: int
    role: Role
    format: str | None

    async def look_up(self, transport: Transport) -> File:
        patience = BUILDING if self.format == "csv" else 0.0  # it may have to be made first
        version = await transport.send(
            get_version(self.dataset_id, self.version, format=self.format, patience=patience)
        )
        kept = version.files
        by_role = {
            "snapshot": kept.snapshot,
            "changes": kept.changes,
            "schema": [kept.schema],
            "id_map": kept.id_map,
        }
        files = by_role[self.role]
        if not files:
            raise MissingFile(f"{self}: there is no such file; load the current version's snapshot")
        if len(files) > 1:
            raise SyncError(f"{self}: it comes in {len(files)} parts, which needs a newer ploti")
        return files[0]

    def __str__(self) -> str:
        return f"{self.role} of version {self.version} of {self.dataset_id}"


async def _current(transport: Transport, dataset_id: str) -> int:
    dataset = await transport.send(get_dataset(dataset_id))
    if dataset.current is None:
        raise MissingFile(f"{dataset_id} has no version yet")
    return dataset.current.version


async def _download(
    transport: Transport, wanted: _Wanted, file: File, to: Path, progress: Progress | None
) -> Path:
    if await in_thread(is_there, to, file):
        return to
    part = to.with_name(to.name + ".part")
    with part.open("a+b") as opened:
        partial = Partial(opened, file, progress)
        await in_thread(partial.take_up)
        taken_up = partial.done > 0
        await in_thread(check_room, to.parent, file.bytes - partial.done)
        await _complete(transport, wanted, partial)
        if taken_up and not partial.is_right():  # what was taken up was of another file
            partial.restart()
            await _complete(transport, wanted, partial)
    if not partial.is_right():
        part.unlink()
        raise DamagedFile(f"{wanted}: its bytes have another sha256 than the version gives")
    part.replace(to)
    return to


async def _complete(transport: Transport, wanted: _Wanted, partial: Partial) -> None:
    """Read until the file is whole, again and again while the tries bring something."""
    attempt, mark, refreshed = 0, partial.done, False
    while not partial.is_whole():
        try:
            await _read_on(transport, partial)
        except PlotiError as error:
            if partial.done - mark >= BLOCK:
                attempt, mark, refreshed = 0, partial.done, False
            if isinstance(error, LinkRefused) and not refreshed:
                partial.renew(await wanted.look_up(transport))
                refreshed = True
                continue
            attempt += 1
            pause = pause_after(error, attempt, chance=0.0)
            if pause is None:
                raise
            await anyio.sleep(pause)


async def _read_on(transport: Transport, partial: Partial) -> None:
    async with transport.download(partial.file.url, offset=partial.done) as response:
        if response.status_code == 403:
            raise LinkRefused("the server refuses the links that it has just given")
        if response.status_code == 416:
            partial.restart()
            raise Broken("the server has less of the file than is here")
        if not response.is_success:
            raise read_refusal(await read_answer(response), origin(response.url))
        if not _begins_at(partial.done, response):
            partial.restart()
        async for block in _blocks(response):
            await in_thread(partial.append, block)
    if not partial.is_whole():
        raise Broken(f"the file ended after {partial.done} of {partial.file.bytes} bytes")


def _begins_at(offset: int, response: httpx2.Response) -> bool:
    if response.status_code != 206:
        return offset == 0
    return response.headers.get("Content-Range", "").startswith(f"bytes {offset}-")


async def _blocks(response: httpx2.Response) -> AsyncIterator[bytes]:
    """The body in blocks of BLOCK bytes or a little more; what came before it broke is not lost."""
    chunks = response.aiter_bytes()
    whole = False
    broken: Exception | None = None
    while not whole and broken is None:
        block = bytearray()
        try:
            with anyio.fail_after(PATIENCE):
                whole = await _fill(block, chunks)
        except TimeoutError:
            broken = Broken(f"less than {BLOCK} bytes came in {PATIENCE:g} s")
        except httpx2.HTTPError as error:
            broken = error
        if block:
            yield bytes(block)
    if broken is not None:
        raise broken


async def _fill(block: bytearray, chunks: AsyncIterator[bytes]) -> bool:
    """Whether the end of the chunks was reached before the block was full."""
    async for chunk in chunks:
        block += chunk
        if len(block) >= BLOCK:
            return False
    return True
