"""What an operator does to a server's data without its REST: back up, recover, migrate."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from ploti.errors import ConfigError, PlotiError
from ploti.model.wire import Value
from ploti.server.adapters.archive import link_tree, remove_tree, write_archive
from ploti.server.adapters.data_folder import DataFolder, FolderMark, mark_text
from ploti.server.adapters.store import (
    blobs_of,
    copy_postgres,
    copy_sqlite,
    fill_postgres,
    pending,
)
from ploti.server.app.stores import open_store, read_database
from ploti.server.ports.outside import Given
from ploti.server.service.recover_numbers import recover_numbers
from ploti.server.settings import Settings

_TRIES = 5

Say = Callable[[str], None]


class Restored(Value, kw_only=True):
    """How many logs and datasets were raised, and which files of the database are missing.

    `filled` says that an empty database of PostgreSQL got the rows of the folder's own first.
    """

    filled: bool
    logs: int
    datasets: int
    missing: list[str]


def find_folder(settings: Settings) -> DataFolder:
    """The folder of a server; raises ConfigError where there is none yet."""
    if not (Path(settings.data) / "lock").exists():
        raise ConfigError(f"--data {settings.data}: no server has run there: name its folder")
    return DataFolder(settings.data)


def backup(settings: Settings, file: Path) -> int:
    """Write the database, the files that it knows of and the folder's secret into one archive.

    Returns how many files the database knows of.

    A server may run meanwhile. All is as it was at one moment: files are linked before the database
    is copied and after, and it is copied again where one went in between.
    """
    folder = find_folder(settings)
    work = Path(tempfile.mkdtemp(prefix="backup-", dir=folder.path.absolute()))
    try:
        names = _gather(settings, folder, work)
        (work / "given").write_text(mark_text(Given(number=0, restored=True)), encoding="utf-8")
        (work / "lock").touch()
        write_archive(file, _members(folder, work, names))
    finally:
        remove_tree(work)
    return len(names)


def recover(settings: Settings) -> Restored:
    """Raise all numbers over those that were given since the backup: a restore's last step.

    What was unpacked for a server on PostgreSQL goes into its database first, where that is empty.
    """
    folder = find_folder(settings)
    with folder.locked():
        filled = (
            settings.database_url is not None
            and folder.database.exists()
            and fill_postgres(settings.database_url, out_of=folder.database)
        )
        return asyncio.run(_recover(settings, folder, filled=filled))


def migrate(settings: Settings, *, dry_run: bool, say: Say) -> list[str]:
    """Bring the database to this release's form, and say each step; a dry run only says them.

    Returns the steps.
    """
    folder = DataFolder(settings.data) if settings.database_url else find_folder(settings)
    with folder.locked():
        steps = read_database(settings, folder, pending)
        for step in steps:
            say(f"{'would run' if dry_run else 'runs'} {step}")
        if steps and not dry_run:
            asyncio.run(open_store(settings, folder).close())
        return steps


def _gather(settings: Settings, folder: DataFolder, work: Path) -> list[str]:
    database = work / "ploti.db"
    missing: list[str] = []
    for _ in range(_TRIES):
        database.unlink(missing_ok=True)
        link_tree(folder.blobs, to=work / "blobs")
        if settings.database_url is None:
            copy_sqlite(folder.database, to=database)
        else:
            copy_postgres(settings.database_url, to=database)
        link_tree(folder.blobs, to=work / "blobs")
        names = sorted(blobs_of(database))
        missing = [name for name in names if not (work / "blobs" / name).exists()]
        if not missing:
            return names
    raise PlotiError(f"{missing[0]} is not among the server's files: `ploti doctor` says more")


def _members(folder: DataFolder, work: Path, names: list[str]) -> Iterator[tuple[str, Path]]:
    for name in ("lock", "given", "ploti.db"):
        yield name, work / name
    secret = folder.path / "secret"
    if secret.exists():
        yield "secret", secret
    for name in names:
        yield f"blobs/{name}", work / "blobs" / name


async def _recover(settings: Settings, folder: DataFolder, *, filled: bool) -> Restored:
    store, mark = open_store(settings, folder), FolderMark(folder)
    try:
        before = mark.read()
        # First, so that a crash in between leaves a server that refuses to start
        await mark.write(Given(number=before.number, restored=True))
        done = await store.write(lambda tx: recover_numbers(tx, before))
        blobs = await store.read(lambda tx: tx.recovery.blobs())
        await mark.write(done.given)
    finally:
        await store.close()
        mark.close()
    missing = sorted(name for name in blobs if not (folder.blobs / name).exists())
    return Restored(filled=filled, logs=done.logs, datasets=done.datasets, missing=missing)
