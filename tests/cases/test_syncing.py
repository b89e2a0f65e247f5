"""The collected cases of sync: a scripted feed, a place to start from, and the right end."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.cases.cases import FOLDER, case
from tests.fakes import feed_server, synced
from tests.fakes.feed import (
    SUBSCRIPTION,
    FakeDataset,
    FakeFeed,
    FakeVersion,
    Rows,
    make_schema,
    refuse_all,
    write_parquet,
)
from tests.fakes.feed_server import KEY, Fault, FeedServer, serve

from ploti.client.connection import Client
from ploti.errors import NotSubscribed
from ploti.model.columns import CHANGE, OP, RECORD_ID
from ploti.model.event import (
    FeedData,
    Removed,
    RemovedReason,
    ResyncRequired,
    SchemaChanged,
    Updated,
)
from ploti.model.ids import START, DatasetId, EventId, event_number
from ploti.model.schema import FIRST, Schema, compare
from ploti.model.version import Counts, ResyncReason
from ploti.sync.feed import ClientFeed
from ploti.sync.held import Held, State
from ploti.sync.progress import Moment, Progress
from ploti.sync.result import Result

SAMPLE = DatasetId("ds_sample_permits")
TABLE = "sample_permits"


class CrashError(BaseException):
    """The process ends here."""


def read_csv(name: str) -> list[dict[str, Any]]:
    """The rows of a case's file; an empty field is null, `floors` a number."""
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        found: list[dict[str, Any]] = [
            {column: cell or None for column, cell in row.items()} for row in csv.DictReader(file)
        ]
    for row in found:
        if row.get("floors") is not None:
            row["floors"] = int(row["floors"])
    return found


def by_id(rows: list[dict[str, Any]]) -> Rows:
    return {
        row[RECORD_ID]: {name: cell for name, cell in row.items() if not name.startswith("_ploti_")}
        for row in rows
    }


def make_feed(given: dict[str, Any]) -> FakeFeed:
    """The scripted feed of a case."""
    feed = FakeFeed()
    script = given["serve"]
    dataset = script["datasets"][SAMPLE]
    feed.datasets[SAMPLE] = FakeDataset(member=True, current=dataset["current"])
    for number, version in dataset["versions"].items():
        feed.datasets[SAMPLE].versions[number] = make_version(number, version)
    for event in script["log"]:
        data = make_data(feed, event)
        feed.log.append(feed.event(event_number(event["id"]), data))
    newest = max(event["id"] for event in script["log"])
    feed.last = event_number(newest)
    feed.first = event_number(script.get("oldest_kept", "evt_000000000001"))
    return feed


def make_version(number: int, given: dict[str, Any]) -> FakeVersion:
    snapshot = by_id(read_csv(given["snapshot"]))
    first = next(iter(snapshot.values()))
    kinds = {name: "int64" if name == "floors" else "string" for name in first}
    schema = make_schema(**kinds)
    changes = read_csv(given["changes"]) if "changes" in given else None
    return FakeVersion(
        number=number,
        previous=given["previousVersion"],
        schema=schema,
        schema_version=given["schemaVersion"],
        change=None,
        rows=snapshot,
        counts=Counts(added=0, changed=0, removed=0),
        reason=None,
        snapshot=write_parquet(schema, snapshot, {RECORD_ID: [*snapshot]}),
        changes=None if changes is None else write_changes(schema, changes),
    )


def write_changes(schema: Schema, rows: list[dict[str, Any]]) -> bytes:
    envelope = {name: [row[name] for row in rows] for name in (OP, CHANGE, RECORD_ID)}
    return write_parquet(schema, by_id(rows), envelope)


def make_data(feed: FakeFeed, event: dict[str, Any]) -> FeedData:
    data = event["data"]
    versions = feed.datasets[SAMPLE].versions
    match event["type"]:
        case "feed.dataset.removed":
            return Removed(dataset_id=SAMPLE, reason=RemovedReason(data["reason"]))
        case "feed.dataset.resync_required":
            return ResyncRequired(
                dataset_id=SAMPLE,
                version=data["version"],
                schema_version=data["schemaVersion"],
                reason=ResyncReason(data["reason"]),
            )
        case "feed.dataset.updated":
            return Updated(
                dataset_id=SAMPLE,
                version=data["version"],
                previous_version=data["previousVersion"],
                schema_version=data["schemaVersion"],
                counts=Counts(added=0, changed=0, removed=0),
            )
        case _:
            version = versions[data["version"]]
            base = versions[version.previous or 0]
            change = compare(base.schema, version.schema, base_version=FIRST)
            assert change is not None
            return SchemaChanged(
                dataset_id=SAMPLE,
                version=version.number,
                schema_version=version.schema_version,
                schema_change=change,
            )


def begin(file: Path, feed: FakeFeed, start: dict[str, Any]) -> None:
    """Bring the destination to where the case begins."""
    number = start["held_version"]
    cursor = start["cursor"]
    with synced.destination(file).session() as session, session.transaction() as transaction:
        if number is not None:
            version = feed.datasets[SAMPLE].versions[number]
            snapshot = file.with_suffix(".parquet")
            snapshot.write_bytes(version.snapshot or b"")
            transaction.load(TABLE, version.schema, snapshot)
            transaction.save(
                Held(
                    dataset_id=SAMPLE,
                    state=State.HELD,
                    version=number,
                    schema_version=version.schema_version,
                    content_digest=version.buckets.content_digest,
                    row_count=len(version.rows),
                    table=TABLE,
                    last_event=EventId(cursor or START),
                )
            )
        if cursor is not None:
            transaction.move(EventId(cursor))
    if "table" in start:
        synced.execute(file, f"DELETE FROM {TABLE}")
        for row in start["table"]:
            cells = ", ".join(f"'{cell}'" for cell in row)
            synced.execute(file, f"INSERT INTO {TABLE} VALUES ({cells})")


