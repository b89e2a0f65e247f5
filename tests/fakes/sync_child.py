"""A sync in a process of its own, that is killed at a named step or by whoever started it."""

from __future__ import annotations

import os
import signal
from multiprocessing.context import ForkServerProcess

from tests.fakes import synced
from tests.fakes.feed import SUBSCRIPTION
from tests.fakes.feed_server import KEY
from tests.fakes.forked import context

from ploti.client.connection import Client
from ploti.sync.feed import ClientFeed
from ploti.sync.progress import Progress

KILLED = -signal.SIGKILL


def start(
    url: str, place: synced.Place, *, die_at: tuple[str, int] | None = None
) -> ForkServerProcess:
    """Start a sync; it kills itself the given time that it passes the given moment."""
    process = context().Process(target=_sync, args=(url, place, die_at), daemon=True)
    process.start()
    return process


def _sync(url: str, place: synced.Place, die_at: tuple[str, int] | None) -> None:
    passed = 0

    def observe(progress: Progress) -> None:
        nonlocal passed
        if die_at is not None and progress.moment == die_at[0]:
            passed += 1
            if passed == die_at[1]:
                os.kill(os.getpid(), signal.SIGKILL)

    with Client(KEY, url=url) as client:
        synced.sync(ClientFeed(client, SUBSCRIPTION), place, observe=observe)
