"""What every destination must do: a new one is added to `FILES` or `DATABASES`, and passes all."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
from tests.fakes.feed import (
    SUBSCRIPTION,
    FakeDataset,
    FakeVersion,
    make_schema,
    make_version,
    write_parquet,
)
from tests.fakes.postgres import Cluster

from ploti.errors import DestinationBusy, SyncError
from ploti.model.columns import RECORD_ID
from ploti.model.digest import Cell, bucket_of
from ploti.model.ids import DatasetId, EventId
from ploti.model.schema import AddedColumn, Schema
from ploti.model.wire import Instant
from ploti.sync.destination import Destination, TableError, Transaction
from ploti.sync.destinations import open_destination
from ploti.sync.held import Held, Holdings, State

KINDS = ("duckdb", "sqlite", "gpkg", "parquet")
FILES = [f"{kind}:{{folder}}/it's [a] *file?#%20.db" for kind in KINDS]
DATABASES = ["postgresql", "postgis"]
PERMITS = DatasetId("ds_permits")
NAN_POINT = struct.pack("<BIdd", 1, 1, math.nan, math.nan)


@pytest.fixture(scope="module")
def postgresql(postgres: Cluster) -> Iterator[str]:
    with postgres.database() as url:
        yield url


@pytest.fixture(scope="module")
def postgis(postgres: Cluster) -> Iterator[str]:
    if not postgres.offers("postgis"):
        pytest.skip("the Debian package postgresql-postgis is not installed")
    with postgres.database() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "CREATE SCHEMA extensions; CREATE EXTENSION postgis SCHEMA extensions"
            )
        yield url


@pytest.fixture(params=FILES + DATABASES)
def destination(request: pytest.FixtureRequest, tmp_path: Path) -> Destination:
    """A new one of each kind; a database is emptied for it."""
    address = str(request.param).format(folder=tmp_path)
    if address in DATABASES:
        address = request.getfixturevalue(address)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS _ploti CASCADE; DROP TABLE IF EXISTS permits")
    return open_destination(address, subscription_id=SUBSCRIPTION, lock_timeout=1)


def versions(*states: tuple[Schema, Mapping[str, Mapping[str, Cell]]]) -> list[FakeVersion]:
    """The versions that these states make, with their files."""
    dataset, made = FakeDataset(), []
    for schema, rows in states:
        version = make_version(dataset, schema, rows)
        dataset.versions[version.number] = version
        dataset.current, dataset.next_number = version.number, version.number + 1
        made.append(version)
    return made


@contextmanager
def changing(destination: Destination) -> Iterator[Transaction]:
    with destination.session() as session, session.transaction() as transaction:
        yield transaction


def put(content: bytes | None, folder: Path) -> Path:
    assert content is not None
    file = folder / "it's [a] *file?.parquet"
    file.write_bytes(content)
    return file


def load(destination: Destination, version: FakeVersion, folder: Path) -> None:
    with changing(destination) as transaction:
        transaction.load("permits", version.schema, put(version.snapshot, folder))
        assert transaction.count("permits") == len(version.rows)


def assert_is(destination: Destination, version: FakeVersion) -> None:
    """The table has the digest that the plain reference gives the version's rows."""
    with destination.reading() as session, session.transaction() as transaction:
        assert transaction.buckets("permits", version.schema) == version.buckets


EXTREMES: list[tuple[str, list[Cell]]] = [
    ("int64", [0, -1, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)]),
    ("float64", [0.1, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, -1e-7]),
    ("boolean", [True, False]),
    (
        "decimal(38,10)",
        [Decimal("1234567890123456789012345678.9012345678"), Decimal("-0.5000000000")],
    ),
    ("decimal(5,5)", [Decimal("0.50000"), Decimal("-0.00001")]),
    ("date", [date(1, 1, 1), date(1582, 10, 10), date(3015, 6, 29), date(9999, 12, 31)]),
    (
        "timestamp",
        [
            datetime(1, 1, 1, tzinfo=UTC),
            datetime(2262, 4, 12, tzinfo=UTC),
            datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        ],
    ),
    ("datetime", [datetime(1601, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)]),  # noqa: DTZ001
    (
        "string",
        [
            *(
                "",
                " ",
                "NULL",
                "Y",
                "0012",
                "12345678901234567890",
                "bell\x07",
                "ok \U0001f680",
                "ß",
            ),
            *("\\.", "two\n\\.\nlines", "\\N", '"', '""', "a,b", "\r\n", "\t", "\ufeff"),
        ],
    ),
    ("json", ['{"a":12345678901234567890123456789,"b":1e400}', "[]", '"\\u0000"', "null"]),
    ("geometry", [bytes.fromhex("010100000000000000006054C00000000000403C40"), NAN_POINT]),
]


