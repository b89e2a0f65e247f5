"""What is particular to a PostgreSQL destination, as plain psycopg sees it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict
from tests.fakes import replay, synced
from tests.fakes.cut_wire import CutWire, cut_wire
from tests.fakes.feed import FakeFeed, FakeVersion, make_schema

from ploti.client.alarm import Alarm, Stopped
from ploti.errors import ConfigError, DestinationBusy, ExitStatus
from ploti.model.digest import Cell, bucket_of
from ploti.model.ids import DatasetId
from ploti.model.schema import Schema
from ploti.model.version import ResyncReason
from ploti.sync.destination import DestinationLost
from ploti.sync.destinations import open_destination
from ploti.sync.progress import Moment, Progress
from ploti.sync.runner import open_run
from ploti.sync.status import read_status
from ploti.sync.verify import verify
from ploti.sync.work import OnRemoved, Options

PERMITS = DatasetId("ds_permits")
PATIENCE = 60.0
POINT = bytes.fromhex("010100000000000000006054C00000000000403C40")
KINDS = {
    "name": "string",
    "units": "int64",
    "value": "float64",
    "active": "boolean",
    "fee": "decimal(8,2)",
    "issued": "date",
    "updated": "timestamp",
    "local": "datetime",
    "more": "json",
    "geometry": "geometry",
}
ROW: dict[str, Cell] = {
    "name": "0012",
    "units": 2**63 - 1,
    "value": 0.1,
    "active": True,
    "fee": Decimal("0.50"),
    "issued": date(1, 1, 1),
    "updated": datetime(2026, 10, 18, 6, 13, 2, tzinfo=UTC),
    "local": datetime(2026, 10, 18, 6, 13, 2, 1),  # noqa: DTZ001
    "more": '{"a": 1}',
    "geometry": POINT,
}
SCHEMA = make_schema(**KINDS)
RETYPED = make_schema(**KINDS | {"name": "int64"})


def release(
    feed: FakeFeed,
    rows: Mapping[str, Mapping[str, Cell]],
    schema: Schema = SCHEMA,
    reason: ResyncReason | None = None,
) -> FakeVersion:
    return feed.release(PERMITS, schema, rows, reason=reason)


@pytest.fixture
def feed() -> FakeFeed:
    feed = FakeFeed()
    feed.join(PERMITS)
    release(feed, {"rec_a": ROW, "rec_b": {"name": "2"}})
    return feed


def assert_equal(feed: FakeFeed, url: str) -> None:
    (found,) = verify(feed, synced.destination(url)).datasets
    assert found.matches, found.detail


def kinds(url: str) -> dict[str, str]:
    query = """
        SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
        WHERE attrelid = 'permits'::regclass AND attnum > 1 AND NOT attisdropped ORDER BY attnum
    """
    return dict(synced.query(url, query))


def test_each_type_stands_as_the_page_on_destinations_says(
    feed: FakeFeed, postgres_url: str
) -> None:
    synced.sync(feed, postgres_url)
    assert list(kinds(postgres_url).values()) == [
        *("text", "bigint", "double precision", "boolean", "numeric(8,2)", "date"),
        *("timestamp with time zone", "timestamp without time zone", "json", "bytea"),
    ]
    (row,) = synced.query(postgres_url, f"SELECT {', '.join(KINDS)} FROM permits WHERE active")
    assert row == tuple((ROW | {"more": {"a": 1}}).values())


def test_geometries_have_their_datasets_srid_and_postgis_reads_them(postgis_url: str) -> None:
    """D11, D61."""
    feed = FakeFeed()
    feed.join(PERMITS)
    schema = make_schema(crs="EPSG:26915", geometry="geometry")
    release(feed, {"rec_a": {"geometry": POINT}}, schema)
    release(feed, {"rec_a": {"geometry": POINT}, "rec_b": {"geometry": POINT}}, schema)
    synced.sync(feed, postgis_url)
    release(feed, {"rec_b": {"geometry": POINT}, "rec_c": {}}, schema)
    synced.sync(feed, postgis_url)
    rows = synced.query(postgis_url, "SELECT ST_AsText(geometry), ST_SRID(geometry) FROM permits")
    assert sorted(rows, key=str) == [("POINT(-81.5 28.25)", 26915), (None, None)]
    assert_equal(feed, postgis_url)


@pytest.mark.parametrize(
    "change",
    ["units = 7", "issued = 'infinity'", "updated = '-infinity'", "fee = 'NaN'", "more = '[1 ]'"],
)
def test_a_value_that_is_another_makes_its_bucket_differ(
    feed: FakeFeed, postgres_url: str, change: str
) -> None:
    synced.sync(feed, postgres_url)
    assert_equal(feed, postgres_url)
    synced.execute(postgres_url, f"UPDATE permits SET {change} WHERE name = '2'")
    (found,) = verify(feed, synced.destination(postgres_url)).datasets
    assert (found.matches, found.buckets) == (False, [bucket_of("rec_b")])


def test_a_reload_keeps_views_grants_indexes_foreign_keys_and_what_is_equal(
    feed: FakeFeed, postgres_url: str
) -> None:
    synced.sync(feed, postgres_url)
    synced.execute(
        postgres_url,
        """
        CREATE VIEW mine AS SELECT count(*) AS n FROM permits;
        CREATE INDEX by_name ON permits (name);
        ALTER TABLE permits ADD note text;
        UPDATE permits SET note = 'mine';
        GRANT SELECT ON permits TO PUBLIC;
        CREATE TABLE visits (permit text REFERENCES permits);
        INSERT INTO visits VALUES ('rec_a');
        """,
    )
    before = synced.query(postgres_url, "SELECT ctid FROM permits WHERE name = '0012'")
    rows = {"rec_a": ROW, "rec_b": {"name": "3"}, "rec_c": {"more": "[]"}}
    release(feed, rows, reason=ResyncReason.RECORD_IDS_CHANGED)
    assert synced.sync(feed, postgres_url).loads == 1
    assert_equal(feed, postgres_url)
    assert synced.query(postgres_url, "SELECT ctid FROM permits WHERE name = '0012'") == before
    assert synced.query(postgres_url, "SELECT n FROM mine") == [(3,)]
    notes = synced.query(postgres_url, "SELECT note FROM permits ORDER BY _ploti_record_id")
    assert notes == [("mine",), ("mine",), (None,)]
    release(feed, {"rec_a": ROW | {"name": "changed"}, "rec_c": {}})
    assert synced.sync(feed, postgres_url).applies == 1
    assert synced.query(postgres_url, "SELECT count(*) FROM visits JOIN permits ON true") == [(2,)]
    left = synced.query(
        postgres_url,
        "SELECT count(*), has_table_privilege('pg_monitor', 'permits', 'SELECT')"
        " FROM pg_indexes WHERE indexname = 'by_name'",
    )
    assert left == [(1, True)]


def test_a_record_that_a_table_of_ones_own_refers_to_is_not_dropped_silently(
    feed: FakeFeed, postgres_url: str
) -> None:
    synced.sync(feed, postgres_url)
    synced.execute(postgres_url, "CREATE TABLE visits AS SELECT 'rec_a'::text AS permit")
    synced.execute(postgres_url, "ALTER TABLE visits ADD FOREIGN KEY (permit) REFERENCES permits")
    release(feed, {"rec_b": {"name": "2"}})
    result = synced.sync(feed, postgres_url)
    assert result.exit_status is ExitStatus.BEHIND
    assert "visits" in str(result.datasets[0].reason)
    assert synced.query(postgres_url, "SELECT count(*) FROM permits") == [(2,)]


VIEWS = """
    CREATE VIEW names AS SELECT name, units FROM permits;
    COMMENT ON VIEW names IS 'it''s mine';
    CREATE VIEW "Of names" WITH (security_barrier=true) AS SELECT name FROM names;
    GRANT SELECT ON permits, names TO PUBLIC;
