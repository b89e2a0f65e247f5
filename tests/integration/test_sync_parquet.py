"""What is particular to a folder of GeoParquet files, as other readers of such files see it."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import geopandas
import pyarrow.parquet as pq
import pytest
from tests.fakes import synced
from tests.fakes.feed import FakeFeed, make_schema

from ploti.errors import DestinationBusy, SyncError
from ploti.model.digest import bucket_of
from ploti.model.ids import DatasetId
from ploti.sync.destinations.parquet import session
from ploti.sync.progress import Moment, Progress
from ploti.sync.verify import verify
from ploti.sync.work import OnRemoved, Options

PERMITS = DatasetId("ds_permits")
SCHEMA = make_schema(name="string", geometry="geometry")
WIDER = make_schema(name="string", geometry="geometry", floors="int64")


def point(x: float, y: float) -> bytes:
    return struct.pack("<BIdd", 1, 1, x, y)


ONE = {"rec_a": {"name": "one", "geometry": point(1, 2)}, "rec_c": {"name": "none"}}
TWO = {"rec_b": {"name": "two", "geometry": point(-9, 9)}, "rec_c": {"name": "none"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "feeds.parquet"


@pytest.fixture
def feed() -> FakeFeed:
    feed = FakeFeed()
    feed.join(PERMITS)
    feed.release(PERMITS, SCHEMA, ONE)
    return feed


def assert_equal(feed: FakeFeed, folder: Path) -> None:
    (found,) = verify(feed, synced.destination(folder)).datasets
    assert found.matches, found.detail


def test_a_snapshot_is_taken_byte_for_byte(feed: FakeFeed, folder: Path) -> None:
    synced.sync(feed, folder)
    assert (folder / "permits.parquet").read_bytes() == feed.file(PERMITS, 1, "snapshot")
    assert_equal(feed, folder)


def test_changes_are_folded_into_a_file_that_geopandas_reads(feed: FakeFeed, folder: Path) -> None:
    synced.sync(feed, folder)
    feed.release(PERMITS, SCHEMA, TWO)
    assert synced.sync(feed, folder).applies == 1
    assert_equal(feed, folder)
    layer = geopandas.read_parquet(folder / "permits.parquet").set_index("name")
    assert layer.crs == "OGC:CRS84"
    assert layer.geometry["two"].wkt == "POINT (-9 9)"
    assert layer.geometry["none"] is None
    ids = pq.read_table(folder / "permits.parquet")["_ploti_record_id"].to_pylist()
    assert ids == ["rec_b", "rec_c"], "in the order of record ids"
    geo = json.loads(pq.read_metadata(folder / "permits.parquet").metadata[b"geo"])
    assert geo["version"] == "1.1.0"


def test_a_new_column_comes_with_its_version(feed: FakeFeed, folder: Path) -> None:
    """S-16."""
    synced.sync(feed, folder)
    version = feed.release(PERMITS, WIDER, ONE | {"rec_d": {"floors": 3}})
    assert synced.sync(feed, folder).applies == 1
    assert_equal(feed, folder)
    rows = synced.query(folder, "SELECT floors FROM permits ORDER BY _ploti_record_id")
    assert rows == [(None,), (None,), (3,)]
    assert version.number == 2


def test_a_reader_that_has_it_open_keeps_its_version(feed: FakeFeed, folder: Path) -> None:
    synced.sync(feed, folder)
    with (folder / "permits.parquet").open("rb") as file:
        feed.release(PERMITS, SCHEMA, TWO)
        synced.sync(feed, folder)
        assert pq.read_table(file)["name"].to_pylist() == ["one", "none"]


def test_the_file_is_whole_and_there_at_every_step(feed: FakeFeed, folder: Path) -> None:
    synced.sync(feed, folder)
    seen: set[tuple[str, ...]] = set()

    def observe(_progress: Progress) -> None:
        seen.add(tuple(pq.read_table(folder / "permits.parquet")["name"].to_pylist()))

    feed.release(PERMITS, SCHEMA, TWO)
    synced.sync(feed, folder, observe=observe)
    assert seen == {("one", "none"), ("two", "none")}


def test_a_file_that_was_changed_or_is_gone_is_found_out(feed: FakeFeed, folder: Path) -> None:
    synced.sync(feed, folder)
    synced.execute(folder, "UPDATE permits SET name = 'x' WHERE _ploti_record_id = 'rec_a'")
    (found,) = verify(feed, synced.destination(folder)).datasets
    assert (found.matches, found.buckets) == (False, [bucket_of("rec_a")])
    (folder / "permits.parquet").unlink()
    (found,) = verify(feed, synced.destination(folder)).datasets
    assert (found.matches, found.detail) == (False, "there is no file permits.parquet")


def test_a_file_that_is_not_plotis_is_left_alone(feed: FakeFeed, folder: Path) -> None:
    folder.mkdir()
    (folder / "permits.parquet").write_text("mine")
    result = synced.sync(feed, folder)
    assert "is in the way" in str(result.datasets[0].reason)
    assert (folder / "permits.parquet").read_text() == "mine"


def test_a_dataset_that_leaves_takes_its_file_along_where_that_is_wanted(
    feed: FakeFeed, folder: Path
) -> None:
    synced.sync(feed, folder)
    feed.leave(PERMITS)
    synced.sync(feed, folder, options=Options(on_removed=OnRemoved.DROP))
    assert [each.name for each in folder.iterdir()] == ["_ploti"]
    feed.join(PERMITS)
    synced.sync(feed, folder)
    assert_equal(feed, folder)


def test_a_commit_that_breaks_off_among_its_files_is_finished_by_the_next_run(
    feed: FakeFeed, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is recorded as held stands in its file, though that has not its name yet."""
    synced.sync(feed, folder)
    version = feed.release(PERMITS, SCHEMA, TWO)

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(session, "finish_moves", refuse)
        with pytest.raises(SyncError, match="The disk is full"):
            synced.sync(feed, folder)
    assert synced.held(folder) == {PERMITS: (2, "held")}
    assert_equal(feed, folder)
    synced.sync(feed, folder)
    found = geopandas.read_parquet(folder / "permits.parquet")
    assert list(found["_ploti_record_id"]) == sorted(version.rows)
    assert [each.name for each in (folder / "_ploti").glob("*.new")] == []


