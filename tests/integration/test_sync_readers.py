"""A reader in a process of its own beside loads, changes and new tables, for every destination."""

from __future__ import annotations

import multiprocessing
import sqlite3
from collections.abc import Callable
from contextlib import closing
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.fakes import synced
from tests.fakes.feed import FakeFeed, make_schema
from tests.fakes.synced import Place

from ploti.errors import ExitStatus
from ploti.model.digest import Cell
from ploti.model.ids import DatasetId
from ploti.model.version import ResyncReason
from ploti.sync.runner import open_run
from ploti.sync.work import Options

PERMITS = DatasetId("ds_permits")
IDS = [f"rec_{number}" for number in range(3_000)]
SCHEMA = make_schema(units="int64")
WIDER = make_schema(units="int64", floors="int64")
RETYPED = make_schema(units="int64", floors="string")
LOOK = "SELECT count(*), min(units), max(units) FROM permits"
PATIENCE = 60.0


def look_by_sqlite(place: str) -> object:
    with closing(sqlite3.connect(place, timeout=PATIENCE)) as plain:
        return plain.execute(LOOK).fetchone()


def look_by_duckdb(place: str) -> object:
    """None while sync is at the file: DuckDB keeps readers out then."""
    try:
        with duckdb.connect(place, read_only=True) as plain:
            return plain.execute(LOOK).fetchone()
    except duckdb.IOException:
        return None


def look_by_pyarrow(place: str) -> object:
    with Path(place, "permits.parquet").open("rb") as file:  # by name it opens it twice
        units = pq.read_table(file, columns=["units"])["units"]
    return (len(units), pc.min(units).as_py(), pc.max(units).as_py())


def look_by_psycopg(place: str) -> object:
    with psycopg.connect(place) as plain:
        return plain.execute(LOOK).fetchone()


LOOKS: dict[str, Callable[[str], object]] = {
    "duckdb": look_by_duckdb,
    "sqlite": look_by_sqlite,
    "gpkg": look_by_sqlite,
    "parquet": look_by_pyarrow,
    "postgresql": look_by_psycopg,
}


def read_on(kind: str, place: str, ready: Event, end: Event, found: Any) -> None:
    """What is seen in one look each, at least once more after the end."""
    seen: set[object] = set()
    ended = False
    while not ended:
        ended = end.is_set()
        try:
            seen.add(LOOKS[kind](place))
        except Exception as error:  # noqa: BLE001 - whatever a reader meets is told
            seen.add(repr(error))
        ready.set()
        end.wait(0.5 if kind == "duckdb" else 0)
    found.put(seen)


def whole(number: int) -> dict[str, dict[str, Cell]]:
    return {each: {"units": number} for each in IDS[: len(IDS) - number]}


def sync(feed: FakeFeed, place: Place) -> ExitStatus:
    destination = synced.destination(place, lock_timeout=PATIENCE)
    with open_run(feed=feed, destination=destination, options=Options()) as run:
        return run.catch_up().exit_status


@pytest.mark.parametrize("kind", LOOKS)
def test_a_reader_never_sees_half_of_a_version(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    place: Place = tmp_path / f"feeds.{kind}"
    if kind == "postgresql":
        place = str(request.getfixturevalue("postgres_url"))
    feed = FakeFeed()
    feed.join(PERMITS)
    feed.release(PERMITS, SCHEMA, whole(0))
    sync(feed, place)
    context = multiprocessing.get_context("spawn")
    ready, end, found = context.Event(), context.Event(), context.Queue()
    given = (kind, str(place), ready, end, found)
    reader = context.Process(target=read_on, args=given, daemon=True)
    reader.start()
    assert ready.wait(PATIENCE)
    for number in range(1, 13):
        reason = ResyncReason.RECORD_IDS_CHANGED if number % 2 else None
        shape = SCHEMA if number < 5 else WIDER if number < 9 else RETYPED
        feed.release(PERMITS, shape, whole(number), reason=reason)
        assert sync(feed, place) is ExitStatus.DONE
    end.set()
    seen = found.get(timeout=PATIENCE)
    reader.join(PATIENCE)
    states = {(len(IDS) - number, number, number) for number in range(13)}
    assert seen <= (states | {None} if kind == "duckdb" else states)
    assert {(len(IDS) - 12, 12, 12)} < seen