"""


def test_what_depends_on_a_table_stops_that_dataset_alone(
    feed: FakeFeed, postgres_url: str
) -> None:
    """A MAJOR change makes the table anew, and nothing of its owner's is dropped with the old."""
    other = DatasetId("ds_parcels")
    feed.join(other)
    feed.release(other, SCHEMA, {"rec_a": ROW})
    synced.sync(feed, postgres_url)
    synced.execute(postgres_url, "CREATE TABLE visits (permit text REFERENCES permits)")
    release(feed, {"rec_a": {"name": 12}}, RETYPED, ResyncReason.SCHEMA_CHANGED)
    feed.release(other, SCHEMA, {"rec_a": ROW, "rec_b": ROW})
    result = synced.sync(feed, postgres_url)
    assert result.exit_status is ExitStatus.BEHIND
    assert synced.held(postgres_url) == {other: (2, "held"), PERMITS: (1, "needs_load")}
    (reason,) = (each.reason for each in result.datasets if each.dataset_id == PERMITS)
    assert "constraint visits_permit_fkey on table visits depends on table permits" in str(reason)
    synced.execute(postgres_url, "DROP TABLE visits")
    assert synced.sync(feed, postgres_url).exit_status is ExitStatus.DONE


def test_a_table_that_a_view_is_over_is_kept_where_it_was_to_be_dropped(
    feed: FakeFeed, postgres_url: str
) -> None:
    synced.sync(feed, postgres_url)
    synced.execute(postgres_url, "CREATE VIEW mine AS SELECT name FROM permits")
    feed.leave(PERMITS)
    dropping = Options(on_removed=OnRemoved.DROP)
    result = synced.sync(feed, postgres_url, options=dropping)
    assert result.exit_status is ExitStatus.DONE
    assert synced.held(postgres_url) == {PERMITS: (None, "removed")}
    assert "view mine depends on table permits" in str(result.datasets[0].reason)
    assert synced.query(postgres_url, "SELECT count(*) FROM mine") == [(2,)]
    feed.join(PERMITS)
    synced.sync(feed, postgres_url, options=dropping)
    assert_equal(feed, postgres_url)


