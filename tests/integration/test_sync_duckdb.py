"""What is particular to a DuckDB destination."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes import synced
from tests.fakes.feed import FakeFeed, make_schema

from ploti.model.ids import DatasetId
from ploti.sync import engine
from ploti.sync.verify import verify

PERMITS = DatasetId("ds_permits")


def test_rows_that_are_too_wide_for_little_memory_are_loaded_by_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First as a table that is new, then into one that is there."""
    monkeypatch.setattr(engine, "LITTLE", "8MB")
    feed, file = FakeFeed(), tmp_path / "feeds.duckdb"
    feed.join(PERMITS)
    for version in ("1", "2"):
        rows = {f"rec_{number:04}": {"text": f"{number}" * 8_000} for number in range(2_000)}
        feed.release(PERMITS, make_schema(text="string", no="string"), rows | {version: {}})
        feed.prune()
        result = synced.sync(feed, file)
        assert (result.loads, result.datasets[0].reason) == (1, None)
        (found,) = verify(feed, synced.destination(file)).datasets
        assert found.matches, found.detail
    assert sorted(each.name for each in tmp_path.iterdir()) == [file.name, f"{file.name}.lock"]
