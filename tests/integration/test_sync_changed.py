"""`ploti.feeds.changes` and `ploti.feeds.table`: records for those who keep them by themselves."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.contract.test_destinations import EXTREMES
from tests.fakes.feed import SUBSCRIPTION, FakeFeed, FakeVersion, make_schema, refuse_all
from tests.fakes.feed_server import KEY, FeedServer, serve

from ploti.client.connection import Client
from ploti.errors import ConfigError, Expired, NotSubscribed, SyncError
from ploti.model.digest import Cell
from ploti.model.ids import DatasetId, EventId
from ploti.model.version import ResyncReason
from ploti.sync.changed import Emptied, Item, changed_records
from ploti.sync.feeds import Feeds

PERMITS, PARCELS = DatasetId("ds_permits"), DatasetId("ds_parcels")
SCHEMA = make_schema(no="string", units="int64")
SHAPES = make_schema(no="string", units="int64", at="geometry")
POINT = bytes.fromhex("010100000000000000006054C00000000000403C40")

Kept = dict[DatasetId, dict[str, Mapping[str, object]]]


def rows(**units: int | None) -> dict[str, dict[str, object]]:
    return {f"rec_{name}": {"no": name, "units": each} for name, each in units.items()}


@pytest.fixture
def feed() -> FakeFeed:
    feed = FakeFeed()
    for each in (PERMITS, PARCELS):
        feed.join(each)
        feed.release(each, SCHEMA, rows(a=1, b=2))
    return feed


def keep(kept: Kept, items: Iterable[Item], cursor: EventId | None = None) -> EventId | None:
    """Apply items as the documentation says; gives the cursor to store."""
    for item in items:
        records = kept.setdefault(item.dataset_id, {})
        if isinstance(item, Emptied):
            records.clear()
        elif item.record is None:
            records.pop(item.record_id, None)
        else:
            records[item.record_id] = item.record
        cursor = item.cursor
    return cursor


def current(feed: FakeFeed) -> Kept:
    def version(dataset_id: DatasetId) -> FakeVersion:
        dataset = feed.datasets[dataset_id]
        return dataset.versions[dataset.current or 0]

    return {
        each: {key: dict(row) for key, row in version(each).rows.items()}
        for each, dataset in feed.datasets.items()
        if dataset.member
    }


def history(feed: FakeFeed) -> None:
    feed.release(PERMITS, SCHEMA, rows(a=1, b=3, c=4))
    feed.release(PERMITS, SCHEMA, rows(b=3))
    feed.release(PARCELS, SCHEMA, rows(x=1), reason=ResyncReason.RECORD_IDS_CHANGED)
    feed.leave(PARCELS)
    feed.release(PARCELS, SCHEMA, rows(x=2, y=None))
    feed.join(PARCELS)
    feed.release(PERMITS, make_schema(no="string", units="int64", floors="int64"), {
        "rec_b": {"no": "b", "units": 3, "floors": 7}
    })  # fmt: skip


def test_from_nothing_and_from_a_cursor_it_ends_at_the_current_versions(feed: FakeFeed) -> None:
    kept: Kept = {}
    cursor = keep(kept, changed_records(feed, None))
    assert kept == current(feed)
    history(feed)
    cursor = keep(kept, changed_records(feed, cursor))
    assert kept == current(feed)
    assert list(changed_records(feed, cursor)) == []
    anew: Kept = {}
    assert keep(anew, changed_records(feed, None)) == cursor
    assert anew == kept


def test_broken_off_anywhere_it_goes_on_from_the_cursor_stored_last(feed: FakeFeed) -> None:
    """R-142: an event is repeated, and none is lost."""
    kept: Kept = {}
    cursor = keep(kept, changed_records(feed, None))
    history(feed)
    while items := list(islice(changed_records(feed, cursor), 3)):
        at = keep(kept, items)
        if at == cursor:  # three records were not the whole of an event
            at = keep(kept, changed_records(feed, cursor))
        cursor = at
    assert kept == current(feed)


def test_changes_that_are_not_kept_any_more_empty_the_dataset_and_give_it_anew(
    feed: FakeFeed,
) -> None:
    kept: Kept = {}
    cursor = keep(kept, changed_records(feed, None))
    history(feed)
    feed.forget_file(PERMITS, 2, "changes")
    items = list(changed_records(feed, cursor))
    keep(kept, items)
    assert kept == current(feed)
    emptied = [each for each in items if isinstance(each, Emptied)]
    assert (emptied[0].dataset_id, emptied[0].reason) == (PERMITS, "previous_unavailable")


def test_a_dataset_that_has_left_meanwhile_is_passed_over_up_to_its_removed(
    feed: FakeFeed,
) -> None:
    """R-141."""
    cursor = keep({}, changed_records(feed, None))
    feed.release(PERMITS, SCHEMA, rows(a=9))
    feed.leave(PERMITS)
    feed.refuse = refuse_all(of=PERMITS, by=NotSubscribed("gone"))
    (item,) = changed_records(feed, cursor)
    assert isinstance(item, Emptied)
    assert (item.version, item.reason) == (None, "subscription_changed")


def test_a_dataset_that_leaves_right_after_the_manifest_keeps_no_other_back(
    feed: FakeFeed,
) -> None:
    """R-141."""
    feed.refuse = refuse_all(of=PERMITS, by=NotSubscribed("gone"))
    found = list(changed_records(feed, None))
    assert found
    assert PERMITS not in {each.dataset_id for each in found}


def test_a_cursor_past_retention_is_told(feed: FakeFeed) -> None:
    """R-134."""
    cursor = keep({}, changed_records(feed, None))
    history(feed)
    feed.prune()
    with pytest.raises(Expired):
        next(changed_records(feed, cursor))


@pytest.fixture
def server() -> Iterator[FeedServer]:
    feed = FakeFeed()
    feed.join(PERMITS)
    feed.release(PERMITS, SHAPES, {"rec_a": {"no": "a", "units": 2**60 + 1, "at": POINT}})
    feed.release(PERMITS, SHAPES, {"rec_a": {"no": "a", "at": POINT}, "rec_b": {"no": "b"}})
    with serve(feed) as server:
        yield server


def test_tables_for_other_libraries_keep_their_values(
    server: FeedServer,
) -> None:
    with Client(KEY, url=server.url) as client:
        feeds = Feeds(client)
        first, changes = feeds.table(PERMITS, 1), feeds.table(PERMITS, 2, file="changes")
        assert len(list(feeds.changes(SUBSCRIPTION))) == 3
        assert len(feeds.table(PERMITS).arrow) == 2
    assert isinstance(first.arrow, pa.Table)
    assert first.pandas()["units"].to_list() == [2**60 + 1]
    assert changes.pandas()["_ploti_change"].to_list() == ["added", "changed"]
    frame = first.geopandas()
    assert frame.geometry.to_wkt().to_list() == ["POINT (-81.5 28.25)"]
    assert frame.crs is not None
    assert first.polars().schema["units"] == pl.Int64
    assert changes.polars()["_ploti_change"].to_list() == ["added", "changed"]


@pytest.mark.parametrize("library", ["polars", "pandas"])
@pytest.mark.parametrize(("kind", "values"), [pytest.param(*each, id=each[0]) for each in EXTREMES])
def test_values_at_the_edges_of_their_type_are_the_same_in_other_libraries(
    kind: str, values: list[Cell], library: str
) -> None:
    """A geometry is WKB there."""
    feed = FakeFeed()
    feed.join(PERMITS)
    rows = {f"rec_{number:02}": {"value": each} for number, each in enumerate(values)}
    feed.release(PERMITS, make_schema(value=kind), rows | {"rec_null": {}})
    with serve(feed) as server, Client(KEY, url=server.url) as client:
        frame = getattr(Feeds(client).table(PERMITS), library)()
    found = frame["value"].to_list()
    assert [None if each is pd.NA else each for each in found] == [*values, None]


def test_a_geometry_may_be_called_so_and_stays_where_it_is() -> None:
    """As it is called in most datasets, by GeoPandas too."""
    feed = FakeFeed()
    feed.join(PERMITS)
    schema = make_schema(no="string", geometry="geometry", units="int64")
    feed.release(PERMITS, schema, {"rec_a": {"no": "a", "geometry": POINT}, "rec_b": {"no": "b"}})
    with serve(feed) as server, Client(KEY, url=server.url) as client:
        frame = Feeds(client).table(PERMITS).geopandas()
    assert [each and each.wkt for each in frame.geometry] == ["POINT (-81.5 28.25)", None]
    assert frame.columns.to_list()[:4] == ["_ploti_record_id", "no", "geometry", "units"]
    assert frame.crs is not None


def test_a_schema_is_no_table(server: FeedServer) -> None:
    with (
        Client(KEY, url=server.url) as client,
        pytest.raises(ConfigError, match=r"take datasets\.schema"),
    ):
        Feeds(client).table(PERMITS, file="schema")


def test_a_table_without_geometry_is_none_for_geopandas(feed: FakeFeed) -> None:
    with serve(feed) as server, Client(KEY, url=server.url) as client:
        table = Feeds(client).table(PERMITS)
    with pytest.raises(SyncError, match="no geometry"):
        table.geopandas()


@pytest.mark.parametrize("library", ["pandas", "polars", "geopandas"])
def test_a_form_whose_library_is_not_there_says_what_to_install(
    library: str, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Client(KEY, url=server.url) as client:
        table = Feeds(client).table(PERMITS)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ConfigError, match=f"^{library} is not installed: pip install {library} "):
        getattr(table, library)()