def test_what_a_trigger_refuses_is_its_tables_fault(feed: FakeFeed, postgres_url: str) -> None:
    synced.sync(feed, postgres_url)
    synced.execute(
        postgres_url,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE 'not on a Sunday' USING ERRCODE = '38000'; END $$;"
        " CREATE TRIGGER refuse BEFORE INSERT ON permits EXECUTE FUNCTION refuse()",
    )
    release(feed, {"rec_a": ROW})
    release(feed, {"rec_a": ROW, "rec_c": ROW})
    result = synced.sync(feed, postgres_url)
    assert result.exit_status is ExitStatus.BEHIND
    assert "not on a Sunday" in str(result.datasets[0].reason)


def test_a_table_with_row_security_is_not_made_anew_without_it(
    feed: FakeFeed, postgres_url: str
) -> None:
    """Grants are kept, so that all rows would be shown to those who might see a few."""
    synced.sync(feed, postgres_url)
    synced.execute(postgres_url, "ALTER TABLE permits ENABLE ROW LEVEL SECURITY")
    release(feed, {"rec_a": {"name": 12}}, RETYPED, ResyncReason.SCHEMA_CHANGED)
    result = synced.sync(feed, postgres_url)
    assert "has row security" in str(result.datasets[0].reason)
    synced.execute(postgres_url, "ALTER TABLE permits DISABLE ROW LEVEL SECURITY")
    assert synced.sync(feed, postgres_url).exit_status is ExitStatus.DONE


