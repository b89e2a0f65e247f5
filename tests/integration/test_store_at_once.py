"""Brief reads of SQLite: done in the caller's thread, or by one that may wait where they must."""

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError
from tests.fakes.releases import NOW, declare

from ploti.model.ids import DatasetId, SubscriptionId
from ploti.server.adapters.store import SqliteStore
from ploti.server.adapters.store.log import ByKey, Found, SqlLog
from ploti.server.ports.store import Transaction

A = DatasetId("ds_a")
NOBODY = SubscriptionId("sub_none")
Story = Callable[[SqliteStore], Awaitable[None]]


def play(folder: Path, story: Story) -> None:
    async def main() -> None:
        store = SqliteStore(str(folder / "ploti.db"))
        try:
            await story(store)
        finally:
            await store.close()

    asyncio.run(main())


def thread(_: Transaction) -> int:
    return threading.get_ident()


def locked() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY  # type: ignore[misc]  # as SQLite's own has it
    return error


def test_a_brief_read_is_done_where_it_is_asked_for_and_sees_what_was_committed(
    tmp_path: Path,
) -> None:
    async def story(store: SqliteStore) -> None:
        assert await store.read(thread, briefly=True) == threading.get_ident()
        assert await store.read(thread) != threading.get_ident()
        for number in range(3):
            name = DatasetId(f"ds_{number}")
            assert (
                await store.read(lambda tx, name=name: tx.datasets.get(name), briefly=True) is None
            )
            await store.write(lambda tx, name=name: declare(tx, name))
            assert await store.read(lambda tx, name=name: tx.datasets.get(name), briefly=True)

    play(tmp_path, story)


@pytest.mark.parametrize(
    "error", [locked(), OperationalError("SELECT 1", {}, locked())], ids=["driver", "sqlalchemy"]
)
def test_what_finds_the_file_locked_is_done_again_by_a_thread(
    tmp_path: Path, error: Exception
) -> None:
    async def story(store: SqliteStore) -> None:
        seen: list[int] = []

        def work(tx: Transaction) -> int:
            seen.append(thread(tx))
            if len(seen) == 1:
                raise error
            return len(seen)

        assert await store.read(work, briefly=True) == 2
        assert seen[0] == threading.get_ident() != seen[1]

    play(tmp_path, story)


def test_a_brief_read_beside_another_one_is_done_by_a_thread(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        reading, go_on = threading.Event(), threading.Event()

        def slow(_: Transaction) -> None:
            reading.set()
            assert go_on.wait(60)

        other = asyncio.create_task(asyncio.to_thread(asyncio.run, store.read(slow, briefly=True)))
        assert await asyncio.to_thread(reading.wait, 60)
        assert await store.read(thread, briefly=True) != threading.get_ident()
        go_on.set()
        await other

    play(tmp_path, story)


def test_a_brief_read_that_fails_is_told_and_leaves_nothing_open(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        def fail(tx: Transaction) -> None:
            tx.datasets.get(A)
            raise KeyError(A)

        with pytest.raises(KeyError):
            await store.read(fail, briefly=True)
        await store.write(lambda tx: declare(tx, A))
        assert await store.read(lambda tx: tx.datasets.get(A), briefly=True)

    play(tmp_path, story)


def test_a_log_is_asked_by_key_where_it_is_asked_for_and_by_a_thread_where_that_must_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_key, asked_in = SqlLog.by_key, list[int]()
    here, is_locked = threading.get_ident(), False

    def told(log: SqlLog, asked: ByKey) -> Found | None:
        asked_in.append(threading.get_ident())
        if is_locked and asked_in[-1] == here:
            raise locked()
        return by_key(log, asked)

    async def ask(store: SqliteStore) -> Found | None:
        return await store.log_by_key("none", NOBODY, after=0, limit=1, now=NOW)

    async def story(store: SqliteStore) -> None:
        nonlocal is_locked
        assert await ask(store) is None
        assert asked_in == [here]
        is_locked = True
        assert await ask(store) is None
        assert asked_in[:2] == [here, here]
        assert asked_in[2] != here

    monkeypatch.setattr(SqlLog, "by_key", told)
    play(tmp_path, story)


def test_a_store_that_is_closed_has_all_in_its_one_file(tmp_path: Path) -> None:
    """What copies the file of a server that is stopped has what it wrote."""

    async def story(store: SqliteStore) -> None:
        await store.write(lambda tx: declare(tx, A))
        assert await store.read(lambda tx: tx.datasets.get(A), briefly=True)

    play(tmp_path, story)
    assert [path.name for path in tmp_path.iterdir()] == ["ploti.db"]
