"""A store of each kind, for the contract that all of them keep."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ploti.server.adapters.clock import SystemClock
from ploti.server.adapters.store import PostgresStore, SqliteStore, SqlStore
from ploti.server.ports.store import Store

Open = Callable[[], SqlStore]
Play = Callable[[Callable[[Store], Awaitable[None]]], None]


@pytest.fixture(params=["sqlite", "postgres"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    if request.param == "sqlite":
        return lambda: SqliteStore(str(tmp_path / "ploti.db"))
    url = request.getfixturevalue("postgres_url")
    return lambda: PostgresStore(url, now=SystemClock().now)


@pytest.fixture
def play(open_store: Open) -> Play:
    def run(story: Callable[[Store], Awaitable[None]]) -> None:
        async def main() -> None:
            store = open_store()
            try:
                await story(store)
            finally:
                await store.close()

        asyncio.run(main())

    return run
