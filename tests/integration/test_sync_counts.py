"""Rows are counted before a version is committed, unless it is proved that nobody else wrote."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fakes import synced
from tests.fakes.feed import FakeFeed, make_schema
from tests.fakes.postgres import Cluster
from tests.fakes.synced import Place

from ploti.model.event import Stale, StaleReason
from ploti.model.ids import DatasetId
from ploti.model.schema import Schema
from ploti.sync.destinations.postgres.wire import Wire
from ploti.sync.destinations.sqlite import patient
from ploti.sync.progress import Moment, Observer, Progress, ignore
from ploti.sync.runner import Run, open_run
from ploti.sync.work import Options

PERMITS, PARCELS = DatasetId("ds_permits"), DatasetId("ds_parcels")
SCHEMA = make_schema(units="int64")
PLACED = make_schema(units="int64", geometry="geometry")
POINT = bytes.fromhex("010100000000000000006054C00000000000403C40")
STILL = 40
"""Records that every version has, and none changes: others may delete them without a wait."""


class Source:
    """The feed of two datasets whose every version adds one record, changes one, removes one."""

    def __init__(self, schema: Schema = SCHEMA) -> None:
        self.feed = FakeFeed()
        self._schema = schema
        self._made: dict[DatasetId, int] = {}
        for each in (PERMITS, PARCELS):
            self.feed.join(each)
            self.release(each)

    def release(self, dataset_id: DatasetId = PERMITS) -> None:
        """The next version."""
        number = self._made[dataset_id] = self._made.get(dataset_id, 0) + 1
        rows: dict[str, dict[str, Any]] = {f"rec_still_{n}": {"units": n} for n in range(STILL)}
        rows |= {f"rec_{n}": {"units": n} for n in (number, number + 1)} | {
            "rec_changed": {"units": number}
        }
        if self._schema is PLACED:
            rows = {each: row | {"geometry": POINT} for each, row in rows.items()}
        self.feed.release(dataset_id, self._schema, rows)

    def tell(self) -> None:
        """Something of the log that changes no table."""
        overdue = StaleReason.CHECK_OVERDUE
        self.feed.append(Stale(dataset_id=PERMITS, reason=overdue, last_checked_at=None))

    def assert_held(self, place: Place) -> None:
        """Both tables are what their current versions are."""
        for each in (PERMITS, PARCELS):
            dataset = self.feed.datasets[each]
            assert dataset.current is not None
            rows = dataset.versions[dataset.current].rows
            table = each.removeprefix("ds_")
            found = synced.query(place, f"SELECT _ploti_record_id, units FROM {table}")
            assert sorted(found) == sorted((key, row["units"]) for key, row in rows.items())


@pytest.fixture
def quiet(postgres: Cluster) -> Iterator[None]:
    """A server that does nothing of its own: its vacuum has transactions, too."""
    own = "SELECT 1 FROM pg_stat_activity WHERE backend_type LIKE 'autovacuum%'"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET autovacuum = off")
        connection.execute("SELECT pg_reload_conf()")
        while connection.execute(own).fetchone():
            time.sleep(0.02)
        yield
        connection.execute("ALTER SYSTEM RESET autovacuum")
        connection.execute("SELECT pg_reload_conf()")


@pytest.fixture(params=["sqlite", "gpkg", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "postgresql":
        request.getfixturevalue("quiet")
        return str(request.getfixturevalue("postgres_url"))
    return tmp_path / f"feeds.{request.param}"


@pytest.fixture
def source(place: Place) -> Source:
    """With geometries where a layer has them: its spatial index is kept by triggers."""
    return Source(PLACED if not isinstance(place, str) and place.suffix == ".gpkg" else SCHEMA)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that were counted whole."""
    tables: list[str] = []

    def watched(method: Callable[..., Any]) -> Callable[..., Any]:
        def run(self: object, statement: str, *given: object) -> Any:
            before, _, table = statement.partition("SELECT count(*) FROM ")
            if not before and "sqlite_schema" not in table:
                tables.append(table.rpartition(".")[2].strip('"'))
            return method(self, statement, *given)

        return run

    monkeypatch.setattr(Wire, "value", watched(Wire.value))
    monkeypatch.setattr(patient._Patient, "execute", watched(patient._Patient.execute))
    return tables


