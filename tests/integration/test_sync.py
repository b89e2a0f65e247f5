"""Sync into a DuckDB file, read back by plain DuckDB; the server is a made-up feed in memory."""

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from tests.fakes import synced
from tests.fakes.feed import SUBSCRIPTION, FakeFeed, FakeVersion, make_schema, refuse_all

from ploti.errors import (
    ApiError,
    ConfigError,
    DestinationBusy,
    ExitStatus,
    InternalError,
    NotDeliverable,
    NotFound,
    NotSubscribed,
    OutsideCoverage,
    SyncError,
    Unauthenticated,
)
from ploti.model.digest import bucket_of
from ploti.model.event import Updated
from ploti.model.ids import DatasetId, event_id
from ploti.model.version import Counts, ResyncReason
from ploti.sync.destinations import open_destination
from ploti.sync.progress import Moment, Progress
from ploti.sync.status import Standing, read_status
from ploti.sync.verify import verify
from ploti.sync.work import OnRemoved, Options

PERMITS = DatasetId("ds_permits")
PARCELS = DatasetId("ds_parcels")
SCHEMA = make_schema(key=["no"], no="string", units="int64")
WIDER = make_schema(key=["no"], no="string", units="int64", floors="int64")
RETYPED = make_schema(key=["no"], no="string", units="string")
BIG = 8_000


def rows(**units: int | None) -> dict[str, dict[str, object]]:
    return {f"rec_{name}": {"no": name, "units": each} for name, each in units.items()}


@pytest.fixture
def feed() -> FakeFeed:
    """Two datasets, each with a first version."""
    feed = FakeFeed()
    for each in (PARCELS, PERMITS):
        feed.join(each)
        feed.release(each, SCHEMA, rows(a=1, b=2))
    return feed


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "feeds.duckdb"


def assert_equal(file: Path, version: FakeVersion, table: str) -> None:
    assert synced.read_table(file, version, table) == synced.expected(version)


def test_a_first_run_loads_the_manifest_and_later_ones_apply_changes(
    feed: FakeFeed, file: Path
) -> None:
    """R-007."""
    result = synced.sync(feed, file)
    assert (result.exit_status, result.loads, result.applies) == (ExitStatus.DONE, 2, 0)
    version = feed.release(PERMITS, SCHEMA, rows(a=1, b=3, c=None))
    result = synced.sync(feed, file)
    assert (result.loads, result.applies) == (0, 1)
    assert_equal(file, version, "permits")
    assert synced.held(file) == {PARCELS: (1, "held"), PERMITS: (2, "held")}
    assert synced.cursor(file) == event_id(5)


def test_what_is_up_to_date_is_neither_fetched_nor_written(feed: FakeFeed, file: Path) -> None:
    synced.sync(feed, file)
    feed.calls.clear()
    before = file.stat().st_mtime_ns
    synced.sync(feed, file)
    assert feed.calls == [("events", event_id(4))]
    assert file.stat().st_mtime_ns == before


def test_the_cursor_is_committed_with_the_last_of_a_pages_work(feed: FakeFeed, file: Path) -> None:
    """R-133: before that it stays, and a crash right after it repeats nothing. R-142."""
    synced.sync(feed, file)
    feed.release(PARCELS, SCHEMA, rows(a=3))
    feed.release(PERMITS, WIDER, rows(a=3))
    cursors: list[object] = []

    def observe(progress: Progress) -> None:
        if progress.moment is Moment.CLOSED:
            cursors.append(synced.cursor(file))

    synced.sync(feed, file, observe=observe)
    assert cursors == [event_id(4), event_id(7)]


def test_a_minor_change_alters_the_table_in_place_and_keeps_what_its_owner_added(
    feed: FakeFeed, file: Path
) -> None:
    synced.sync(feed, file)
    synced.execute(file, "ALTER TABLE permits ADD COLUMN mine VARCHAR DEFAULT 'x'")
    version = feed.release(PERMITS, WIDER, rows(a=1, b=2) | {"rec_c": {"floors": 2}})
    result = synced.sync(feed, file)
    assert (result.loads, result.applies) == (0, 1)
    assert_equal(file, version, "permits")
    assert synced.query(file, "SELECT mine FROM permits WHERE no IS NOT NULL") == [("x",), ("x",)]
    assert all(each.matches for each in verify(feed, synced.destination(file)).datasets)


