"""What is PostgreSQL's own: many writers, notices, its clock, and connections that are lost."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import psycopg
import pytest
from psycopg import errors
from tests.fakes.postgres import Cluster
from tests.fakes.releases import NOW, declare, release

from ploti.errors import ConfigError, PlotiError, Unavailable
from ploti.model.account import KeyWithSecret, NewKey, Plan
from ploti.model.ids import DatasetId, MemberId, PlanId, SubscriptionId, WorkspaceId
from ploti.model.wire import Instant
from ploti.server.adapters.clock import SystemClock
from ploti.server.adapters.ids import RandomIds
from ploti.server.adapters.store import PostgresStore
from ploti.server.ports.rows import JobKind, MemberRow, WorkspaceRow
from ploti.server.ports.store import Transaction
from ploti.server.service.manage_members import create_key, remove_member

A, B = DatasetId("ds_a"), DatasetId("ds_b")
WORKSPACE, ADA = WorkspaceId("ws_1"), MemberId("mem_ada")
NOBODY, NOWHERE = SubscriptionId("sub_none"), WorkspaceId("ws_none")


def opened(url: str, **settings: Callable[[], None]) -> PostgresStore:
    return PostgresStore(url, now=SystemClock().now, **settings)


@asynccontextmanager
async def running(url: str, **settings: Callable[[], None]) -> AsyncIterator[PostgresStore]:
    store = opened(url, **settings)
    try:
        yield store
    finally:
        await store.close()


def end_connections(url: str) -> None:
    """End every other connection to the database, as its restart does."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def count_connections(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchone()
    assert row is not None
    found: int = row[0]
    return found


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - it holds in a thread's time
            await asyncio.sleep(0.01)


def test_ids_times_and_words_are_ordered_by_their_bytes_whatever_the_database_orders_by(
    postgres_url: str,
) -> None:
    asyncio.run(opened(postgres_url).close())
    with psycopg.connect(postgres_url) as connection:
        others = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = 'public' AND table_name <> 'alembic_version'"
            " AND data_type = 'character varying' AND collation_name IS DISTINCT FROM 'C'"
        ).fetchall()
    assert others == []


def test_bells_ring_in_every_store_of_a_database(postgres_url: str) -> None:
    async def story() -> None:
        async with running(postgres_url) as here, running(postgres_url) as there:
            heard: list[str] = []
            for name, store in (("here", here), ("there", there)):
                store.on_log(lambda name=name: heard.append(f"log {name}"))
                store.on_jobs(lambda name=name: heard.append(f"jobs {name}"))
            await here.write(lambda tx: declare(tx, A))
            assert heard == []
            await here.write(lambda tx: release(tx, A))
            await until(lambda: {"log here", "log there"} <= {*heard})
            await there.write(lambda tx: tx.jobs.put(JobKind.CHECK, A, at=NOW))
            await until(lambda: {"jobs here", "jobs there"} <= {*heard})
            assert len(heard) == 4

    asyncio.run(story())


def test_connections_that_ended_while_nothing_was_asked_are_made_anew(postgres_url: str) -> None:
    async def story() -> None:
        async with running(postgres_url) as store:
            await store.write(lambda tx: declare(tx, A))
            rung = threading.Event()
            store.on_log(rung.set)
            assert await store.read(lambda tx: tx.log.extent(NOBODY, workspace=NOWHERE)) is None
            await asyncio.to_thread(end_connections, postgres_url)
            assert await store.read(lambda tx: tx.datasets.get(A)) is not None
            assert await store.write(lambda tx: release(tx, A)) == 1
            assert await asyncio.to_thread(rung.wait, 60)  # something may have been missed
            rung.clear()
            assert await store.write(lambda tx: release(tx, A)) == 2
            assert await asyncio.to_thread(rung.wait, 60)

    asyncio.run(story())


def test_a_transaction_ended_to_break_a_circle_of_waits_is_run_again(postgres_url: str) -> None:
    """Two that lock the same two datasets in opposite order; both are done in the end."""
    both = threading.Barrier(2)
    runs: list[str] = []

    def crossing(first: DatasetId, second: DatasetId) -> Callable[[Transaction], None]:
        def work(tx: Transaction) -> None:
            runs.append(first)
            tx.datasets.lock(first)
            if len(runs) <= 2:
                both.wait(60)
            tx.datasets.lock(second)
            release(tx, first)

        return work

    async def story() -> None:
        async with running(postgres_url) as store:
            for dataset in (A, B):
                await store.write(lambda tx, dataset=dataset: declare(tx, dataset))
            await asyncio.gather(store.write(crossing(A, B)), store.write(crossing(B, A)))
            assert len(runs) >= 3  # the one that is run again may meet the other again
            found = [await store.read(lambda tx, d=d: tx.datasets.get(d)) for d in (A, B)]
            assert [dataset and dataset.current_version for dataset in found] == [1, 1]

    asyncio.run(story())


def test_a_transaction_that_is_broken_off_each_time_is_told_to_come_again(
    postgres_url: str,
) -> None:
    def work(tx: Transaction) -> None:
        del tx
        raise errors.SerializationFailure

    async def story() -> None:
        async with running(postgres_url) as store:
            with pytest.raises(Unavailable, match="does not answer"):
                await store.write(work)

    asyncio.run(story())