@contextmanager
def following(source: Source, place: Place, observe: Observer = ignore) -> Iterator[Run]:
    """A run that goes on while others write, with the first versions loaded."""
    destination = synced.destination(place)
    with open_run(
        feed=source.feed, destination=destination, options=Options(), observe=observe
    ) as run:
        run.catch_up()
        yield run


@contextmanager
def counting(source: Source, place: Place) -> Iterator[Run]:
    """The same, whose rows were counted once, for a version applied."""
    with following(source, place) as run:
        source.release()
        run.catch_up()
        yield run


def count(place: Place, table: str = "permits") -> int:
    (found,) = synced.query(place, f"SELECT count(*) FROM {table}")
    return int(found[0])


def test_rows_are_counted_once_where_nobody_else_writes(
    source: Source, place: Place, counted: list[str]
) -> None:
    with following(source, place) as run:
        for _ in range(3):
            source.release(PERMITS)
            source.release(PARCELS)
            run.catch_up()
            source.tell()
            run.catch_up()
            assert run.result().loads == 2
            source.assert_held(place)
        # By the two loads, and where the last of them had been written since.
        assert counted == ["parcels", "permits", "parcels"]


def test_a_run_counts_anew_what_the_run_before_has_counted(
    source: Source, place: Place, counted: list[str]
) -> None:
    for _ in range(2):
        source.release()
        synced.sync(source.feed, place)
    counted.clear()
    source.release()
    synced.sync(source.feed, place)
    assert counted == ["permits"]


WRITES = {
    "deletes": "DELETE FROM permits WHERE _ploti_record_id = 'rec_still_7'",
    "inserts": "INSERT INTO permits (_ploti_record_id) VALUES ('rec_other')",
    "empties": "DELETE FROM permits",
}


@pytest.mark.parametrize("write", WRITES)
def test_rows_that_others_add_or_take_away_are_found_at_the_next_version(
    source: Source, place: Place, write: str
) -> None:
    with following(source, place) as run:
        for _ in range(2):
            source.release()
            run.catch_up()
        before = run.result()
        synced.execute(place, WRITES[write])
        source.release()
        after = run.catch_up()
        assert (after.loads - before.loads, after.applies - before.applies) == (1, 0)
        source.assert_held(place)


def test_a_table_that_others_emptied_is_found_after_versions_of_another(
    source: Source, place: Place
) -> None:
    """What was written to one table is not forgotten with what is counted of the other."""
    with following(source, place) as run:
        for each in (PERMITS, PARCELS):
            source.release(each)
            run.catch_up()
        synced.execute(place, WRITES["deletes"])
        for _ in range(2):
            source.release(PARCELS)
            run.catch_up()
        before = run.result().loads
        source.release(PERMITS)
        assert run.catch_up().loads == before + 1
        source.assert_held(place)


def test_what_others_write_elsewhere_costs_one_count(
    source: Source, place: Place, counted: list[str]
) -> None:
    with counting(source, place) as run:
        synced.execute(place, "CREATE TABLE mine (a integer)")
        counted.clear()
        for _ in range(3):
            source.release()
            run.catch_up()
        assert counted == ["permits"]
        source.assert_held(place)


def test_a_version_that_is_taken_back_leaves_no_sum_behind(
    source: Source, place: Place, counted: list[str]
) -> None:
    failing = [False]

    def observe(progress: Progress) -> None:
        if failing[0] and progress.moment is Moment.RECORDED:
            failing[0] = False
            raise RuntimeError

    with following(source, place, observe) as run:
        source.release()
        run.catch_up()
        source.release()
        failing[0] = True
        with pytest.raises(RuntimeError):
            run.catch_up()
        counted.clear()
        assert run.catch_up().loads == 2
        assert counted == ["permits"]
        source.assert_held(place)


TRIGGERS = {
    "postgresql": """
        CREATE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN DELETE FROM permits WHERE units = 7; RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER late AFTER INSERT ON permits DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION undo()
    """,
    "sqlite": """
        CREATE TRIGGER late AFTER INSERT ON _ploti_datasets
        BEGIN DELETE FROM permits WHERE _ploti_record_id = 'rec_still_7'; END
    """,
}