def test_a_new_column_is_there_before_its_version_is_held(feed: FakeFeed, file: Path) -> None:
    """R-138, R-140: only the changes make it so, and they cannot be had."""
    synced.sync(feed, file)
    feed.release(PERMITS, WIDER, rows(a=1, b=2) | {"rec_c": {"floors": 2}})
    feed.page_size = 1
    feed.refuse = refuse_all(of=PERMITS, by=InternalError("broken"))
    assert synced.sync(feed, file).behind == [PERMITS]
    assert synced.query(file, "SELECT floors FROM permits") == [(None,), (None,)]
    assert synced.held(file)[PERMITS] == (1, "needs_load")


def test_a_minor_change_without_a_changed_record_is_a_version_too(
    feed: FakeFeed, file: Path
) -> None:
    """S-13."""
    synced.sync(feed, file)
    feed.release(PERMITS, WIDER, rows(a=1, b=2))
    assert synced.sync(feed, file).applies == 1
    assert synced.held(file)[PERMITS] == (2, "held")


def test_a_major_change_makes_the_table_anew(feed: FakeFeed, file: Path) -> None:
    """S-16."""
    synced.sync(feed, file)
    version = feed.release(PERMITS, RETYPED, {"rec_a": {"no": "a", "units": "many"}})
    assert synced.sync(feed, file).loads == 1
    assert_equal(file, version, "permits")


def test_a_resync_replaces_the_rows_and_a_view_on_the_table_stays(
    feed: FakeFeed, file: Path
) -> None:
    """R-119, R-123."""
    synced.sync(feed, file)
    synced.execute(file, "CREATE VIEW mine AS SELECT count(*) AS n FROM permits")
    reason = ResyncReason.RECORD_IDS_CHANGED
    version = feed.release(PERMITS, SCHEMA, rows(x=1, y=2, z=3), reason=reason)
    assert synced.sync(feed, file).loads == 1
    assert_equal(file, version, "permits")
    assert synced.query(file, "FROM mine") == [(3,)]


def test_a_chain_that_breaks_loads_the_current_version_and_applies_nothing(
    feed: FakeFeed, file: Path
) -> None:
    """R-117."""
    synced.sync(feed, file)
    feed.release(PERMITS, SCHEMA, rows(a=5))
    feed.log.pop()
    feed.append(Updated(dataset_id=PERMITS, version=2, previous_version=9, **_PLAIN))
    assert synced.sync(feed, file).loads == 1
    assert synced.held(file)[PERMITS] == (2, "held")


_PLAIN = {"schema_version": "1.0", "counts": Counts(added=0, changed=0, removed=0)}


def test_a_current_version_behind_its_own_log_is_not_loaded_again_and_again(
    feed: FakeFeed, file: Path
) -> None:
    """A recovery that leads back to the same place stops with an error that says so."""
    synced.sync(feed, file)
    feed.append(Updated(dataset_id=PERMITS, version=7, previous_version=6, **_PLAIN))
    result = synced.sync(feed, file)
    assert (result.exit_status, result.behind) == (ExitStatus.BEHIND, [PERMITS])
    (stuck,) = [each for each in result.datasets if each.dataset_id == PERMITS]
    assert "current version is 1, though its log tells of version 7" in str(stuck.reason)
    feed.datasets[PERMITS].next_number = 7
    feed.release(PERMITS, SCHEMA, rows(a=7))
    assert synced.sync(feed, file).behind == []


def test_far_behind_the_current_snapshot_is_taken_where_it_is_less_to_fetch(
    feed: FakeFeed, file: Path
) -> None:
    many = {f"rec_{each}": {"no": f"{each * 7919}", "units": each} for each in range(BIG)}
    feed.release(PERMITS, SCHEMA, many)
    synced.sync(feed, file)
    for step in range(1, 4):
        many = {key: {**row, "units": hash((key, step)) >> 8} for key, row in many.items()}
        version = feed.release(PERMITS, SCHEMA, many)
    result = synced.sync(feed, file)
    assert (result.loads, result.applies) == (1, 0)
    assert_equal(file, version, "permits")


