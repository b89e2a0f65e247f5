"""What every store does, over SQLite and over PostgreSQL."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from msgspec.structs import replace
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError, IntegrityError
from tests.contract.conftest import Open, Play
from tests.fakes.releases import NOW, declare, hold, release

from ploti.errors import ConfigError
from ploti.model.event import EventType
from ploti.model.ids import DatasetId, SubscriptionId, WorkspaceId
from ploti.model.schema import Schema
from ploti.model.subscription import Selection
from ploti.model.wire import Instant
from ploti.server.adapters.store import SqliteStore
from ploti.server.adapters.store.tables import feed_body, metadata
from ploti.server.build.candidate import FileRole
from ploti.server.eventlog.drafts import Draft
from ploti.server.eventlog.paging import Extent
from ploti.server.ports.alerts import AlertId, AlertRow, AlertType
from ploti.server.ports.rows import (
    AttemptId,
    AttemptRow,
    FileRow,
    JobKind,
    JobRow,
    SubscriptionRow,
    VersionContent,
    VersionRow,
    VersionState,
)
from ploti.server.ports.store import Store, Transaction

LATER = Instant.of(NOW + timedelta(days=1))
A, B = DatasetId("ds_a"), DatasetId("ds_b")
WORKSPACE = WorkspaceId("ws_1")
ONE, TWO = SubscriptionId("sub_1"), SubscriptionId("sub_2")


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - it holds in a thread's time
            await asyncio.sleep(0.01)


def draft(
    dataset: DatasetId = A, *, kind: EventType = EventType.UPDATED, data: str = "{}"
) -> Draft:
    return Draft(type=kind, dataset_id=dataset, linked_version=None, data=data)


def subscribe(tx: Transaction, *ids: SubscriptionId) -> None:
    for subscription in ids:
        tx.subscriptions.add(
            SubscriptionRow(
                id=subscription,
                workspace_id=WORKSPACE,
                name="",
                selection=Selection(datasets=[A]),
                created_at=NOW,
            )
        )
        tx.memberships.join([(subscription, A)])


def numbers(tx: Transaction, subscription: SubscriptionId, **page: Any) -> list[tuple[int, str]]:
    asked: dict[str, Any] = {"after": 0, "up_to": 5000, "limit": 500, "types": frozenset()} | page
    return [(seq, body.data) for seq, body in tx.log.page(subscription, **asked)]


def test_a_transaction_that_fails_leaves_nothing_and_no_gap(play: Play) -> None:
    class Failed(Exception):
        pass

    def fails(tx: Transaction) -> None:
        tx.log.append([draft(data='{"n":0}')], to=[ONE], now=NOW)
        declare(tx, B)
        raise Failed

    async def story(store: Store) -> None:
        await store.write(lambda tx: subscribe(tx, ONE))
        with pytest.raises(Failed):
            await store.write(fails)
        await store.write(lambda tx: tx.log.append([draft(data='{"n":1}')], to=[ONE], now=NOW))
        assert await store.read(lambda tx: numbers(tx, ONE)) == [(1, '{"n":1}')]
        assert await store.read(lambda tx: tx.datasets.get(B)) is None

    play(story)


def test_a_page_is_the_same_however_far_it_is_told_to_look(play: Play) -> None:
    """Where all between two positions is there, and where some is pruned or not yet given."""

    async def story(store: Store) -> None:
        await store.write(lambda tx: subscribe(tx, ONE))
        for n, now in enumerate([NOW, NOW, LATER, LATER, LATER], start=1):
            draft_ = draft(data=f'{{"n":{n}}}')
            await store.write(
                lambda tx, draft_=draft_, now=now: tx.log.append([draft_], to=[ONE], now=now)
            )
        all_ = [(n, f'{{"n":{n}}}') for n in range(1, 6)]
        for kept in (all_, all_[2:]):
            for after in range(6):
                for up_to in (5, 6, 5000):
                    for limit in (1, 2, 500):
                        found = await store.read(
                            lambda tx, after=after, up_to=up_to, limit=limit: numbers(
                                tx, ONE, after=after, up_to=up_to, limit=limit
                            )
                        )
                        assert found == [each for each in kept if each[0] > after][:limit]
            await store.write(lambda tx: tx.retention.drop_events(before=LATER))

    play(story)


def test_what_staff_watch_counts_the_events_that_logs_still_keep(play: Play) -> None:
    async def events(store: Store) -> int:
        return (await store.read(lambda tx: tx.overview.sizes())).events

    async def story(store: Store) -> None:
        assert await events(store) == 0
        await store.write(lambda tx: subscribe(tx, ONE, TWO))
        assert await events(store) == 0
        for now in (NOW, NOW, LATER):
            await store.write(
                lambda tx, now=now: tx.log.append_to_members([draft()], dataset_id=A, now=now)
            )
        await store.write(lambda tx: tx.log.append([draft()], to=[TWO], now=LATER))
        assert await events(store) == 7
        await store.write(lambda tx: tx.retention.drop_events(before=LATER))
        assert await events(store) == 3

    play(story)


def test_drafts_are_numbered_one_after_another_in_each_log(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(lambda tx: subscribe(tx, ONE, TWO))
        first, second = draft(data='{"n":1}'), draft(data='{"n":2}')
        await store.write(lambda tx: tx.log.append([first], to=[TWO], now=NOW))
        await store.write(
            lambda tx: tx.log.append_to_members([first, second], dataset_id=A, now=NOW)
        )
        await store.write(lambda tx: tx.log.append_to_members([first], dataset_id=B, now=NOW))
        assert await store.read(lambda tx: numbers(tx, ONE)) == [(1, '{"n":1}'), (2, '{"n":2}')]
        assert await store.read(lambda tx: tx.log.last_numbers([ONE, TWO])) == {ONE: 2, TWO: 3}
        assert await store.read(lambda tx: tx.log.extent(TWO, workspace=WORKSPACE)) == Extent(
            first=1, last=3
        )
        other = WorkspaceId("ws_2")
        assert await store.read(lambda tx: tx.log.extent(TWO, workspace=other)) is None

    play(story)


def test_a_page_keeps_to_its_bounds_its_types_and_its_limit(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(lambda tx: subscribe(tx, ONE))
        kinds = [EventType.ADDED, EventType.UPDATED, EventType.REMOVED, EventType.UPDATED]
        drafts = [draft(kind=kind) for kind in kinds]
        await store.write(lambda tx: tx.log.append(drafts, to=[ONE], now=NOW))

        async def seen(**page: Any) -> list[int]:
            return [seq for seq, _ in await store.read(lambda tx: numbers(tx, ONE, **page))]

        assert await seen(after=1, up_to=3) == [2, 3]
        assert await seen(limit=2) == [1, 2]
        assert await seen(types=frozenset({EventType.UPDATED})) == [2, 4]
        assert await seen(types=frozenset({EventType.UPDATED, EventType.ADDED}), limit=2) == [1, 2]
        assert await store.read(lambda tx: numbers(tx, TWO)) == []

    play(story)


def test_many_logs_are_appended_to_at_once(play: Play) -> None:
    many = [SubscriptionId(f"sub_{number:04d}") for number in range(1201)]

    async def story(store: Store) -> None:
        await store.write(lambda tx: subscribe(tx, *many))
        await store.write(lambda tx: tx.log.append([draft(), draft()], to=many, now=NOW))
        found = await store.read(lambda tx: tx.log.last_numbers(many))
        assert found == dict.fromkeys(many, 2)

    play(story)


def test_a_read_sees_one_moment_whatever_is_written_meanwhile(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(lambda tx: subscribe(tx, ONE))
        loop = asyncio.get_running_loop()

        def read(tx: Transaction) -> tuple[Extent | None, Extent | None, list[tuple[int, str]]]:
            before = tx.log.extent(ONE, workspace=WORKSPACE)
            write = store.write(lambda tx: tx.log.append([draft()], to=[ONE], now=NOW))
            asyncio.run_coroutine_threadsafe(write, loop).result(timeout=30)
            return before, tx.log.extent(ONE, workspace=WORKSPACE), numbers(tx, ONE)

        before, after, events = await store.read(read)
        assert (before, events) == (after, [])
        assert (await store.read(lambda tx: tx.log.extent(ONE, workspace=WORKSPACE))).last == 1

    play(story)


def test_a_read_cannot_write(play: Play) -> None:
    async def story(store: Store) -> None:
        with pytest.raises(DBAPIError, match=r"read-?only"):
            await store.read(lambda tx: declare(tx, A))
        assert await store.read(lambda tx: tx.datasets.filings()) == []

    play(story)


def test_reads_go_on_while_a_write_takes_long(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(lambda tx: declare(tx, A))
        inside, over = threading.Event(), threading.Event()

        def slow(tx: Transaction) -> None:
            declare(tx, B)
            inside.set()
            assert over.wait(timeout=30)

        write = asyncio.create_task(store.write(slow))
        await asyncio.to_thread(inside.wait, 30)
        assert [each.dataset_id for each in await store.read(lambda tx: tx.datasets.filings())] == [
            A
        ]
        over.set()
        await write
        assert len(await store.read(lambda tx: tx.datasets.filings())) == 2

    play(story)


def test_writers_take_turns(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(lambda tx: declare(tx, A))
        found = await asyncio.gather(*(store.write(lambda tx: release(tx, A)) for _ in range(20)))
        assert sorted(found) == list(range(1, 21))

    play(story)


def test_the_bell_rings_after_commits_that_added_events_and_only_then(play: Play) -> None:
    rung: list[int] = []

    def fails(tx: Transaction) -> None:
        tx.log.append([draft()], to=[ONE], now=NOW)
        raise KeyError

    async def story(store: Store) -> None:
        store.on_log(lambda: rung.append(1))
        await store.write(lambda tx: subscribe(tx, ONE))
        await store.write(lambda tx: tx.log.append([], to=[ONE], now=NOW))
        await store.write(lambda tx: tx.log.append([draft()], to=[], now=NOW))
        with pytest.raises(KeyError):
            await store.write(fails)
        assert rung == []
        await store.write(lambda tx: tx.log.append([draft()], to=[ONE], now=NOW))
        await until(lambda: rung == [1])

    play(story)


def test_the_bell_of_jobs_rings_once_a_job_is_planned(play: Play) -> None:
    async def story(store: Store) -> None:
        rung = asyncio.Event()
        loop = asyncio.get_running_loop()
        store.on_jobs(lambda: loop.call_soon_threadsafe(rung.set))
        await store.write(lambda tx: tx.jobs.put(JobKind.CHECK, A, at=NOW))
        async with asyncio.timeout(60):
            await rung.wait()
        await store.write(lambda tx: tx.jobs.put(JobKind.CHECK, A, at=LATER))
        assert not await store.read(lambda tx: tx.jobs.is_any_due(now=NOW))
        assert await store.read(lambda tx: tx.jobs.is_any_due(now=LATER))

    play(story)


def test_a_job_is_claimed_once_and_only_its_own_lease_is_renewed(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(lambda tx: tx.jobs.put(JobKind.CHECK, A, at=NOW))

        async def claim(token: str, now: Instant) -> list[JobRow]:
            return await store.write(
                lambda tx: tx.jobs.claim(now=now, until=LATER, token=token, limit=5)
            )

        found = await asyncio.gather(*(claim(f"t{number}", NOW) for number in range(4)))
        (first,) = [job for jobs in found for job in jobs]
        assert await store.write(lambda tx: tx.jobs.renew(first, until=LATER))
        (second,) = await claim("other", LATER)
        assert not await store.write(lambda tx: tx.jobs.renew(first, until=LATER))
        assert await store.write(lambda tx: tx.jobs.renew(second, until=LATER))

    play(story)


def test_old_events_go_from_each_log_and_bodies_that_no_log_has(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(lambda tx: subscribe(tx, ONE, TWO))
        await store.write(lambda tx: tx.log.append([draft()], to=[ONE, TWO], now=NOW))
        await store.write(lambda tx: tx.log.append([draft(data="[]")], to=[TWO], now=LATER))
        await store.write(lambda tx: tx.retention.drop_events(before=LATER))
        for subscription, extent, kept in ((ONE, (2, 1), []), (TWO, (2, 2), [(2, "[]")])):
            assert await store.read(lambda tx, s=subscription: numbers(tx, s)) == kept
            found = await store.read(
                lambda tx, s=subscription: tx.log.extent(s, workspace=WORKSPACE)
            )
            assert found == Extent(first=extent[0], last=extent[1])
        with vars(store)["_readers"].begin() as connection:
            assert connection.scalars(select(feed_body.c.data)).all() == ["[]"]

    play(story)


def test_old_snapshots_go_but_for_the_last_of_a_major_schema_version(play: Play) -> None:
    def built(number: int, schema: str, at: Instant) -> tuple[VersionRow, FileRow]:
        version = VersionRow(
            dataset_id=A,
            version=number,
            state=VersionState.RELEASED,
            attempt_id=AttemptId(f"att_{number}"),
            previous_version=number - 1 or None,
            schema_version=schema,
            schema_change=None,
            row_count=3_000_000_000,
            counts=None,
            reason=None,
            content_digest=None,
            built_at=at,
            published_at=at,
            source_fetched_at=at,
        )
        file = FileRow(
            dataset_id=A,
            version=number,
            role=FileRole.SNAPSHOT,
            format="parquet",
            blob=f"datasets/{A}/{number}/att_{number}/s",
            rows=3_000_000_000,
            bytes=9_000_000_000,
            sha256="",
        )
        return version, file

    def write(tx: Transaction) -> None:
        content = VersionContent(
            schema=Schema(columns=[], key_columns=[], geometry=None), buckets=[]
        )
        for number, schema in enumerate(["1.9", "1.10", "10.0", "10.1"], start=1):
            version, file = built(number, schema, NOW)
            tx.versions.add(version, content=content, files=[file])
        dataset = tx.datasets.lock(A)
        assert dataset is not None
        tx.datasets.save(replace(dataset, current_version=4))

    async def story(store: Store) -> None:
        await store.write(lambda tx: declare(tx, A))
        await store.write(write)
        await store.write(lambda tx: tx.retention.drop_files(before=LATER))
        left = {n for n in range(1, 5) if await store.read(lambda tx, n=n: tx.versions.files(A, n))}
        assert left == {2, 4}

    play(story)


def test_a_dataset_has_one_open_hold_at_most(play: Play) -> None:
    async def story(store: Store) -> None:
        await store.write(lambda tx: declare(tx, A))
        await store.write(lambda tx: hold(tx, A))
        await store.write(lambda tx: hold(tx, A))
        waiting = await store.read(lambda tx: tx.holds.open_of(A))
        assert waiting is not None
        assert waiting.version == 2
        with pytest.raises(IntegrityError):
            await store.write(lambda tx: tx.holds.add(waiting))

    play(story)


def test_attempts_are_swept_once_ended_and_never_while_open(play: Play) -> None:
    def attempt(name: str, *, source: str = "states/ds_a/att_1") -> AttemptRow:
        return AttemptRow(
            id=AttemptId(name), dataset_id=A, version=1, source_blob=source, started_at=NOW
        )

    async def story(store: Store) -> None:
        first, again = attempt("att_1"), attempt("att_2")
        await store.write(lambda tx: tx.builds.add(first))
        await store.write(lambda tx: tx.builds.add(again))
        assert await store.read(lambda tx: tx.builds.to_sweep()) == []
        await store.write(lambda tx: tx.builds.end(first.id))
        assert await store.read(lambda tx: tx.builds.to_sweep()) == [first]
        assert await store.read(lambda tx: tx.builds.kept(first)) == {"states/ds_a/att_1"}
        await store.write(lambda tx: tx.builds.end_open())
        assert await store.read(lambda tx: tx.builds.kept(first)) == set()
        await store.write(lambda tx: tx.builds.swept(first.id))
        assert await store.read(lambda tx: tx.builds.to_sweep()) == [again]
        await store.write(lambda tx: tx.builds.end(first.id))
        await store.write(lambda tx: tx.builds.forget(again.id))
        assert await store.read(lambda tx: tx.builds.to_sweep()) == [first]

    play(story)


def test_what_was_written_is_there_after_a_restart(open_store: Open) -> None:
    async def write() -> None:
        store = open_store()
        await store.write(lambda tx: declare(tx, A))
        await store.write(lambda tx: release(tx, A))
        await store.close()

    async def read() -> None:
        store = open_store()
        dataset = await store.read(lambda tx: tx.datasets.get(A))
        await store.close()
        assert dataset is not None
        assert (dataset.current_version, dataset.next_number) == (1, 2)

    asyncio.run(write())
    asyncio.run(read())


def test_the_migrations_lead_to_the_tables(open_store: Open) -> None:
    store = open_store()
    with store._writer.begin() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    asyncio.run(store.close())


def test_a_database_of_another_build_of_this_release_is_refused_in_one_line(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ploti.db"
    for change in ("ALTER TABLE dataset DROP COLUMN stale_for", "DROP TABLE job"):
        path.unlink(missing_ok=True)
        asyncio.run(SqliteStore(str(path)).close())
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(change)
        with pytest.raises(ConfigError, match="another build of this release, which"):
            SqliteStore(str(path))


def test_a_database_of_a_newer_release_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "ploti.db"
    asyncio.run(SqliteStore(str(path)).close())
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(ConfigError, match="newer ploti, update this one"):
        SqliteStore(str(path))


def test_an_alert_is_one_of_its_cause_and_is_kept_until_it_is_dropped(play: Play) -> None:
    alert = AlertRow(id=AlertId("alrt_1"), type=AlertType.DISK_LOW, body="{}", raised_at=NOW)

    async def story(store: Store) -> None:
        def twice(tx: Transaction) -> list[bool]:
            added = [tx.alerts.add(alert), tx.alerts.add(replace(alert, body="[]"))]
            tx.jobs.put(JobKind.ALERT, alert.id, at=NOW)
            return added

        assert await store.write(twice) == [True, False]
        assert await store.write(lambda tx: tx.alerts.add(alert)) is False
        assert await store.read(lambda tx: tx.alerts.get(alert.id)) == alert
        sent = replace(alert, tries=1, ended_at=LATER)
        await store.write(lambda tx: tx.alerts.save(sent))
        assert await store.read(lambda tx: tx.alerts.get(alert.id)) == sent
        assert await store.read(lambda tx: tx.jobs.is_planned(JobKind.ALERT, alert.id))
        await store.write(lambda tx: tx.alerts.drop(alert.id))
        assert await store.read(lambda tx: tx.alerts.get(alert.id)) is None

    play(story)