@pytest.mark.parametrize(("kind", "values"), [pytest.param(*each, id=each[0]) for each in EXTREMES])
def test_values_at_the_edges_of_their_type_arrive_as_they_are(
    destination: Destination, tmp_path: Path, kind: str, values: list[Cell]
) -> None:
    """D08, D09, D10, D59: by load and by apply alike."""
    schema = make_schema(value=kind)
    rows = {f"rec_{number}": {"value": value} for number, value in enumerate([*values, None])}
    empty, full = versions((schema, {}), (schema, rows))
    load(destination, full, tmp_path)
    assert_is(destination, full)
    load(destination, empty, tmp_path)
    with changing(destination) as transaction:
        transaction.apply("permits", schema, put(full.changes, tmp_path))
    assert_is(destination, full)


def test_names_of_every_kind_are_columns(destination: Destination, tmp_path: Path) -> None:
    """D07."""
    long = "permit_application_reviewing_department_assigned_inspector_remarks"
    names = [f"{long}_first", f"{long}_second", "order", "user", "Select", "STATUS", "status_2"]
    names += ["2nd_review", 'say "hi"', "naïve größe", "unnamed", "rowid", "a.b", "bbox"]
    names += ["ctid", "xmin", "100 %", "%s", "two\nlines", "ß" * 200]
    schema = make_schema(**dict.fromkeys(names, "string"))
    (version,) = versions((schema, {"rec_a": {name: name for name in names}}))
    load(destination, version, tmp_path)
    assert_is(destination, version)


def ring(*points: tuple[float, ...]) -> bytes:
    return struct.pack("<I", len(points)) + b"".join(
        struct.pack(f"<{len(point)}d", *point) for point in points
    )


POLYGON = struct.pack("<BII", 1, 3, 1) + ring((0, 0), (1, 1), (0, 1), (0, 0))
POLYGON_Z = struct.pack("<BII", 1, 1003, 1) + ring((0, 0, 5), (1, 1, 5), (0, 1, 5), (0, 0, 5))
POLYGON_EMPTY = struct.pack("<BII", 1, 3, 0)
MULTIPOLYGON = struct.pack("<BII", 1, 6, 2) + POLYGON + POLYGON
COLLECTION = struct.pack("<BII", 1, 7, 2) + struct.pack("<BIdd", 1, 1, 1, 2) + POLYGON


@pytest.mark.parametrize("crs", ["OGC:CRS84", "EPSG:4326", "EPSG:26915"])
def test_one_column_takes_every_kind_of_geometry(
    destination: Destination, tmp_path: Path, crs: str
) -> None:
    """D11, D61."""
    schema = make_schema(geometry="geometry", crs=crs)
    many = [POLYGON, POLYGON_Z, POLYGON_EMPTY, MULTIPOLYGON, COLLECTION, None]
    later = {f"rec_{number}": {"geometry": each} for number, each in enumerate(many)}
    first, next_one = versions((schema, {"rec_0": {"geometry": POLYGON}}), (schema, later))
    load(destination, first, tmp_path)
    for _ in range(2):
        with changing(destination) as transaction:
            transaction.apply("permits", schema, put(next_one.changes, tmp_path))
        assert_is(destination, next_one)


SCHEMA = make_schema(no="string", units="int64")
ONE = {"rec_a": {"no": "1", "units": 1}, "rec_b": {"no": "2"}}
TWO = {"rec_a": {"no": "1", "units": 5}, "rec_c": {"no": "3"}}


def test_changes_applied_twice_are_applied_once(destination: Destination, tmp_path: Path) -> None:
    """R-111, R-112, R-113, D52."""
    first, second = versions((SCHEMA, ONE), (SCHEMA, TWO))
    load(destination, first, tmp_path)
    for _ in range(2):
        with changing(destination) as transaction:
            transaction.apply("permits", SCHEMA, put(second.changes, tmp_path))
        assert_is(destination, second)


def test_ids_are_told_by_bucket_as_they_stand_in_the_transaction(
    destination: Destination, tmp_path: Path
) -> None:
    first, second = versions((SCHEMA, ONE), (SCHEMA, TWO))
    load(destination, first, tmp_path)
    with changing(destination) as transaction:
        transaction.apply("permits", SCHEMA, put(second.changes, tmp_path))
        assert sorted(transaction.record_ids("permits", range(256))) == sorted(TWO)
        some = {bucket_of(each) for each in list(TWO)[:1]}
        wanted = [each for each in TWO if bucket_of(each) in some]
        assert sorted(transaction.record_ids("permits", some)) == sorted(wanted)