def test_a_major_change_is_stopped_by_views_which_it_lists(
    feed: FakeFeed, postgres_url: str
) -> None:
    synced.sync(feed, postgres_url)
    synced.execute(postgres_url, VIEWS)
    version = release(feed, {"rec_a": ROW | {"name": 12}}, RETYPED)
    result = synced.sync(feed, postgres_url)
    assert result.exit_status is ExitStatus.BEHIND
    reason = str(result.datasets[0].reason)
    assert "names" in reason
    assert '"Of names"' in reason
    assert "--replace-views" in reason
    assert synced.query(postgres_url, "SELECT count(*) FROM names") == [(2,)]
    assert synced.sync(feed, postgres_url, replace_views=True).exit_status is ExitStatus.DONE
    assert_equal(feed, postgres_url)
    assert synced.query(postgres_url, 'SELECT name FROM "Of names"') == [(12,)]
    kept = synced.query(
        postgres_url,
        "SELECT obj_description('names'::regclass),"
        " has_table_privilege('pg_monitor', 'permits', 'SELECT'),"
        " has_table_privilege('pg_monitor', 'names', 'SELECT'), reloptions"
        " FROM pg_class WHERE relname = 'Of names'",
    )
    assert kept == [("it's mine", True, True, ["security_barrier=true"])]
    assert version.number == 2


def test_a_reader_with_an_older_snapshot_finds_no_empty_table(
    feed: FakeFeed, postgres_url: str
) -> None:
    synced.sync(feed, postgres_url)
    with psycopg.connect(postgres_url) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT 1 FROM pg_class")
        release(feed, {"rec_a": ROW | {"name": 12}}, RETYPED)
        synced.sync(feed, postgres_url)
        assert reader.execute("SELECT count(*) FROM permits").fetchone() == (1,)


def test_a_view_that_the_new_columns_do_not_carry_leaves_everything_as_it_was(
    feed: FakeFeed, postgres_url: str
) -> None:
    synced.sync(feed, postgres_url)
    synced.execute(postgres_url, "CREATE VIEW half AS SELECT units / 2 AS half FROM permits")
    release(feed, {"rec_a": {"units": "many"}}, make_schema(units="string"))
    result = synced.sync(feed, postgres_url, replace_views=True)
    assert result.exit_status is ExitStatus.BEHIND
    assert "operator does not exist" in str(result.datasets[0].reason)
    assert synced.query(postgres_url, "SELECT count(*), count(half) FROM half") == [(2, 1)]


def test_materialized_views_are_listed_and_made_again_with_their_indexes(
    feed: FakeFeed, postgres_url: str
) -> None:
    synced.sync(feed, postgres_url)
    synced.execute(
        postgres_url,
        """
        CREATE VIEW names AS SELECT name FROM permits;
        CREATE MATERIALIZED VIEW "It's kept" AS SELECT name FROM names;
        CREATE UNIQUE INDEX once ON "It's kept" (name) WHERE name IS NOT NULL;
        CREATE MATERIALIZED VIEW later AS SELECT name FROM permits WITH NO DATA;
        COMMENT ON MATERIALIZED VIEW later IS 'mine';
        GRANT SELECT ON "It's kept" TO PUBLIC;
        """,
    )
    release(feed, {"rec_a": {"name": 1}}, RETYPED)
    reason = str(synced.sync(feed, postgres_url).datasets[0].reason)
    assert "later" in reason
    assert '"It\'s kept"' in reason
    assert synced.query(postgres_url, 'SELECT count(*) FROM "It\'s kept"') == [(2,)]
    assert synced.sync(feed, postgres_url, replace_views=True).exit_status is ExitStatus.DONE
    assert synced.query(postgres_url, 'SELECT name FROM "It\'s kept"') == [(1,)]
    made = "SELECT indexdef FROM pg_indexes WHERE indexname = 'once'"
    ((index,),) = synced.query(postgres_url, made)
    assert index.startswith("CREATE UNIQUE INDEX")
    assert index.endswith("WHERE (name IS NOT NULL)")
    kept = synced.query(
        postgres_url,
        "SELECT obj_description(oid), relispopulated FROM pg_class WHERE relname = 'later'"
        " UNION ALL SELECT relname, has_table_privilege('pg_monitor', oid, 'SELECT')"
        " FROM pg_class WHERE relname = 'It''s kept'",
    )
    assert kept == [("mine", False), ("It's kept", True)]


