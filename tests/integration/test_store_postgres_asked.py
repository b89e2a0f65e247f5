"""Logs by key over PostgreSQL: asked by the event loop itself, by a thread where it cannot."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest
import uvloop
from tests.contract.test_store_glances import LATER, Seen, append, glance, set_up
from tests.integration.test_store_postgres import count_connections, end_connections, running

from ploti.errors import Unavailable
from ploti.server.adapters.store import PostgresStore
from ploti.server.adapters.store.log import ByKey, Found, SqlLog

CONNECTIONS = 4
Asked = list[ByKey]


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


@asynccontextmanager
async def asking(url: str, by_threads: Asked) -> AsyncIterator[PostgresStore]:
    """A store with a log, and a connection by which the loop asks for it."""
    async with running(url) as store:
        await store.write(set_up)
        await glance_by_loop(store, by_threads)
        yield store


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
    postgres_url: str, by_threads: Asked
) -> None:
    async def story() -> None:
        async with asking(postgres_url, by_threads) as store:
            await store.write(lambda tx: append(tx, "4"))
            assert numbers(await glance(store)) == [1, 2, 3, 4]
            assert len(by_threads) == 1
            assert numbers(await glance(store)) == [1, 2, 3, 4]
            assert len(by_threads) == 1

    uvloop.run(story())


def test_more_questions_than_connections_are_all_answered(
    postgres_url: str, by_threads: Asked
) -> None:
    async def story() -> None:
        async with asking(postgres_url, by_threads) as store:
            for _ in range(20):
                asked = [
                    (after, glance(store, after=after)) for after in range(4) for _ in range(5)
                ]
                found = await asyncio.gather(*(question for _, question in asked))
                for (after, _), each in zip(asked, found, strict=True):
                    assert numbers(each) == list(range(after + 1, 4))
            listening, reading, writing = 1, 8, 8
            most = listening + reading + writing + CONNECTIONS
            assert await asyncio.to_thread(count_connections, postgres_url) <= most

    uvloop.run(story())


def test_a_question_that_nobody_waits_for_any_more_gives_its_answer_to_no_other(
    postgres_url: str, by_threads: Asked
) -> None:
    async def story() -> None:
        async with asking(postgres_url, by_threads) as store:
            with psycopg.connect(postgres_url) as other:
                other.execute("LOCK TABLE feed_log IN ACCESS EXCLUSIVE MODE")
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await glance(store, after=2)
                assert not by_threads
            for after in (0, 1, 0):
                assert numbers(await glance(store, after=after)) == list(range(after + 1, 4))
            assert numbers(await glance_by_loop(store, by_threads)) == [1, 2, 3]

    uvloop.run(story())


def test_connections_that_are_lost_are_made_again(postgres_url: str, by_threads: Asked) -> None:
    async def story() -> None:
        async with asking(postgres_url, by_threads) as store:
            for _ in range(3):
                await asyncio.to_thread(end_connections, postgres_url)
                with pytest.raises(Unavailable, match="does not answer"):
                    await glance(store)  # by a thread, whose connection was ended, too
                assert numbers(await glance_by_loop(store, by_threads)) == [1, 2, 3]

    uvloop.run(story())


def test_a_question_that_is_under_way_when_its_connection_is_lost_is_a_threads(
    postgres_url: str, by_threads: Asked
) -> None:
    async def story() -> None:
        async with asking(postgres_url, by_threads) as store:
            with psycopg.connect(postgres_url) as other:
                other.execute("LOCK TABLE feed_log IN ACCESS EXCLUSIVE MODE")
                question = asyncio.create_task(glance(store))
                await asyncio.sleep(0.2)
                assert not by_threads
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE wait_event_type = 'Lock' AND datname = current_database()"
                )
                await asyncio.sleep(0.2)
                assert len(by_threads) == 1
            assert numbers(await question) == [1, 2, 3]

    uvloop.run(story())


def test_what_the_database_refuses_is_told_by_a_thread(
    postgres_url: str, by_threads: Asked
) -> None:
    async def story() -> None:
        async with asking(postgres_url, by_threads) as store:
            with psycopg.connect(postgres_url, autocommit=True) as other:
                other.execute("ALTER TABLE api_key RENAME TO away")
                with pytest.raises(psycopg.errors.UndefinedTable):
                    await glance(store)
                other.execute("ALTER TABLE away RENAME TO api_key")
            assert numbers(await glance_by_loop(store, by_threads)) == [1, 2, 3]

    uvloop.run(story())