@contextmanager
def served(feed: FakeFeed) -> Iterator[tuple[FeedServer, ClientFeed]]:
    with serve(feed) as server, Client(KEY, url=server.url) as client:
        yield server, ClientFeed(client, SUBSCRIPTION)


def assert_end(file: Path, expect: dict[str, Any]) -> None:
    """The table, the version held and the cursor are those that the case names."""
    rows = synced.query(file, f"FROM {TABLE} ORDER BY _ploti_record_id")
    as_text = [[None if cell is None else str(cell) for cell in row] for row in rows]
    assert as_text == expect["table"]
    assert synced.held(file) == {SAMPLE: (expect["held_version"], "held")}
    assert synced.cursor(file) == expect["cursor"]


def run(file: Path, feed: FakeFeed, *faults: Fault) -> tuple[Result, FeedServer]:
    with served(feed) as (server, client_feed):
        server.faults.extend(faults)
        return synced.sync(client_feed, file), server


@pytest.mark.parametrize("cursor", [None, START])
@pytest.mark.parametrize("moment", list(Moment))
def test_D01_killed_at_each_step_it_ends_the_same(  # noqa: N802 - the case's own number
    tmp_path: Path, moment: Moment, cursor: str | None
) -> None:
    given, file = case("D01"), tmp_path / "feeds.duckdb"
    feed = make_feed(given)
    begin(file, feed, {"held_version": None, "cursor": cursor})

    def observe(progress: Progress) -> None:
        if progress.moment is moment:
            raise CrashError

    with suppress(CrashError):
        synced.sync(feed, file, observe=observe)
    for dataset_id, (number, _) in synced.held(file).items():
        assert dataset_id == SAMPLE
        version = feed.datasets[SAMPLE].versions[int(str(number))]
        assert synced.read_table(file, version, TABLE) == synced.expected(version)
    synced.sync(feed, file)
    assert_end(file, given["expect"])


@pytest.mark.parametrize("cursor", [None, START])
def test_D02_a_log_read_again_is_skipped(tmp_path: Path, cursor: str | None) -> None:  # noqa: N802
    given, file = case("D02"), tmp_path / "feeds.duckdb"
    feed = make_feed(given)
    begin(file, feed, given["given"]["start"] | {"cursor": cursor})
    _, server = run(file, feed)
    assert_end(file, given["expect"])
    assert len(server.files_seen()) == given["expect"]["max_downloads"]


@pytest.mark.parametrize("number", ["D03", "D04", "D52"])
def test_D03_D04_D52_end_as_they_say(tmp_path: Path, number: str) -> None:  # noqa: N802
    given, file = case(number), tmp_path / "feeds.duckdb"
    feed = make_feed(given)
    begin(file, feed, given["given"]["start"])
    result, server = run(file, feed)
    assert_end(file, given["expect"])
    loads = {"D03": 1, "D04": 1, "D52": 0}
    assert result.loads == loads[number]
    assert not [path for path in server.files_seen() if path.endswith("7/changes")]


def test_D05_a_damaged_file_is_thrown_away_and_fetched_again(tmp_path: Path) -> None:  # noqa: N802
    given, file = case("D05"), tmp_path / "feeds.duckdb"
    feed = make_feed(given)
    begin(file, feed, given["given"]["start"])
    result, server = run(file, feed, Fault("/files/.*/2/changes", feed_server.damage))
    assert_end(file, given["expect"])
    assert (result.applies, len(server.files_seen())) == (1, 2)


def test_D06_a_link_that_expires_in_mid_download_is_asked_for_anew(  # noqa: N802
    tmp_path: Path,
) -> None:
    given, file = case("D06"), tmp_path / "feeds.duckdb"
    feed = make_feed(given)
    begin(file, feed, given["given"]["start"])
    with served(feed) as (server, client_feed):

        def break_and_expire(handler: feed_server.Handler, body: bytes) -> None:
            feed_server.truncate(handler, body)
            server.expire_links()

        server.faults.append(Fault("/files/.*/3/snapshot", break_and_expire))
        synced.sync(client_feed, file)
    assert_end(file, given["expect"])
    first, *again, last = server.files_seen()
    assert again == [first], "an expired link is not tried twice"
    assert last.startswith("/files/1/")


def test_D13_a_dataset_that_has_left_is_skipped_up_to_its_removed(  # noqa: N802
    tmp_path: Path,
) -> None:
    given, file = case("D13"), tmp_path / "feeds.duckdb"
    feed = make_feed(given)
    begin(file, feed, given["given"]["start"])
    feed.refuse = refuse_all(of=SAMPLE, by=NotSubscribed("no"))
    run(file, feed)
    assert synced.held(file) == {SAMPLE: (None, "removed")}
    assert synced.cursor(file) == given["expect"]["cursor"]


def test_D14_a_column_is_added_once_and_is_no_version(tmp_path: Path) -> None:  # noqa: N802
    given, file = case("D14"), tmp_path / "feeds.duckdb"
    feed = make_feed(given)
    begin(file, feed, given["given"]["start"])
    told: list[Moment] = []

    def observe(progress: Progress) -> None:
        told.append(progress.moment)
        if told.count(Moment.COMMITTED) == 1:
            raise CrashError

    with suppress(CrashError):
        synced.sync(feed, file, observe=observe)
    assert synced.held(file) == {SAMPLE: (1, "held")}
    assert len(synced.query(file, f"DESCRIBE {TABLE}")) == 5
    run(file, feed)
    assert_end(file, given["expect"])