def test_what_is_no_view_is_not_made_again(feed: FakeFeed, postgres_url: str) -> None:
    synced.sync(feed, postgres_url)
    synced.execute(
        postgres_url,
        "CREATE TABLE log (name text);"
        " CREATE RULE also AS ON DELETE TO log DO ALSO DELETE FROM permits",
    )
    release(feed, {"rec_a": {"name": 1}}, RETYPED)
    result = synced.sync(feed, postgres_url, replace_views=True)
    assert "log cannot be made again" in str(result.datasets[0].reason)


UNIQUE = {
    "an index": "CREATE UNIQUE INDEX ON permits (name)",
    "an expression": "CREATE UNIQUE INDEX ON permits (lower(name)) WHERE name <> ''",
    "two columns": "ALTER TABLE permits ALTER units SET NOT NULL, ADD UNIQUE (units, name)",
    "an exclusion": "ALTER TABLE permits ADD EXCLUDE (name WITH =)",
}


@pytest.mark.parametrize("unique", UNIQUE.values(), ids=UNIQUE.keys())
@pytest.mark.parametrize("is_load", [False, True], ids=["by changes", "by a load"])
def test_records_exchange_values_that_are_unique_by_their_owners_will(
    postgres_url: str, unique: str, *, is_load: bool
) -> None:
    """And what refers to a record, and columns of one's own, stay as they are."""
    feed = FakeFeed()
    feed.join(PERMITS)
    one, two = {"name": "1", "units": 1}, {"name": "2", "units": 1}
    three = {"name": "3", "units": 1}
    release(feed, {"rec_a": one, "rec_b": two, "rec_c": three})
    synced.sync(feed, postgres_url)
    synced.execute(
        postgres_url,
        f"{unique}; ALTER TABLE permits ADD note text UNIQUE; UPDATE permits SET note = name;"
        "CREATE TABLE visits (permit text REFERENCES permits ON DELETE CASCADE);"
        "INSERT INTO visits VALUES ('rec_a')",
    )
    reason = ResyncReason.RECORD_IDS_CHANGED if is_load else None
    release(feed, {"rec_a": two, "rec_b": three, "rec_d": one}, reason=reason)
    result = synced.sync(feed, postgres_url)
    assert (result.datasets[0].reason, result.loads) == (None, int(is_load))
    assert_equal(feed, postgres_url)
    assert synced.query(postgres_url, "SELECT permit FROM visits") == [("rec_a",)]
    notes = synced.query(postgres_url, "SELECT note FROM permits ORDER BY _ploti_record_id")
    assert notes == [("1",), ("2",), (None,)]


def test_values_that_are_twice_in_a_version_break_an_index_that_has_them_once(
    feed: FakeFeed, postgres_url: str
) -> None:
    synced.sync(feed, postgres_url)
    synced.execute(postgres_url, "CREATE UNIQUE INDEX once ON permits (name)")
    release(feed, {"rec_a": ROW, "rec_b": {"name": "0012"}})
    result = synced.sync(feed, postgres_url)
    assert result.exit_status is ExitStatus.BEHIND
    assert "once" in str(result.datasets[0].reason)
    assert synced.query(postgres_url, "SELECT count(DISTINCT name) FROM permits") == [(2,)]


def test_a_table_that_is_not_plotis_is_left_alone(feed: FakeFeed, postgres_url: str) -> None:
    synced.execute(postgres_url, "CREATE TABLE permits (mine int)")
    result = synced.sync(feed, postgres_url)
    assert "is in the way" in str(result.datasets[0].reason)
    assert synced.query(postgres_url, "SELECT mine FROM permits") == []


