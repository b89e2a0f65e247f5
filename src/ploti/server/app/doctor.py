"""What is wrong with a set-up: every finding says what to do, and nothing is changed."""

from __future__ import annotations

import ipaddress
import os
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx2
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from ploti.errors import PlotiError
from ploti.model.wire import Instant
from ploti.server.adapters.blobs import derive
from ploti.server.adapters.clock import SystemClock
from ploti.server.adapters.data_folder import DataFolder, FolderMark
from ploti.server.adapters.sealer import Sealer
from ploti.server.adapters.store import look, pending
from ploti.server.app.offline import find_folder
from ploti.server.app.stores import OF_WEBHOOKS, read_database, secrets_of
from ploti.server.ports.store import Transaction
from ploti.server.service.recover_numbers import refuse_older
from ploti.server.settings import Settings

Findings = Iterator[str]

_OFF = timedelta(seconds=5)
_PATIENCE = 5
"""Seconds that the public address may take to answer."""

_HEALTHY = '{"status":"ok"}'
_OPEN_TO_ALL = 8
"""A network with fewer fixed bits than this is no network of one's own."""


def examine(settings: Settings) -> list[str]:
    """Look at everything, and give each thing that is wrong, with what to do about it."""
    folder = find_folder(settings)
    return [
        *_folder(folder, least_free=settings.min_free),
        *_machine(settings),
        *_addresses(settings),
        *(_reached(settings.public_url) if settings.public_url and folder.is_locked() else ()),
        *_database(settings, folder),
    ]


def _folder(folder: DataFolder, *, least_free: int) -> Findings:
    if folder.path.stat().st_mode & 0o077:
        yield f"{folder.path} is open to other users of this machine: chmod 700 {folder.path}"
    for path in (folder.path, folder.blobs, folder.work):
        if path.exists() and not os.access(path, os.R_OK | os.W_OK | os.X_OK):
            yield f"{path} cannot be written to: give it to the user that runs ploti"
    free = shutil.disk_usage(folder.path).free
    if free < least_free:
        yield (
            f"{folder.path} has {free >> 20} MiB left on its disk, and checks wait for the "
            f"{least_free >> 20} MiB of PLOTI_MIN_FREE: make room"
        )


def _machine(settings: Settings) -> Findings:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if settings.build_memory > memory:
        yield (
            f"PLOTI_BUILD_MEMORY is {settings.build_memory >> 20} MiB, but the machine has "
            f"{memory >> 20} MiB: set less, or builds end the server"
        )
    for root in settings.file_roots:
        if not (Path(root).is_dir() and os.access(root, os.R_OK | os.X_OK)):
            yield f"PLOTI_FILE_ROOTS: {root} is no folder that can be read: mend or leave it out"


def _addresses(settings: Settings) -> Findings:
    url = settings.public_url or ""
    if url.startswith("http:") and not _is_here(url):
        yield f"PLOTI_PUBLIC_URL: keys go to {url} in the clear: put TLS in front, and say https"
    for network in settings.allow_networks:
        if ipaddress.ip_network(network).prefixlen < _OPEN_TO_ALL:
            yield (
                f"PLOTI_ALLOW_NETWORKS: {network} lets webhooks and sources reach everything "
                "inside: name the networks of your own alone"
            )


def _reached(url: str) -> Findings:
    """Whether the server that runs now is reached at the address that links name."""
    try:
        answer = httpx2.get(f"{url}/healthz", timeout=_PATIENCE)
        wrong = "" if _HEALTHY in answer.text else f"answers {answer.status_code}, but not as ploti"
    except httpx2.HTTPError as error:
        wrong = f"does not answer ({_line_of(error)})"
    if wrong:
        yield (
            f"PLOTI_PUBLIC_URL: {url}/healthz {wrong}: have what stands in front hand it on to "
            "this server, or name the address that does"
        )


def _line_of(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _is_here(url: str) -> bool:
    host = url.split("//", 1)[1].partition("/")[0]
    return host.startswith(("localhost", "127.", "[::1]"))


def _database(settings: Settings, folder: DataFolder) -> Findings:
    try:
        steps = read_database(settings, folder, pending)
        if steps:
            yield f"the database lacks {len(steps)} migrations: run ploti migrate"
            return
        yield from read_database(
            settings, folder, lambda connection: _contents(settings, folder, connection)
        )
    except PlotiError as error:
        yield error.detail
    except (SQLAlchemyError, OSError) as error:
        yield f"the database cannot be read ({_line_of(error)}): put back the one of a backup"


def _contents(settings: Settings, folder: DataFolder, connection: Connection) -> list[str]:
    tx = look(connection)
    return [
        *_mark(folder, tx),
        *_clock(tx),
        *_secrets(settings, folder, tx),
        *_files(folder, tx),
        *(
            f"{each.dataset_id} cannot be read since {each.since}: {each.detail}"
            for each in tx.overview.failing()
        ),
    ]


def _mark(folder: DataFolder, tx: Transaction) -> Findings:
    mark = FolderMark(folder)
    try:
        refuse_older(tx, mark.read())
    except PlotiError as error:
        yield error.detail
    finally:
        mark.close()


def _clock(tx: Transaction) -> Findings:
    now, at_database = SystemClock().now(), tx.recovery.now()
    if at_database is not None and abs(at_database - now) > _OFF:
        yield f"this machine's clock is at {now}, the database's at {at_database}: set both right"
    newest = tx.retention.newest_event()
    if newest is not None and newest > Instant.of((at_database or now) + _OFF):
        yield f"the clock is at {now}, but an event was written at {newest}: set it right"
    last = tx.retention.last_run()
    if last is not None and last.stopped is not None:
        yield f"nothing is removed that is past retention: {last.stopped}"


def _secrets(settings: Settings, folder: DataFolder, tx: Transaction) -> Findings:
    sealer = Sealer([derive(each, OF_WEBHOOKS) for each in secrets_of(settings, folder)])
    shut = sum(not _opens(sealer, each.text) for each in tx.webhooks.sealed())
    if shut:
        yield (
            f"{shut} secrets of webhooks cannot be opened: put the key that sealed them back into "
            "PLOTI_SECRET_KEYS, behind the first"
        )


def _opens(sealer: Sealer, sealed: str) -> bool:
    try:
        sealer.open(sealed)
    except PlotiError:
        return False
    return True


def _files(folder: DataFolder, tx: Transaction) -> Findings:
    missing = sorted(name for name in tx.recovery.blobs() if not (folder.blobs / name).exists())
    if missing:
        yield (
            f"{len(missing)} files are missing, such as {folder.blobs / missing[0]}: put them back "
            "out of a backup"
        )