def test_the_whole_chain_is_judged_at_its_first_page(feed: FakeFeed, file: Path) -> None:
    """It goes to the current version, past all that lies between; at the end it goes by changes."""
    many = {f"rec_{each}": {"no": f"{each * 7919}", "units": each} for each in range(BIG)}
    feed.release(PERMITS, SCHEMA, many)
    synced.sync(feed, file)

    def change(step: int) -> FakeVersion:
        some = {f"rec_{each}": {"no": f"{each * 7907 * step}"} for each in range(BIG // 2)}
        many.update(some)
        return feed.release(PERMITS, SCHEMA, dict(many))

    for step in range(3):
        change(step)
        result = synced.sync(feed, file)
        assert (result.loads, result.applies) == (0, 1)
    for step in range(3, 13):
        version = change(step)
    feed.page_size = 1
    result = synced.sync(feed, file)
    assert (result.loads, result.applies) == (1, 0)
    assert_equal(file, version, "permits")


def test_a_load_that_lies_ahead_is_gone_to_at_once(feed: FakeFeed, file: Path) -> None:
    """R-118, S-17."""
    synced.sync(feed, file)
    feed.release(PERMITS, SCHEMA, rows(a=2))
    feed.release(PERMITS, SCHEMA, rows(a=3), reason=ResyncReason.RECORD_IDS_CHANGED)
    version = feed.release(PERMITS, SCHEMA, rows(a=4))
    feed.page_size = 1
    result = synced.sync(feed, file)
    assert (result.loads, result.applies) == (1, 0)
    assert_equal(file, version, "permits")


def test_a_dataset_that_leaves_keeps_its_table_and_a_later_added_replaces_it(
    feed: FakeFeed, file: Path
) -> None:
    """S-29. R-030, R-122: with the snapshot of the version that the `added` names."""
    synced.sync(feed, file)
    feed.leave(PERMITS)
    assert synced.sync(feed, file).exit_status is ExitStatus.DONE
    found = synced.query(
        file,
        "SELECT state, reason, version, table_name, left_at IS NOT NULL FROM _ploti.datasets"
        " WHERE dataset_id = 'ds_permits'",
    )
    assert found == [("removed", "subscription_changed", None, "permits", True)]
    assert synced.query(file, "SELECT count(*) FROM permits") == [(2,)]
    feed.release(PERMITS, SCHEMA, rows(c=3))
    feed.join(PERMITS)
    version = feed.datasets[PERMITS].versions[2]
    synced.sync(feed, file)
    assert_equal(file, version, "permits")


def test_a_dataset_that_leaves_is_dropped_where_so_set_and_its_name_is_free_again(
    feed: FakeFeed, file: Path
) -> None:
    synced.sync(feed, file)
    feed.leave(PERMITS)
    synced.sync(feed, file, options=Options(on_removed=OnRemoved.DROP))
    tables = synced.query(file, "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'")
    assert tables == [("parcels",)]
    synced.execute(file, "CREATE TABLE permits (mine INTEGER)")
    feed.join(PERMITS)
    result = synced.sync(feed, file)
    assert (result.exit_status, result.behind) == (ExitStatus.BEHIND, [PERMITS])
    assert synced.query(file, "SELECT count(*) FROM permits") == [(0,)]


def test_a_table_that_is_not_plotis_is_never_touched(feed: FakeFeed, file: Path) -> None:
    synced.execute(file, "CREATE VIEW permits AS SELECT 42 AS mine")
    result = synced.sync(feed, file)
    assert result.behind == [PERMITS]
    (stuck,) = [each for each in result.datasets if each.dataset_id == PERMITS]
    assert "is in the way" in str(stuck.reason)
    assert synced.query(file, "FROM permits") == [(42,)]
    assert synced.held(file)[PARCELS] == (1, "held")
    synced.execute(file, "DROP VIEW permits")
    assert synced.sync(feed, file).exit_status is ExitStatus.DONE
    assert_equal(file, feed.datasets[PERMITS].versions[1], "permits")


def test_one_dataset_that_cannot_go_on_does_not_stop_the_others(feed: FakeFeed, file: Path) -> None:
    """S-37: the cursor goes on, its events are skipped, and later it is loaded anew."""
    synced.sync(feed, file)
    feed.release(PERMITS, SCHEMA, rows(a=9))
    feed.release(PARCELS, SCHEMA, rows(a=9))
    feed.refuse = refuse_all(of=PERMITS, by=InternalError("broken"))
    result = synced.sync(feed, file)
    assert (result.exit_status, result.behind) == (ExitStatus.BEHIND, [PERMITS])
    assert synced.held(file) == {PARCELS: (2, "held"), PERMITS: (1, "needs_load")}
    assert synced.cursor(file) == event_id(feed.last)
    assert_equal(file, feed.datasets[PERMITS].versions[1], "permits")
    feed.refuse = lambda *_: None
    assert synced.sync(feed, file).exit_status is ExitStatus.DONE
    assert synced.held(file)[PERMITS] == (2, "held")


def test_one_dataset_broken_for_91_days_expires_no_cursor_and_is_loaded_once_it_is_mended(
    feed: FakeFeed, file: Path
) -> None:
    """S-37: a version of each a day, 90 days of events kept, and a sync once a week."""
    synced.sync(feed, file)
    feed.refuse = refuse_all(of=PERMITS, by=InternalError("broken"))
    told: list[Progress] = []
    for day in range(1, 92):
        feed.release(PERMITS, SCHEMA, rows(a=day))
        version = feed.release(PARCELS, SCHEMA, rows(a=day))
        feed.prune(keep=2 * 90)
        if day % 7 == 0:
            assert synced.sync(feed, file, observe=told.append).behind == [PERMITS]
            assert_equal(file, version, "parcels")
            assert synced.cursor(file) == event_id(feed.last)
    assert_equal(file, feed.datasets[PERMITS].versions[1], "permits")
    feed.refuse = lambda *_: None
    mended = synced.sync(feed, file, observe=told.append)
    assert (mended.exit_status, mended.loads) == (ExitStatus.DONE, 1)
    assert_equal(file, feed.datasets[PERMITS].versions[92], "permits")
    assert Moment.RELOADING not in {each.moment for each in told}


def test_a_409_while_older_events_are_read_skips_the_dataset_up_to_its_removed(
    feed: FakeFeed, file: Path
) -> None:
    """R-141."""
    synced.sync(feed, file)
    for number in range(3):
        feed.release(PERMITS, SCHEMA, rows(a=number))
    feed.leave(PERMITS)
    version = feed.release(PARCELS, SCHEMA, rows(a=9))
    feed.page_size = 1
    feed.calls.clear()
    assert synced.sync(feed, file).exit_status is ExitStatus.DONE
    assert synced.held(file) == {PARCELS: (2, "held"), PERMITS: (None, "removed")}
    assert_equal(file, version, "parcels")
    asked = [call for call in feed.calls if call[0] in ("version", "versions")]
    asked = [call for call in asked if call[1] == PERMITS]
    assert len(asked) == 1, "once told, it does not ask for each event"


@pytest.mark.parametrize("refusal", [NotSubscribed, OutsideCoverage, NotDeliverable, NotFound])
def test_each_refusal_of_a_dataset_that_has_left_passes_over_it(
    feed: FakeFeed, file: Path, refusal: type[ApiError]
) -> None:
    """R-141: a 409 of each kind, and a 404."""
    synced.sync(feed, file)
    feed.release(PERMITS, SCHEMA, rows(a=3))
    feed.leave(PERMITS)
    version = feed.release(PARCELS, SCHEMA, rows(a=9))
    feed.refuse = refuse_all(of=PERMITS, by=refusal("no"))
    assert synced.sync(feed, file).exit_status is ExitStatus.DONE
    assert synced.held(file) == {PARCELS: (2, "held"), PERMITS: (None, "removed")}
    assert_equal(file, version, "parcels")


def test_a_refusal_that_no_removed_explains_is_told_and_tried_again(
    feed: FakeFeed, file: Path
) -> None:
    synced.sync(feed, file)
    feed.release(PERMITS, SCHEMA, rows(a=3))
    feed.refuse = refuse_all(of=PERMITS, by=NotSubscribed("no"))
    assert synced.sync(feed, file).behind == [PERMITS]
    assert synced.held(file)[PERMITS] == (1, "needs_load")
    feed.refuse = lambda *_: None
    assert synced.sync(feed, file).exit_status is ExitStatus.DONE


def test_a_refused_key_ends_the_run_and_changes_nothing(feed: FakeFeed, file: Path) -> None:
    synced.sync(feed, file)
    feed.release(PERMITS, SCHEMA, rows(a=3))
    feed.refuse = refuse_all(of=PERMITS, by=Unauthenticated("revoked"))
    with pytest.raises(Unauthenticated):
        synced.sync(feed, file)
    assert synced.held(file)[PERMITS] == (1, "held")
    assert synced.cursor(file) == event_id(4)


@pytest.mark.parametrize("role", ["snapshot", "changes"])
def test_a_version_whose_file_is_gone_leads_to_the_current_one(
    feed: FakeFeed, file: Path, role: str
) -> None:
    """R-120, S-18."""
    synced.sync(feed, file)
    reason = ResyncReason.PREVIOUS_UNAVAILABLE if role == "snapshot" else None
    gone = feed.release(PERMITS, SCHEMA, rows(a=3), reason=reason)
    feed.release(PERMITS, SCHEMA, rows(a=4))
    feed.forget_file(PERMITS, gone.number, "snapshot")
    feed.forget_file(PERMITS, gone.number, "changes")
    assert synced.sync(feed, file).loads == 1
    assert_equal(file, feed.datasets[PERMITS].versions[3], "permits")


def test_a_cursor_past_retention_begins_again_from_the_manifest(feed: FakeFeed, file: Path) -> None:
    """R-121, R-134: said, and no failure."""
    synced.sync(feed, file)
    version = feed.release(PERMITS, SCHEMA, rows(b=2))
    feed.leave(PARCELS)
    feed.prune()
    told: list[Progress] = []
    feed.calls.clear()
    result = synced.sync(feed, file, observe=told.append)
    assert (result.exit_status, result.loads) == (ExitStatus.DONE, 1)
    assert [each.moment for each in told].count(Moment.RELOADING) == 1
    assert_equal(file, version, "permits")
    assert synced.held(file)[PARCELS] == (None, "removed")
    assert synced.cursor(file) == event_id(feed.last)


def test_a_cursor_that_a_restored_server_does_not_know_is_treated_the_same(
    feed: FakeFeed, file: Path
) -> None:
    """The number alone proves nothing: the server gives it to other rows."""
    for number in range(3):
        feed.release(PERMITS, SCHEMA, rows(a=number))
    synced.sync(feed, file)
    restored = FakeFeed()
    for each in (PARCELS, PERMITS):
        restored.join(each)
        restored.release(each, SCHEMA, rows(a=1, b=2))
    version = restored.release(PERMITS, SCHEMA, rows(z=1))
    restored.datasets[PERMITS].versions = {4: replace(version, number=4)}
    restored.datasets[PERMITS].current = 4
    result = synced.sync(restored, file)
    assert (result.exit_status, result.loads) == (ExitStatus.DONE, 1)
    assert_equal(file, version, "permits")
    again = restored.release(PARCELS, SCHEMA, rows(a=7))
    synced.sync(restored, file)
    assert_equal(file, again, "parcels")


def test_a_log_that_refuses_the_manifests_own_cursor_ends_the_run(
    feed: FakeFeed, file: Path
) -> None:
    feed.first = feed.last + 10
    with pytest.raises(SyncError, match="refuses the cursor that the manifest"):
        synced.sync(feed, file)


def test_a_damaged_file_is_not_applied_and_stops_its_dataset_alone(
    feed: FakeFeed, file: Path
) -> None:
    synced.sync(feed, file)
    feed.release(PERMITS, SCHEMA, rows(a=3))
    feed.release(PARCELS, SCHEMA, rows(a=3))
    feed.damage = lambda dataset_id, _n, _r, right: right[:-1] if dataset_id == PERMITS else right
    assert synced.sync(feed, file).behind == [PERMITS]
    assert_equal(file, feed.datasets[PERMITS].versions[1], "permits")
    feed.damage = lambda *args: args[3]
    assert synced.sync(feed, file).behind == []
    assert_equal(file, feed.datasets[PERMITS].versions[2], "permits")


def test_a_current_version_that_fails_is_not_loaded_in_place_of_itself(
    feed: FakeFeed, file: Path
) -> None:
    """S-18: once from the log, and once when what is stuck is tried again."""
    synced.sync(feed, file)
    feed.release(PERMITS, SCHEMA, rows(a=3), reason=ResyncReason.PREVIOUS_UNAVAILABLE)
    feed.damage = lambda *_: b""
    feed.calls.clear()
    assert synced.sync(feed, file).behind == [PERMITS]
    assert feed.downloads() == [("snapshot", PERMITS, "2")] * 2


def test_rows_that_were_changed_by_hand_are_found_by_their_count_and_loaded_anew(
    feed: FakeFeed, file: Path
) -> None:
    synced.sync(feed, file)
    synced.execute(file, "DELETE FROM permits WHERE no = 'b'")
    version = feed.release(PERMITS, SCHEMA, rows(a=3, b=2))
    assert synced.sync(feed, file).loads == 1
    assert_equal(file, version, "permits")


@pytest.mark.parametrize(
    "by_hand",
    [
        "DROP TABLE permits",
        "ALTER TABLE permits DROP COLUMN units",
        "ALTER TABLE permits ALTER COLUMN units TYPE VARCHAR",
    ],
)
def test_a_table_that_cannot_take_the_changes_is_loaded_anew(
    feed: FakeFeed, file: Path, by_hand: str
) -> None:
    synced.sync(feed, file)
    synced.execute(file, by_hand)
    version = feed.release(PERMITS, SCHEMA, rows(a=3, b=2))
    assert synced.sync(feed, file).loads == 1
    assert_equal(file, version, "permits")


def test_verify_names_the_bucket_of_a_cell_changed_by_hand(feed: FakeFeed, file: Path) -> None:
    synced.sync(feed, file)
    assert verify(feed, synced.destination(file)).exit_status is ExitStatus.DONE
    synced.execute(file, "UPDATE permits SET units = 3 WHERE _ploti_record_id = 'rec_b'")
    found = verify(feed, synced.destination(file))
    assert found.exit_status is ExitStatus.DIFFERS
    (parcels, permits) = found.datasets
    assert (parcels.matches, permits.matches) == (True, False)
    assert permits.buckets == [bucket_of("rec_b")]
    assert f"bucket {bucket_of('rec_b')} (1 row)" in permits.detail


@pytest.mark.parametrize(
    "by_hand",
    [
        "DROP TABLE permits",
        "ALTER TABLE permits DROP COLUMN units",
        "ALTER TABLE permits RENAME COLUMN _ploti_record_id TO id",
        "INSERT INTO permits FROM permits",
        "UPDATE permits SET no = NULL",
        "ALTER TABLE permits ALTER COLUMN units TYPE VARCHAR USING 'two'",
    ],
)
def test_verify_finds_whatever_was_done_to_a_table(
    feed: FakeFeed, file: Path, by_hand: str
) -> None:
    synced.sync(feed, file)
    synced.execute(file, by_hand)
    assert verify(feed, synced.destination(file)).exit_status is ExitStatus.DIFFERS


def test_verify_says_where_a_version_cannot_be_asked_for(feed: FakeFeed, file: Path) -> None:
    synced.sync(feed, file)
    feed.refuse = refuse_all(of=PERMITS, by=NotSubscribed("gone"))
    found = verify(feed, synced.destination(file))
    assert found.exit_status is ExitStatus.BEHIND
    assert [each.matches for each in found.datasets] == [True, None]


def test_a_run_that_verifies_commits_nothing_that_differs(feed: FakeFeed, file: Path) -> None:
    synced.sync(feed, file, options=Options(verify=True))
    synced.execute(file, "UPDATE permits SET units = 7 WHERE no = 'b'")
    version = feed.release(PERMITS, SCHEMA, rows(a=3, b=2))
    result = synced.sync(feed, file, options=Options(verify=True))
    assert (result.exit_status, result.loads) == (ExitStatus.DONE, 1)
    assert_equal(file, version, "permits")
    wrong = feed.release(PERMITS, SCHEMA, rows(a=4, b=2))
    feed.datasets[PERMITS].versions[3] = replace(wrong, rows=rows(a=5, b=2))
    result = synced.sync(feed, file, options=Options(verify=True))
    assert (result.exit_status, result.differing) == (ExitStatus.DIFFERS, [PERMITS])
    assert_equal(file, version, "permits")


def test_a_digest_of_a_later_kind_is_no_difference(
    feed: FakeFeed, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced.sync(feed, file)
    later = msgspec.structs.replace(feed.digest(PERMITS, 1), content_digest="d2:00")
    monkeypatch.setattr(feed, "digest", lambda *_: later)
    with pytest.raises(SyncError, match="too old"):
        verify(feed, synced.destination(file))
    feed.release(PERMITS, SCHEMA, rows(a=3))
    with pytest.raises(SyncError, match="too old"):
        synced.sync(feed, file, options=Options(verify=True))
    assert synced.held(file)[PERMITS] == (1, "held")


def test_only_what_is_chosen_is_synced_and_another_choice_is_taken_up(
    feed: FakeFeed, file: Path
) -> None:
    synced.sync(feed, file, chosen=frozenset({PERMITS}))
    assert synced.held(file) == {PERMITS: (1, "held")}
    feed.release(PARCELS, SCHEMA, rows(a=7))
    synced.sync(feed, file, chosen=frozenset({PERMITS}))
    assert synced.held(file) == {PERMITS: (1, "held")}
    assert synced.sync(feed, file).exit_status is ExitStatus.DONE
    assert_equal(file, feed.datasets[PARCELS].versions[2], "parcels")
    synced.sync(feed, file, chosen=frozenset({PARCELS}))
    assert synced.held(file) == {PARCELS: (2, "held"), PERMITS: (1, "left_out")}
    feed.release(PERMITS, SCHEMA, rows(a=8))
    synced.sync(feed, file, chosen=frozenset({PARCELS}))
    synced.sync(feed, file)
    assert_equal(file, feed.datasets[PERMITS].versions[2], "permits")


def test_a_choice_that_the_subscription_does_not_deliver_is_refused_and_nothing_changed(
    feed: FakeFeed, file: Path
) -> None:
    nothing = DatasetId("ds_nothing")
    with pytest.raises(ConfigError, match="does not deliver ds_nothing"):
        synced.sync(feed, file, chosen=frozenset({PERMITS, nothing}))
    synced.sync(feed, file, chosen=frozenset({PERMITS}))
    with pytest.raises(ConfigError, match="does not deliver ds_nothing"):
        synced.sync(feed, file, chosen=frozenset({nothing}))
    assert synced.held(file) == {PERMITS: (1, "held")}


def test_a_table_has_the_name_that_it_was_given_for_good(feed: FakeFeed, file: Path) -> None:
    named = Options(table_name='my "table"')
    synced.sync(feed, file, options=named, chosen=frozenset({PERMITS}))
    version = feed.release(PERMITS, SCHEMA, rows(a=3))
    synced.sync(feed, file, chosen=frozenset({PERMITS}))
    assert synced.query(file, 'SELECT count(*) FROM "my ""table"""') == [(1,)]
    assert version.number == 2
    other = Options(table_name="other")
    with pytest.raises(ConfigError, match="is kept in table"):
        synced.sync(feed, file, options=other, chosen=frozenset({PERMITS}))
    with pytest.raises(ConfigError, match="one --dataset"):
        synced.sync(feed, file, options=named)


def test_two_datasets_never_share_a_table(feed: FakeFeed, file: Path) -> None:
    named = Options(table_name="PARCELS")
    synced.sync(feed, file, options=named, chosen=frozenset({PERMITS}))
    result = synced.sync(feed, file)
    assert result.behind == [PARCELS]
    assert synced.held(file)[PERMITS] == (1, "held")


def test_a_second_client_is_refused(feed: FakeFeed, file: Path) -> None:
    with synced.destination(file).lock(), pytest.raises(DestinationBusy, match="process"):
        synced.sync(feed, file)
    assert synced.sync(feed, file).exit_status is ExitStatus.DONE


def test_a_file_that_is_no_database_is_refused_and_left_alone(feed: FakeFeed, file: Path) -> None:
    file.write_text("my notes, not a database, for certain\n" * 400)
    with pytest.raises(SyncError, match="is no DuckDB database: name another file"):
        synced.sync(feed, file)
    assert file.read_text().startswith("my notes")


def test_a_folder_that_is_not_there_is_told(feed: FakeFeed, tmp_path: Path) -> None:
    with pytest.raises(SyncError, match="There is no folder"):
        synced.sync(feed, tmp_path / "nowhere" / "feeds.duckdb")


def test_a_destination_changed_by_another_during_the_run_is_noticed(
    feed: FakeFeed, file: Path
) -> None:
    synced.sync(feed, file)
    backup = file.with_name("backup")
    shutil.copy(file, backup)
    feed.release(PERMITS, SCHEMA, rows(a=3))
    synced.sync(feed, file)
    feed.release(PERMITS, SCHEMA, rows(a=4))

    def meddle(progress: Progress) -> None:
        if progress.moment is Moment.FETCHED:
            shutil.copy(backup, file)

    with pytest.raises(SyncError, match="changed by something else"):
        synced.sync(feed, file, observe=meddle)


def test_room_on_the_disk_is_asked_for_before_a_byte_is_fetched(
    feed: FakeFeed, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced.sync(feed, file)
    feed.release(PERMITS, SCHEMA, rows(a=3))
    feed.calls.clear()
    full = SimpleNamespace(total=100, used=90, free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with pytest.raises(SyncError, match="disk is too full"):
        synced.sync(feed, file)
    assert feed.downloads() == []
    monkeypatch.undo()
    assert synced.held(file)[PERMITS] == (1, "held")
    assert synced.cursor(file) == event_id(4)


def test_nothing_is_left_beside_the_file_but_its_lock(feed: FakeFeed, file: Path) -> None:
    (file.parent / ".feeds.duckdb.downloads").mkdir()
    (file.parent / ".feeds.duckdb.downloads" / "left.parquet.part").write_bytes(b"of a killed run")
    synced.sync(feed, file)
    names = sorted(each.name for each in file.parent.iterdir())
    assert names == ["feeds.duckdb", "feeds.duckdb.lock"]


def test_two_subscriptions_share_a_file_and_no_table(feed: FakeFeed, file: Path) -> None:
    synced.sync(feed, file, chosen=frozenset({PERMITS}))
    synced.execute(file, "UPDATE _ploti.subscriptions SET subscription_id = 'sub_other'")
    synced.execute(file, "UPDATE _ploti.datasets SET subscription_id = 'sub_other'")
    result = synced.sync(feed, file)
    assert result.behind == [PERMITS]
    assert any("--table-name" in str(each.reason) for each in result.datasets)
    synced.execute(
        file, "UPDATE _ploti.datasets SET state = 'removed' WHERE subscription_id = 'sub_other'"
    )
    assert synced.sync(feed, file).behind == []


def test_status_tells_current_behind_expired_failed_and_left_apart(
    feed: FakeFeed, file: Path
) -> None:
    with pytest.raises(SyncError, match="There is no"):
        read_status(feed, synced.destination(file))

    def standings() -> tuple[list[Standing], ExitStatus]:
        found = read_status(feed, synced.destination(file))
        return [each.standing for each in found.datasets], found.exit_status

    synced.sync(feed, file)
    assert standings() == ([Standing.CURRENT, Standing.CURRENT], ExitStatus.DONE)
    feed.release(PERMITS, SCHEMA, rows(a=3))
    assert standings() == ([Standing.CURRENT, Standing.BEHIND], ExitStatus.BEHIND)
    feed.prune()
    assert standings() == ([Standing.CURRENT, Standing.EXPIRED], ExitStatus.BEHIND)
    feed.damage = lambda *args: b""
    synced.sync(feed, file)
    assert standings() == ([Standing.CURRENT, Standing.FAILED], ExitStatus.BEHIND)
    feed.leave(PERMITS)
    synced.sync(feed, file)
    assert standings() == ([Standing.CURRENT, Standing.LEFT], ExitStatus.DONE)
    feed.join(DatasetId("ds_new"))
    synced.sync(feed, file)
    assert standings()[0] == [Standing.WAITING, Standing.CURRENT, Standing.LEFT]


def test_status_says_how_far_behind_a_dataset_is_and_since_when(feed: FakeFeed, file: Path) -> None:
    synced.sync(feed, file)
    for units in (3, 4, 5):
        feed.release(PERMITS, SCHEMA, rows(a=units))
    parcels, permits = read_status(feed, synced.destination(file)).datasets
    assert (parcels.missing, parcels.missing_since) == (0, None)
    first, *_ = feed.versions(PERMITS, after=permits.held or 0)
    assert (permits.missing, permits.missing_since) == (3, first.published_at)
    assert permits.detail.endswith(f"3 versions behind since {first.published_at}")


def test_an_address_that_is_no_destination_is_refused() -> None:
    for address in ("duckdb:", "mysql://x", "feeds.duckdb"):
        with pytest.raises(ConfigError, match="is no destination"):
            open_destination(address, subscription_id=SUBSCRIPTION)
