"""Sync into a DuckDB file, read back by plain DuckDB."""

from pathlib import Path

from tests.fakes import synced
from tests.fakes.feed import FakeFeed, make_schema

from ploti.errors import ExitStatus
from ploti.model.ids import DatasetId

PERMITS = DatasetId("ds_permits")
SCHEMA = make_schema(key=["no"], no="string", units="int64")


def rows(**units: int | None) -> dict[str, dict[str, object]]:
    return {f"rec_{name}": {"no": name, "units": each} for name, each in units.items()}


def test_a_first_run_loads_what_the_manifest_names_and_later_ones_apply_changes(
    tmp_path: Path,
) -> None:
    feed, file = FakeFeed(), tmp_path / "feeds.duckdb"
    feed.join(PERMITS)
    feed.release(PERMITS, SCHEMA, rows(a=1, b=2))
    result = synced.sync(feed, file)
    assert (result.exit_status, result.loads, result.applies) == (ExitStatus.DONE, 1, 0)
    version = feed.release(PERMITS, SCHEMA, rows(a=1, b=3, c=None))
    result = synced.sync(feed, file)
    assert (result.loads, result.applies) == (0, 1)
    assert synced.read_table(file, version, "permits") == synced.expected(version)
    assert synced.held(file) == {PERMITS: (2, "held")}
    assert synced.cursor(file) == "evt_000000000003"
