"""The cheaper of two right ways, judged over all versions ahead."""

from __future__ import annotations

import pytest
from tests.fakes.feed import FakeFeed, make_schema

from ploti.model.ids import DatasetId
from ploti.model.version import ResyncReason, Version, VersionSummary
from ploti.sync.costs import GRACE, Weights, is_dearer

D = DatasetId("ds_a")
SCHEMA = make_schema(no="string")
FREE = Weights(step=0, change=0, table=0)


@pytest.fixture
def feed() -> FakeFeed:
    feed = FakeFeed()
    feed.join(D)
    for number in range(4):
        feed.release(D, SCHEMA, {f"rec_{each}": {"no": str(each)} for each in range(number)})
    return feed


def ways(feed: FakeFeed) -> tuple[list[VersionSummary], Version]:
    return feed.versions(D, after=1), feed.version(D, 4)


def test_each_part_of_the_cost_can_make_the_chain_the_dearer_way(feed: FakeFeed) -> None:
    ahead, current = ways(feed)
    assert not is_dearer(ahead, current, FREE)
    assert is_dearer(ahead, current, Weights(step=GRACE, change=0, table=0))
    assert is_dearer(ahead, current, Weights(step=0, change=GRACE, table=0))
    assert is_dearer(ahead, current, Weights(step=0, change=0, table=GRACE))


def test_two_small_versions_are_applied_and_ninety_are_loaded_over(feed: FakeFeed) -> None:
    ahead, current = ways(feed)
    assert not is_dearer(ahead[:2], current, Weights())
    assert is_dearer(ahead * 30, current, Weights())


def test_a_version_that_is_to_be_loaded_makes_the_chain_dearer_than_anything(
    feed: FakeFeed,
) -> None:
    feed.release(D, SCHEMA, {}, reason=ResyncReason.PREVIOUS_UNAVAILABLE)
    assert is_dearer(feed.versions(D, after=3), feed.version(D, 5), FREE)


def test_a_snapshot_that_is_not_kept_is_never_the_cheaper_way(feed: FakeFeed) -> None:
    feed.forget_file(D, 4, "snapshot")
    ahead, current = ways(feed)
    assert not is_dearer(ahead, current, Weights(step=GRACE))
