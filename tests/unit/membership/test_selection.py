"""What selections take in, and what a change of them does."""

import pytest

from ploti.errors import Forbidden, InvalidInput
from ploti.model.event import RemovedReason
from ploti.model.ids import DatasetId, KeyId, MemberId, WorkspaceId
from ploti.model.subscription import Selection
from ploti.server.membership.principal import Principal, require
from ploti.server.membership.rights import EVERYTHING, Filing, takes_in
from ploti.server.membership.selection import checked, matches, move

A, B, C = DatasetId("ds_a"), DatasetId("ds_b"), DatasetId("ds_c")


def filing(
    dataset: DatasetId = A,
    *,
    place: str = "us/fl/orange",
    topic: str = "permits/building",
    deliverable: bool = True,
) -> Filing:
    return Filing(dataset_id=dataset, place=place, topic=topic, deliverable=deliverable)


@pytest.mark.parametrize(
    ("listed", "path", "taken"),
    [
        ("us", "us", True),
        ("us", "us/fl", True),
        ("us/fl", "us/fl/orange", True),
        ("us/fl", "us", False),
        ("us/fl", "us/flagler", False),
    ],
)
def test_a_listed_path_takes_in_all_below_it(listed: str, path: str, taken: bool) -> None:
    assert takes_in(listed, path) is taken


@pytest.mark.parametrize(
    ("selection", "matched"),
    [
        (Selection(datasets=[A]), True),
        (Selection(datasets=[B]), False),
        (Selection(places=["us/fl"]), True),
        (Selection(places=["us/ga"]), False),
        (Selection(topics=["permits"]), True),
        (Selection(topics=["roads"]), False),
        (Selection(places=["us/ga", "us"], topics=["roads", "permits"]), True),
        (Selection(places=["us"], topics=["roads"]), False),
        (Selection(places=["us/ga"], topics=["permits"]), False),
        (Selection(places=["us/ga"], datasets=[A]), True),
        (Selection(), False),
    ],
)
def test_a_dataset_matches_by_name_or_by_place_and_topic_s35_r203(
    selection: Selection, matched: bool
) -> None:
    assert matches(selection, filing()) is matched


def test_a_change_joins_and_leaves_by_dataset_id_with_the_first_reason_s33() -> None:
    filings = [
        filing(C),
        filing(A, deliverable=False),
        filing(B, topic="roads"),
        filing(DatasetId("ds_e")),
        filing(DatasetId("ds_d")),
        filing(DatasetId("ds_f"), topic="roads"),
    ]
    found = move(Selection(topics=["permits"]), filings, rights=EVERYTHING, delivered={A, B, C})
    assert found.joins == ["ds_d", "ds_e"]
    assert found.leaves == [
        (A, RemovedReason.NO_LONGER_DELIVERABLE),
        (B, RemovedReason.SUBSCRIPTION_CHANGED),
    ]


def test_an_entry_that_stands_twice_is_kept_once() -> None:
    selection = Selection(places=["us", "us"], topics=["roads"], datasets=[B, A, B])
    assert checked(selection) == Selection(places=["us"], topics=["roads"], datasets=[B, A])


@pytest.mark.parametrize(
    ("selection", "field"),
    [
        (Selection(), "datasets"),
        (Selection(places=["US"]), "places"),
        (Selection(topics=["permits/"]), "topics"),
        (Selection(datasets=[DatasetId("permits")]), "datasets"),
    ],
)
def test_a_selection_that_cannot_be_meant_is_refused_by_field(
    selection: Selection, field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked(selection)
    assert [fault.field for fault in refused.value.errors] == [field]


def test_every_fault_of_a_selection_is_named() -> None:
    with pytest.raises(InvalidInput) as refused:
        checked(Selection(places=["US", "us"], topics=["#"]))
    assert [fault.field for fault in refused.value.errors] == ["places", "topics"]


def test_a_key_without_a_permission_is_told_which_one_r168() -> None:
    principal = Principal(
        workspace_id=WorkspaceId("ws_1"),
        member_id=MemberId("mem_1"),
        key_id=KeyId("key_1"),
        permissions=frozenset({"webhooks"}),
    )
    require(principal, "webhooks")
    with pytest.raises(Forbidden, match="'feeds'"):
        require(principal, "feeds")


def test_a_selection_up_to_its_bounds_is_taken() -> None:
    wide = Selection(
        datasets=[DatasetId(f"ds_{number}") for number in range(1_000)], places=["a" * 200]
    )
    assert checked(wide) == wide