def test_columns_are_added_once(destination: Destination, tmp_path: Path) -> None:
    """D14."""
    (first,) = versions((SCHEMA, ONE))
    load(destination, first, tmp_path)
    kinds = ["string", "int64", "float64", "boolean", "date", "timestamp", "datetime", "json"]
    added = [AddedColumn(name=f"new {kind}", type=kind) for kind in [*kinds, "decimal(8,2)"]]
    for _ in range(2):
        with changing(destination) as transaction:
            transaction.add_columns("permits", added)
    assert_is(destination, first)
    wider = make_schema(no="string", units="int64", **{each.name: each.type for each in added})
    (same,) = versions((wider, ONE))
    assert_is(destination, same)


def test_a_transaction_is_all_or_nothing(destination: Destination, tmp_path: Path) -> None:
    first, second = versions((SCHEMA, ONE), (SCHEMA, TWO))
    load(destination, first, tmp_path)
    with pytest.raises(RuntimeError), changing(destination) as transaction:  # noqa: PT012 - it fails after its work
        transaction.apply("permits", SCHEMA, put(second.changes, tmp_path))
        transaction.save(Held(dataset_id=PERMITS, version=2))
        transaction.move(EventId("evt_000000000002"))
        raise RuntimeError
    assert_is(destination, first)
    with destination.reading() as session:
        assert session.holdings() == Holdings()


def test_what_is_held_reads_back_as_it_was_written(destination: Destination) -> None:
    left = Held(
        dataset_id=DatasetId("ds_left"),
        state=State.REMOVED,
        table="left",
        reason="it's gone",
        last_event=EventId("evt_000000000007"),
        left_at=Instant(2026, 10, 18, 6, 13, 2, 1000, tzinfo=UTC),
    )
    stuck = Held(
        dataset_id=PERMITS,
        state=State.NEEDS_LOAD,
        version=2**40,
        schema_version="2.1",
        content_digest="d1:00",
        row_count=0,
        table='p"',
        reason="damaged",
        wanted=2**41,
        last_event=EventId("evt_000000000009"),
    )
    chosen = frozenset({PERMITS})
    cursor = EventId("evt_000000000010")
    for _ in range(2):
        with changing(destination) as transaction:
            transaction.choose(chosen)
            transaction.save(left)
            transaction.save(stuck)
            transaction.move(cursor)
    with destination.reading() as session:
        assert session.revision() == 2
        assert session.holdings() == Holdings(
            cursor=cursor,
            chosen=chosen,
            revision=2,
            datasets={each.dataset_id: each for each in (left, stuck)},
        )


@pytest.mark.parametrize("fault", ["no table", "no such column", "an unknown operation"])
def test_changes_that_a_table_cannot_take_are_its_own_fault(
    destination: Destination, tmp_path: Path, fault: str
) -> None:
    """R-114: and nothing of them is applied."""
    first, second = versions((SCHEMA, ONE), (SCHEMA, TWO))
    changes = second.changes or b""
    schema = SCHEMA
    if fault == "no such column":
        schema = make_schema(no="string", units="int64", floors="int64")
    if fault == "an unknown operation":
        envelope = {"_ploti_op": ["merge"], "_ploti_change": ["changed"], RECORD_ID: ["rec_a"]}
        changes = write_parquet(SCHEMA, {"rec_a": {}}, envelope)
    load(destination, first, tmp_path)
    table = "nowhere" if fault == "no table" else "permits"
    with pytest.raises(TableError), changing(destination) as transaction:
        transaction.apply(table, schema, put(changes, tmp_path))
    assert_is(destination, first)


def test_a_snapshot_that_names_a_record_twice_is_refused(
    destination: Destination, tmp_path: Path
) -> None:
    twice = write_parquet(SCHEMA, {"rec_a": {}, "rec_b": {}}, {RECORD_ID: ["rec_a", "rec_a"]})
    with pytest.raises(TableError, match="record id"), changing(destination) as transaction:
        transaction.load("permits", SCHEMA, put(twice, tmp_path))


def test_one_client_at_a_time(destination: Destination) -> None:
    with destination.lock(), pytest.raises(DestinationBusy), destination.lock():
        raise AssertionError("two are in")
    with destination.lock():
        pass


def test_there_is_nothing_to_read_before_the_first_write(destination: Destination) -> None:
    assert not destination.exists
    with pytest.raises(SyncError, match="There is no"), destination.reading():
        raise AssertionError("it was opened")
    with destination.session():
        pass
    assert destination.exists