def test_names_are_fitted_once_and_listed(postgres_url: str) -> None:
    """D07."""
    feed = FakeFeed()
    feed.join(PERMITS)
    long = "permit_application_reviewing_department_assigned_inspector_remarks"
    first, second = f"{long}_first", f"{long}_second"
    columns = dict.fromkeys([first, "order", "STATUS", "ctid"], "string")
    release(feed, {"rec_a": {first: "1", "ctid": "c"}}, make_schema(**columns))
    synced.sync(feed, postgres_url)
    before = synced.query(postgres_url, "SELECT column_name, stored_name FROM _ploti.names")
    wider = columns | dict.fromkeys([second, "status_2"], "string")
    release(feed, {"rec_a": {first: "1", second: "2", "status_2": "s"}}, make_schema(**wider))
    assert synced.sync(feed, postgres_url).applies == 1
    assert_equal(feed, postgres_url)
    after = dict(synced.query(postgres_url, "SELECT column_name, stored_name FROM _ploti.names"))
    assert after.items() >= dict(before).items()
    assert set(after) == {first, second, "ctid"}
    assert max(len(each.encode()) for each in kinds(postgres_url)) == 63
    with synced.destination(postgres_url).reading() as session:
        assert session.names("permits") == after
    (told,) = read_status(feed, synced.destination(postgres_url)).datasets
    assert told.columns == after


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # each history empties it
)
@given(history=st.lists(replay.STEPS, max_size=12))
def test_after_any_history_idle_tables_equal_the_current_versions(
    postgres_url: str, history: list[tuple[Any, ...]]
) -> None:
    """The replay law of `tests/property`."""
    synced.execute(postgres_url, "DROP SCHEMA IF EXISTS _ploti CASCADE")
    synced.execute(postgres_url, "DROP TABLE IF EXISTS parcels, permits")
    replay.World(postgres_url).live(history)


def test_two_subscriptions_share_a_database_but_not_a_table(
    feed: FakeFeed, postgres_url: str
) -> None:
    synced.sync(feed, postgres_url)
    other = open_destination(postgres_url, subscription_id="sub_other", lock_timeout=5)
    with (
        synced.destination(postgres_url).lock(),
        open_run(feed=feed, destination=other, options=Options()) as run,
    ):
        result = run.catch_up()
    assert "that of ds_permits in sub_test" in str(result.datasets[0].reason)


def test_a_table_that_another_program_has_locked_is_waited_for_and_then_told(
    feed: FakeFeed, postgres_url: str
) -> None:
    """D12."""
    synced.sync(feed, postgres_url)
    release(feed, {"rec_a": ROW})
    busy = synced.destination(postgres_url, lock_timeout=0.2)
    with psycopg.connect(postgres_url) as other:
        other.execute("LOCK TABLE permits")
        with (
            pytest.raises(DestinationBusy, match="in use by another program"),
            open_run(feed=feed, destination=busy, options=Options()) as run,
        ):
            run.catch_up()
    assert synced.held(postgres_url)[PERMITS] == (1, "held")
    assert synced.sync(feed, postgres_url).applies == 1


def test_a_second_client_is_refused(feed: FakeFeed, postgres_url: str) -> None:
    with (
        synced.destination(postgres_url).lock(),
        pytest.raises(DestinationBusy, match="one at a time") as refused,
    ):
        synced.sync(feed, postgres_url)
    assert refused.value.exit_status is ExitStatus.BUSY


WRITING = (Moment.OPENED, Moment.ROWS_WRITTEN, Moment.RECORDED, Moment.COMMITTED)


@pytest.mark.parametrize("moment", WRITING)
def test_a_connection_that_is_lost_costs_a_repeat(
    feed: FakeFeed, postgres_url: str, moment: Moment
) -> None:
    synced.sync(feed, postgres_url)
    release(feed, {"rec_a": ROW})
    release(feed, {"rec_c": ROW})

    def observe(progress: Progress) -> None:
        if progress.moment is moment:
            synced.query(
                postgres_url,
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
                " WHERE application_name = 'ploti' AND pid <> pg_backend_pid()",
            )

    with pytest.raises(DestinationLost, match="was lost") as lost:
        synced.sync(feed, postgres_url, observe=observe)
    assert lost.value.exit_status is ExitStatus.BUSY
    assert_equal(feed, postgres_url)
    assert synced.sync(feed, postgres_url).exit_status is ExitStatus.DONE
    assert synced.held(postgres_url)[PERMITS] == (3, "held")
    assert_equal(feed, postgres_url)


