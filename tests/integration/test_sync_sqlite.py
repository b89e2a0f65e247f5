"""What is particular to a SQLite destination, as plain SQLite sees it."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from tests.fakes import synced
from tests.fakes.feed import FakeFeed, FakeVersion, make_schema

from ploti.errors import DestinationBusy, SyncError
from ploti.model.digest import Cell, bucket_of
from ploti.model.ids import DatasetId
from ploti.model.schema import Schema
from ploti.model.version import ResyncReason
from ploti.sync.verify import verify

PERMITS = DatasetId("ds_permits")
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
    "more": "[1]",
    "geometry": POINT,
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "feeds.sqlite"


def release(
    feed: FakeFeed,
    rows: Mapping[str, Mapping[str, Cell]],
    schema: Schema | None = None,
    reason: ResyncReason | None = None,
) -> FakeVersion:
    return feed.release(PERMITS, schema or make_schema(**KINDS), rows, reason=reason)


@pytest.fixture
def feed() -> FakeFeed:
    feed = FakeFeed()
    feed.join(PERMITS)
    release(feed, {"rec_a": ROW, "rec_b": {"name": "2"}})
    return feed


def test_each_type_stands_as_the_page_on_destinations_says(feed: FakeFeed, file: Path) -> None:
    synced.sync(feed, file)
    (row,) = synced.query(file, f"SELECT {', '.join(KINDS)} FROM permits WHERE units IS NOT NULL")
    assert row == (
        *("0012", 2**63 - 1, 0.1, 1, "0.50", "0001-01-01"),
        *("2026-10-18T06:13:02.000Z", "2026-10-18T06:13:02.000001", "[1]", POINT),
    )


@pytest.mark.parametrize(
    "change",
    [
        "units = 'many'",
        "units = 1.5",
        "active = 2",
        "fee = '0.5'",
        "fee = 'free'",
        "issued = '2026-13-01'",
        "updated = '2026-10-18 06:13:02'",
        "name = x'ff'",
        "geometry = 'POINT'",
    ],
)
def test_a_value_that_is_none_of_its_type_makes_its_bucket_differ(
    feed: FakeFeed, file: Path, change: str
) -> None:
    """Even where the value should be null."""
    synced.sync(feed, file)
    synced.execute(file, f"UPDATE permits SET {change} WHERE _ploti_record_id = 'rec_b'")
    (found,) = verify(feed, synced.destination(file)).datasets
    assert (found.matches, found.buckets) == (False, [bucket_of("rec_b")])


def test_a_view_an_index_and_a_column_of_ones_own_stay(feed: FakeFeed, file: Path) -> None:
    synced.sync(feed, file)
    synced.execute(file, "CREATE VIEW mine AS SELECT count(*) AS n FROM permits")
    synced.execute(file, "CREATE INDEX by_name ON permits (name)")
    synced.execute(file, "ALTER TABLE permits ADD note TEXT")
    release(feed, {"rec_a": ROW})
    feed.prune()
    assert synced.sync(feed, file).loads == 1
    assert synced.query(file, "SELECT n FROM mine") == [(1,)]
    assert synced.query(file, "SELECT note FROM permits") == [(None,)]
    found = "SELECT count(*) FROM sqlite_schema WHERE name = 'by_name'"
    assert synced.query(file, found) == [(1,)]


def test_a_major_change_makes_the_table_anew(feed: FakeFeed, file: Path) -> None:
    synced.sync(feed, file)
    other = make_schema(name="int64")
    version = release(feed, {"rec_a": {"name": 12}}, other)
    synced.sync(feed, file)
    assert synced.read_table(file, version, "permits") == synced.expected(version)


def test_a_table_that_is_not_plotis_is_left_alone(feed: FakeFeed, file: Path) -> None:
    with sqlite3.connect(file) as plain:
        plain.execute("CREATE TABLE Permits (mine)")
    plain.close()
    result = synced.sync(feed, file)
    assert "is in the way" in str(result.datasets[0].reason)
    assert synced.query(file, "SELECT mine FROM permits") == []


@pytest.mark.parametrize("name", ["sqlite_stat1", "_ploti_datasets"])
def test_a_name_that_is_kept_for_others_is_another_one_there(file: Path, name: str) -> None:
    feed, dataset_id = FakeFeed(), DatasetId(f"ds_{name}")
    feed.join(dataset_id)
    for number in ("1", "2"):
        feed.release(dataset_id, make_schema(no="string"), {"rec_a": {"no": number}})
        result = synced.sync(feed, file)
        assert (result.datasets[0].reason, result.datasets[0].table) == (None, f"t_{name}")
        assert synced.query(file, f"SELECT no FROM t_{name}") == [(number,)]


def test_a_reader_keeps_its_version_and_the_commit_waits_for_it(feed: FakeFeed, file: Path) -> None:
    synced.sync(feed, file)
    reader = sqlite3.connect(file, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM permits").fetchone() == (2,)
    release(feed, {"rec_a": ROW})
    busy = synced.destination(file, lock_timeout=0.2)
    with (
        pytest.raises(DestinationBusy, match="in use"),
        busy.session() as session,
        session.transaction() as transaction,
    ):
        transaction.drop("permits")
    assert reader.execute("SELECT count(*) FROM permits").fetchone() == (2,)
    reader.close()
    synced.sync(feed, file)
    assert synced.held(file) == {PERMITS: (2, "held")}


def test_a_file_that_is_no_database_is_refused_and_stays(feed: FakeFeed, file: Path) -> None:
    file.write_text("no database, but a text of some length\n" * 100)
    before = file.read_bytes()
    with pytest.raises(SyncError, match="no SQLite database"):
        synced.sync(feed, file)
    assert file.read_bytes() == before


def test_a_table_of_as_many_columns_as_sqlite_has_is_kept_and_proved(file: Path) -> None:
    feed = FakeFeed()
    feed.join(PERMITS)
    names = [f"c{number}" for number in range(1_999)]
    schema = make_schema(**dict.fromkeys(names, "string"))
    release(feed, {"rec_a": {"c1998": "last"}}, schema)
    assert synced.sync(feed, file).datasets[0].reason is None
    assert synced.query(file, "SELECT c1998 FROM permits") == [("last",)]
    (found,) = verify(feed, synced.destination(file)).datasets
    assert found.matches, found.detail