def test_who_verifies_and_who_commits_wait_for_each_other(feed: FakeFeed, folder: Path) -> None:
    synced.sync(feed, folder)
    feed.release(PERMITS, SCHEMA, TWO)
    hasty = synced.destination(folder, lock_timeout=0.2)
    with (
        hasty.reading(),
        pytest.raises(DestinationBusy, match="in use"),
        synced.destination(folder, lock_timeout=0.2).session() as session,
        session.transaction() as transaction,
    ):
        transaction.drop("permits")
    assert synced.sync(feed, folder).applies == 1
    assert_equal(feed, folder)


def test_a_state_that_cannot_be_read_is_told(feed: FakeFeed, folder: Path) -> None:
    synced.sync(feed, folder)
    (folder / "_ploti" / "state.json").write_text("{")
    with pytest.raises(SyncError, match="is not what sync writes"):
        synced.sync(feed, folder)


def test_nothing_is_left_beside_the_files(feed: FakeFeed, folder: Path) -> None:
    synced.sync(feed, folder)
    feed.release(PERMITS, SCHEMA, TWO)
    moments: list[Moment] = []
    synced.sync(feed, folder, observe=lambda progress: moments.append(progress.moment))
    assert Moment.COMMITTED in moments
    own = sorted(each.name for each in (folder / "_ploti").iterdir())
    assert own == ["commit.lock", "state.json", "sync.lock"]
