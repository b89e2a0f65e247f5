"""Names that are hard to hold, in a PostgreSQL database as in a shell."""

from __future__ import annotations

from tests.fakes import synced
from tests.fakes.feed import FakeFeed, make_schema

from ploti.errors import ExitStatus
from ploti.model.ids import DatasetId

SCHEMA = make_schema(no="string", units="int64")
RETYPED = make_schema(no="string", units="string")


def test_tables_whose_long_names_begin_alike_are_made_anew(postgres_url: str) -> None:
    """Their keys, which PostgreSQL cuts to 63 bytes, would have one name."""
    series = "building_permits_of_orange_county_issued_and_finaled_in_"
    years = [DatasetId(f"ds_{series}{year}") for year in (2024, 2025)]
    feed = FakeFeed()
    for each in years:
        feed.join(each)
        feed.release(each, SCHEMA, {"rec_a": {"no": "a", "units": 1}})
    assert synced.sync(feed, postgres_url).exit_status is ExitStatus.DONE
    for _ in range(2):
        for schema, cell in ((RETYPED, "many"), (SCHEMA, 1)):
            for each in years:
                feed.release(each, schema, {"rec_a": {"no": "a", "units": cell}})
            result = synced.sync(feed, postgres_url)
            assert result.exit_status is ExitStatus.DONE, result
