"""Logs by key over PostgreSQL: asked by the event loop itself, by a thread where it cannot."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
import uvloop
from tests.contract.test_store_glances import LATER, Seen, append, glance, set_up
from tests.integration.test_store_postgres import count_connections, end_connections, running, until

from ploti.server.adapters.store import PostgresStore, postgres
from ploti.server.adapters.store.log import ByKey, Found, SqlLog

CONNECTIONS = 4
Asked = list[ByKey]
Story = Callable[[PostgresStore], Awaitable[None]]


@pytest.fixture
def by_threads(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What threads were asked."""
    asked: Asked = []
    by_key = SqlLog.by_key

    def told(log: SqlLog, question: ByKey) -> Found | None:
        asked.append(question)
        return by_key(log, question)

    monkeypatch.setattr(SqlLog, "by_key", told)
    return asked


async def glance_by_loop(store: PostgresStore, by_threads: Asked) -> Seen | None:
    """What the loop is told, once it has a connection and has met the events' bodies."""
    async with asyncio.timeout(60):
        while True:
            by_threads.clear()
            found = await glance(store)
            if not by_threads:
                return found
            await asyncio.sleep(0.01)


@pytest.fixture
def play(postgres_url: str, by_threads: Asked) -> Callable[[Story], None]:
    """What plays a story over a store with a log, which the loop has a connection to ask for."""

    def run(story: Story) -> None:
        async def main() -> None:
            async with running(postgres_url) as store:
                await store.write(set_up)
                await glance_by_loop(store, by_threads)
                await story(store)

        uvloop.run(main())

    return run


@contextmanager
def held_up(url: str) -> Iterator[None]:
    """While within, questions wait."""
    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE feed_log IN ACCESS EXCLUSIVE MODE")
        yield


def of_waiting(url: str, what: str) -> int:
    """Do something about each connection that is held up; how many there are."""
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(
            f"SELECT {what} FROM pg_stat_activity"
            " WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        return len(found.fetchall())


def numbers(found: Seen | None) -> list[int]:
    assert found is not None
    return [number for number, _ in found[2]]


def test_the_loop_asks_as_a_thread_does(postgres_url: str, by_threads: Asked) -> None:
    async def story() -> None:
        async with running(postgres_url) as store:
            await store.write(set_up)
            by_thread = await glance(store)
            assert len(by_threads) == 1
            assert await glance_by_loop(store, by_threads) == by_thread
            assert numbers(await glance(store, after=1, limit=1)) == [2]
            assert await glance(store, "d2") is None
            assert await glance(store, now=LATER) is None
            assert not by_threads

    uvloop.run(story())


def test_events_that_nobody_read_yet_are_read_by_a_thread(
    play: Callable[[Story], None], by_threads: Asked
) -> None:
    async def story(store: PostgresStore) -> None:
        await store.write(lambda tx: append(tx, "4"))
        assert numbers(await glance(store)) == [1, 2, 3, 4]
        assert len(by_threads) == 1
        assert numbers(await glance(store)) == [1, 2, 3, 4]
        assert len(by_threads) == 1

    play(story)


def test_more_questions_than_connections_are_all_answered(
    play: Callable[[Story], None], postgres_url: str
) -> None:
    async def story(store: PostgresStore) -> None:
        for _ in range(20):
            asked = [(after, glance(store, after=after)) for after in range(4) for _ in range(5)]
            found = await asyncio.gather(*(question for _, question in asked))
            for (after, _), each in zip(asked, found, strict=True):
                assert numbers(each) == list(range(after + 1, 4))
        listening, reading, writing = 1, 8, 8
        most = listening + reading + writing + CONNECTIONS
        assert await asyncio.to_thread(count_connections, postgres_url) <= most

    play(story)


def test_a_question_that_nobody_waits_for_any_more_gives_its_answer_to_no_other(
    play: Callable[[Story], None], postgres_url: str, by_threads: Asked
) -> None:
    async def story(store: PostgresStore) -> None:
        with held_up(postgres_url):
            question = asyncio.create_task(glance(store, after=2))
            await until(lambda: of_waiting(postgres_url, "pid") == 1)
            question.cancel()
            await asyncio.wait([question])
            assert not by_threads
        for after in (0, 1, 0):
            assert numbers(await glance(store, after=after)) == list(range(after + 1, 4))
        assert numbers(await glance_by_loop(store, by_threads)) == [1, 2, 3]

    play(story)


def test_connections_that_are_lost_are_made_again(
    play: Callable[[Story], None], postgres_url: str, by_threads: Asked
) -> None:
    async def story(store: PostgresStore) -> None:
        for _ in range(3):
            await asyncio.to_thread(end_connections, postgres_url)
            assert numbers(await glance(store)) == [1, 2, 3]
            assert numbers(await glance_by_loop(store, by_threads)) == [1, 2, 3]

    play(story)


def test_a_question_that_is_under_way_when_its_connection_is_lost_is_a_threads(
    play: Callable[[Story], None], postgres_url: str, by_threads: Asked
) -> None:
    async def story(store: PostgresStore) -> None:
        with held_up(postgres_url):
            question = asyncio.create_task(glance(store))
            await until(lambda: of_waiting(postgres_url, "pid") == 1)
            assert not by_threads
            assert of_waiting(postgres_url, "pg_terminate_backend(pid)") == 1
            await until(lambda: len(by_threads) == 1)
        assert numbers(await question) == [1, 2, 3]

    play(story)


def test_what_the_database_refuses_is_told_by_a_thread(
    play: Callable[[Story], None], postgres_url: str, by_threads: Asked
) -> None:
    async def story(store: PostgresStore) -> None:
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute("ALTER TABLE api_key RENAME TO away")
            with pytest.raises(psycopg.errors.UndefinedTable):
                await glance(store)
            other.execute("ALTER TABLE away RENAME TO api_key")
        assert numbers(await glance_by_loop(store, by_threads)) == [1, 2, 3]

    play(story)


def test_a_page_that_waits_long_for_a_lock_is_a_threads(
    play: Callable[[Story], None],
    postgres_url: str,
    by_threads: Asked,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postgres, "_ASKED_PATIENCE", "10ms")

    async def story(store: PostgresStore) -> None:
        with held_up(postgres_url):
            question = asyncio.create_task(glance(store))
            await until(lambda: len(by_threads) == 1)
        assert numbers(await question) == [1, 2, 3]

    play(story)