def make_member(tx: Transaction) -> None:
    tx.plans.add(Plan(id=PlanId("all"), created_at=NOW))
    tx.workspaces.add(
        WorkspaceRow(
            id=WORKSPACE,
            name="W",
            coverage=None,
            plan_id=PlanId("all"),
            public=False,
            created_at=NOW,
        )
    )
    tx.members.add(MemberRow(id=ADA, workspace_id=WORKSPACE, name="Ada", created_at=NOW))


def test_a_key_made_while_its_member_leaves_ends_with_it(postgres_url: str) -> None:
    made = threading.Event()

    def make(tx: Transaction) -> KeyWithSecret:
        key = create_key(tx, NewKey(member_id=ADA), ids=RandomIds(), now=NOW)
        made.set()
        while not (left.done() or count_waiting(postgres_url, kind="transactionid")):
            threading.Event().wait(0.01)
        return key

    async def leave(store: PostgresStore) -> None:
        await asyncio.to_thread(made.wait, 60)
        await store.write(lambda tx: remove_member(tx, ADA, now=NOW))

    async def story() -> None:
        nonlocal left
        async with running(postgres_url) as store:
            await store.write(make_member)
            left = asyncio.create_task(leave(store))
            key = await store.write(make)
            await left
            found = await store.read(lambda tx: tx.keys.get(key.id))
            assert found is not None
            assert found.key.revoked_at is not None

    left: asyncio.Task[None]
    asyncio.run(story())


def test_a_job_planned_by_many_at_once_is_one_job(postgres_url: str) -> None:
    async def story() -> None:
        async with running(postgres_url) as store:
            put = [
                store.write(lambda tx: tx.jobs.put(JobKind.PRUNE, "", at=NOW)) for _ in range(40)
            ]
            await asyncio.gather(*put)
            (queue,) = await store.read(lambda tx: tx.overview.queues(now=NOW))
            assert (queue.planned, queue.due) == (1, 1)

    asyncio.run(story())


def test_a_store_takes_no_more_connections_than_it_says(postgres_url: str) -> None:
    async def story() -> None:
        async with running(postgres_url) as store:
            await store.write(lambda tx: declare(tx, A))
            await asyncio.gather(
                *(store.read(lambda tx: tx.datasets.get(A)) for _ in range(60)),
                *(store.write(lambda tx: release(tx, A)) for _ in range(60)),
            )
            assert count_connections(postgres_url) <= 17
        await until(lambda: count_connections(postgres_url) == 0)

    asyncio.run(story())


def test_the_databases_clock_is_known_whatever_the_machine_says(postgres_url: str) -> None:
    def an_hour_late() -> Instant:
        return Instant.of(SystemClock().now() - timedelta(hours=1))

    async def story() -> None:
        store = PostgresStore(postgres_url, now=an_hour_late)
        assert timedelta(minutes=59) < store.clock_offset() < timedelta(minutes=61)
        await store.close()

    asyncio.run(story())


def test_a_database_is_one_servers_and_the_next_ones_once_that_ended(postgres_url: str) -> None:
    async def story() -> None:
        async with running(postgres_url, lost=lambda: None):
            with pytest.raises(PlotiError, match="Another ploti serve runs on this database"):
                await asyncio.to_thread(opened, postgres_url, lost=lambda: None)
        async with running(postgres_url, lost=lambda: None):
            pass

    asyncio.run(story())


def test_a_server_whose_database_another_one_took_is_told(postgres_url: str) -> None:
    """It lost the connection that holds the lock, and another server was quicker to have it."""

    async def story() -> None:
        lost = threading.Event()
        async with running(postgres_url, lost=lost.set) as store:
            with psycopg.connect(postgres_url, autocommit=True) as other:
                waiting = asyncio.create_task(asyncio.to_thread(take_alone, other))
                await until(lambda: count_waiting(postgres_url) == 1)
                end_listener(postgres_url)
                await waiting
                assert await asyncio.to_thread(lost.wait, 60)
            del store

    asyncio.run(story())


def take_alone(connection: psycopg.Connection) -> None:
    row = connection.execute(
        "SELECT classid, objid FROM pg_locks WHERE locktype = 'advisory' LIMIT 1"
    ).fetchone()
    assert row is not None
    connection.execute("SELECT pg_advisory_lock(%s)", ((row[0] << 32) | row[1],))


def count_waiting(url: str, *, kind: str = "advisory") -> int:
    """How many wait for a lock of this kind; for a row's they wait on its transaction's id."""
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = %s AND NOT granted", (kind,)
        ).fetchone()
    assert row is not None
    found: int = row[0]
    return found


def end_listener(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
        )


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://nobody:hidden@127.0.0.1:1/none", "PLOTI_DATABASE_URL: .*127.0.0.1"),
        ("postgresql://127.0.0.1/none?nothing=1", "PLOTI_DATABASE_URL: .*nothing"),
    ],
)
def test_a_database_that_cannot_be_used_is_told_in_one_line_without_its_password(
    url: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=said) as told:
        opened(url)
    assert "\n" not in told.value.detail
    assert "hidden" not in told.value.detail


def test_a_database_that_is_not_there_is_named(postgres: Cluster) -> None:
    with pytest.raises(ConfigError, match='"nowhere" does not exist'):
        opened(postgres.url("nowhere"))