def test_where_triggers_write_too_each_version_counts(
    source: Source, place: Place, counted: list[str]
) -> None:
    """These write after the count: only the next one finds what they did."""
    with counting(source, place) as run:
        synced.execute(place, TRIGGERS["postgresql" if isinstance(place, str) else "sqlite"])
        counted.clear()
        for loads in (2, 3):
            source.release()
            assert run.catch_up().loads == loads
        assert counted == ["permits"] * 3


def test_a_clause_that_replaces_rows_has_each_version_count(tmp_path: Path) -> None:
    """As many rows as were written are not in the table then."""
    feed, file = FakeFeed(), tmp_path / "feeds.sqlite"
    feed.join(PERMITS)
    feed.release(PERMITS, SCHEMA, {"rec_a": {"units": 1}, "rec_b": {"units": 2}})
    with open_run(feed=feed, destination=synced.destination(file), options=Options()) as run:
        run.catch_up()
        synced.execute(file, "DROP TABLE permits")
        synced.execute(
            file,
            "CREATE TABLE permits (_ploti_record_id TEXT NOT NULL PRIMARY KEY,"
            " units INTEGER UNIQUE ON CONFLICT REPLACE)",
        )
        for units, state in ((3, "held"), (4, "held"), (1, "needs_load")):
            feed.release(PERMITS, SCHEMA, {"rec_a": {"units": 1}, "rec_b": {"units": units}})
            run.catch_up()
            assert synced.held(file)[PERMITS][1] == state


def test_a_file_with_a_log_of_its_own_is_let_go_of_and_counted(
    tmp_path: Path, counted: list[str]
) -> None:
    """A copy that somebody makes of it would lack what stands in the log."""
    source, file = Source(), tmp_path / "feeds.sqlite"
    synced.sync(source.feed, file)
    synced.execute(file, "PRAGMA user_version = 7")
    with closing(sqlite3.connect(file)) as plain:
        plain.execute("PRAGMA journal_mode = WAL")
    with following(source, file) as run:
        for write in WRITES.values():
            counted.clear()
            source.release()
            run.catch_up()
            assert counted == ["permits"]
            assert not file.with_name("feeds.sqlite-wal").exists()
            before = run.result().loads
            synced.execute(file, write)
            source.release()
            assert run.catch_up().loads == before + 1
            source.assert_held(file)


def test_a_file_that_was_put_in_its_place_is_not_written_past(tmp_path: Path) -> None:
    source, file = Source(), tmp_path / "feeds.sqlite"
    with following(source, file) as run:
        source.release()
        run.catch_up()
        copy = tmp_path / "copy"
        shutil.copyfile(file, copy)
        with closing(sqlite3.connect(copy)) as plain, plain:
            plain.execute(WRITES["deletes"])
        copy.rename(file)
        source.release()
        assert run.catch_up().loads == 3
        source.assert_held(file)


@pytest.mark.parametrize("way", ["begun", "prepared"])
@pytest.mark.parametrize("versions", [0, 1, 2])
def test_what_was_begun_before_the_count_and_comes_later_is_found_then(
    quiet: None, postgres_url: str, versions: int, way: str
) -> None:
    """So many versions come in between, while it goes on."""
    source = Source()
    with psycopg.connect(postgres_url) as other, following(source, postgres_url) as run:
        other.execute(WRITES["inserts"].encode())
        if way == "prepared":
            other.execute("PREPARE TRANSACTION 'mine'")
            other.commit()
            other.autocommit = True
        for _ in range(versions + 1):
            source.release()
            run.catch_up()
        before = run.result().loads
        if way == "prepared":
            other.execute("COMMIT PREPARED 'mine'")
        else:
            other.commit()
        source.release()
        assert run.catch_up().loads == before + 1
        source.assert_held(postgres_url)


MOMENTS = [Moment.OPENED, Moment.ROWS_WRITTEN, Moment.RECORDED, Moment.COMMITTED, Moment.CLOSED]