def port_of(url: str) -> int:
    port = conninfo_to_dict(url)["port"]
    return int(str(port))


class Enough(Exception):
    """Ends a run that follows."""


def follow_through(feed: FakeFeed, url: str, wire: CutWire) -> list[str]:
    """Follow until nothing is left to do, over losses; what was said of them."""
    told: list[str] = []

    def observe(progress: Progress) -> None:
        if progress.moment is Moment.RETRYING:
            told.append(progress.detail)
        if progress.moment is Moment.PAGE_READ and progress.detail.startswith("0 events"):
            raise Enough

    with (
        pytest.raises(Enough),
        open_run(
            feed=feed,
            destination=synced.destination(url.replace(f":{port_of(url)}/", f":{wire.port}/")),
            options=Options(),
            observe=observe,
            sleep=lambda _seconds: None,
        ) as run,
    ):
        run.follow()
    return told


@pytest.mark.parametrize("commit", [1, 2])
@pytest.mark.parametrize("after", [True, False])
def test_a_commit_whose_answer_is_lost_is_never_guessed_at(
    feed: FakeFeed, postgres_url: str, commit: int, after: bool
) -> None:
    """Whether it came through or not: the run that follows looks, and goes on from there."""
    synced.sync(feed, postgres_url)
    for number in range(3):
        release(feed, {"rec_a": ROW, f"rec_{number}": {"units": number}})
    with cut_wire(port_of(postgres_url)) as wire:
        wire.cut_at(commit, after=after)
        told = follow_through(feed, postgres_url, wire)
        assert wire.cut == 1
    assert len(told) == 1
    assert "was lost" in told[0]
    assert synced.held(postgres_url)[PERMITS] == (4, "held")
    assert_equal(feed, postgres_url)


@pytest.mark.parametrize(
    "address",
    ["postgresql://u:secret@127.0.0.1:1/db", "postgresql://127.0.0.1:1/db?password=secret"],
)
def test_a_server_that_is_not_there_is_told_without_the_password(
    feed: FakeFeed, address: str
) -> None:
    with pytest.raises(DestinationLost, match="cannot be reached") as lost:
        synced.sync(feed, address)
    assert "secret" not in str(lost.value)


def test_a_server_that_does_not_answer_is_waited_for_until_that_is_stopped() -> None:
    alarm, ended = Alarm(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def stop_instead_of_an_answer() -> None:
            client, _ = listener.accept()
            with client:
                alarm.stop()
                ended.wait(PATIENCE)

        server = threading.Thread(target=stop_instead_of_an_answer)
        server.start()
        address = f"postgresql://127.0.0.1:{listener.getsockname()[1]}/db"
        destination = open_destination(address, subscription_id="sub_test", alarm=alarm)
        with pytest.raises(Stopped), destination.lock():
            raise AssertionError("it has answered")
        ended.set()
        server.join()


def test_a_connection_that_comes_once_all_was_stopped_is_closed(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alarm, stopped = Alarm(), threading.Event()
    made: list[psycopg.Connection[Any]] = []
    connect = psycopg.connect

    def connect_late(address: str, **settings: Any) -> psycopg.Connection[Any]:
        alarm.stop()
        stopped.wait(PATIENCE)
        made.append(connect(address, **settings))
        return made[0]

    monkeypatch.setattr(psycopg, "connect", connect_late)
    destination = open_destination(postgres_url, subscription_id="sub_test", alarm=alarm)
    with pytest.raises(Stopped), destination.lock():
        raise AssertionError("it has connected")
    (connecting,) = (each for each in threading.enumerate() if each.name == "connect")
    stopped.set()
    connecting.join()
    assert made[0].closed


def test_an_address_that_cannot_be_read_is_a_wrong_one() -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        synced.destination("postgresql://localhost:port/db?no=option")
