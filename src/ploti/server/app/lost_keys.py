"""A staff's key made without one, over the database of a server that is stopped."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ploti.errors import ConfigError
from ploti.model.account import KeyWithSecret
from ploti.server.adapters.data_folder import DataFolder
from ploti.server.adapters.ids import RandomIds
from ploti.server.app.stores import clock_of, open_store
from ploti.server.service.make_staff_key import make_staff_key
from ploti.server.settings import Settings


def make_lost_key(settings: Settings) -> KeyWithSecret:
    """Make a key with every permission; raises PlotiError where a server is on the folder."""
    if not Path(settings.data).is_dir():
        raise ConfigError(f"--data {settings.data}: there is no such folder")
    folder = DataFolder(settings.data)
    with folder.locked():
        return asyncio.run(_make(settings, folder))


async def _make(settings: Settings, folder: DataFolder) -> KeyWithSecret:
    store = open_store(settings, folder)
    try:
        now = clock_of(settings, store).now()
        return await store.write(lambda tx: make_staff_key(tx, ids=RandomIds(), now=now))
    finally:
        await store.close()