@pytest.mark.parametrize("moment", MOMENTS)
def test_what_comes_while_a_version_is_written_is_found_with_it_or_the_next(
    quiet: None, postgres_url: str, moment: Moment
) -> None:
    source, ready = Source(), [False]

    def observe(progress: Progress) -> None:
        if ready[0] and progress.moment is moment:
            ready[0] = False
            synced.execute(postgres_url, WRITES["inserts"])

    with following(source, postgres_url, observe) as run:
        source.release()
        run.catch_up()
        ready[0] = True
        for _ in range(2):
            source.release()
            run.catch_up()
        assert not ready[0]
        assert run.result().loads == 3
        source.assert_held(postgres_url)


def test_what_comes_between_the_changes_and_the_count_is_counted(
    quiet: None, postgres_url: str, tmp_path: Path
) -> None:
    source = Source()
    destination = synced.destination(postgres_url)
    synced.sync(source.feed, postgres_url)
    file = tmp_path / "changes.parquet"
    with destination.lock(), destination.session() as session:
        for write in ("", WRITES["deletes"], WRITES["inserts"]):
            source.release()
            current = source.feed.datasets[PERMITS].current or 0
            file.write_bytes(source.feed.file(PERMITS, current, "changes"))
            with session.transaction() as transaction:
                transaction.apply("permits", SCHEMA, file)
                if write:
                    synced.execute(postgres_url, write)
                assert transaction.count("permits") == count(postgres_url)


def test_a_connection_that_is_lost_is_not_gone_by(
    quiet: None, postgres_url: str, counted: list[str]
) -> None:
    source = Source()
    with following(source, postgres_url) as run:
        source.release()
        run.catch_up()
        counted.clear()
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
                " WHERE application_name = 'ploti' AND pid <> pg_backend_pid()"
            )
        source.release()
        with pytest.raises(Exception, match="was lost"):
            run.catch_up()
        run.catch_up()
        assert counted == ["permits"]


class Others:
    """Programs that write to a database of PostgreSQL's, one of them in no hurry."""

    def __init__(self, url: str, slow: psycopg.Connection[Any]) -> None:
        self._url = url
        self._slow = slow
        self._made = 0

    def delete(self) -> None:
        self._run(f"DELETE FROM permits WHERE _ploti_record_id = '{self._still()}'")

    def insert(self) -> None:
        self._run(f"INSERT INTO permits (_ploti_record_id) VALUES ('{self._next()}')")

    def write_elsewhere(self) -> None:
        self._run("CREATE TABLE mine (); DROP TABLE mine")

    def begin(self) -> None:
        self._slow.execute(
            f"INSERT INTO permits (_ploti_record_id) VALUES ('{self._next()}')".encode()
        )

    def commit(self) -> None:
        self._slow.commit()

    def rollback(self) -> None:
        self._slow.rollback()

    def _run(self, statement: str) -> None:
        synced.execute(self._url, statement)

    def _still(self) -> str:
        self._made += 1
        return f"rec_still_{self._made % STILL}"

    def _next(self) -> str:
        self._made += 1
        return f"others_{self._made}"


THEIRS = ["begin", "commit", "rollback", "delete", "insert", "write_elsewhere"]
OURS = ["version of the other", "moved cursor", "nothing"]


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # each history empties it
)
@given(history=st.lists(st.sampled_from([*THEIRS, *OURS]), min_size=4, max_size=10))
def test_whatever_others_do_a_version_is_committed_with_as_many_rows_as_it_has(
    quiet: None, postgres_url: str, history: list[str]
) -> None:
    """After each thing that is done comes a version."""
    synced.execute(postgres_url, "DROP SCHEMA IF EXISTS _ploti CASCADE")
    synced.execute(postgres_url, "DROP TABLE IF EXISTS parcels, permits")
    source = Source()
    with ExitStack() as stack:
        slow = stack.enter_context(psycopg.connect(postgres_url))
        run = stack.enter_context(following(source, postgres_url))
        others = Others(postgres_url, slow)
        for each in history:
            match each:
                case "version of the other":
                    source.release(PARCELS)
                case "moved cursor":
                    source.tell()
                case "nothing":
                    pass
                case _:
                    getattr(others, each)()
            run.catch_up()
            source.release(PERMITS)
            run.catch_up()
            assert count(postgres_url) == STILL + 3
        slow.rollback()
