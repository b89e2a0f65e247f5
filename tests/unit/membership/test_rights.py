"""What coverage and plans open, and with which answer the rest is refused."""

from collections.abc import Sequence

import pytest
from tests.unit.membership.test_selection import filing

from ploti.errors import NotDeliverable, NotSubscribed, OutsideCoverage
from ploti.model.account import PlanTerms
from ploti.model.event import RemovedReason
from ploti.model.ids import DatasetId
from ploti.model.subscription import Obstacle, Selection
from ploti.server.membership.access import check_catalogue, check_delivered
from ploti.server.membership.rights import EVERYTHING, Rights, opens
from ploti.server.membership.selection import move, obstacle

A = DatasetId("ds_a")
PERMITS = Selection(topics=["permits"])
ELSEWHERE = Rights(coverage=["us/ga"], plan=PlanTerms())
ROADS_ONLY = Rights(coverage=None, plan=PlanTerms(topics=["roads"]))
UNREADABLE = Rights(coverage=None, plan=None)


@pytest.mark.parametrize(
    ("plan", "opened"),
    [
        (PlanTerms(), True),
        (PlanTerms(topics=["permits"]), True),
        (PlanTerms(topics=["roads"]), False),
        (PlanTerms(datasets=[A]), True),
        (PlanTerms(datasets=[DatasetId("ds_b")]), False),
        (PlanTerms(topics=["roads"], datasets=[A]), True),
    ],
)
def test_a_plan_opens_topics_and_datasets_and_everything_by_default_s34_r202(
    plan: PlanTerms, opened: bool
) -> None:
    assert opens(plan, filing()) is opened


@pytest.mark.parametrize(
    ("rights", "deliverable", "selection", "found"),
    [
        (EVERYTHING, True, PERMITS, None),
        (Rights(coverage=["us/fl"], plan=PlanTerms()), True, PERMITS, None),
        (ELSEWHERE, False, Selection(topics=["roads"]), Obstacle.NOT_DELIVERABLE),
        (ELSEWHERE, True, Selection(topics=["roads"]), Obstacle.NOT_MATCHED),
        (
            Rights(coverage=["us/ga"], plan=ROADS_ONLY.plan),
            True,
            PERMITS,
            Obstacle.OUTSIDE_COVERAGE,
        ),
        (ROADS_ONLY, True, PERMITS, Obstacle.OUTSIDE_PLAN),
        (UNREADABLE, True, PERMITS, Obstacle.PLAN_UNREADABLE),
        (Rights(coverage=["us/ga"], plan=None), True, PERMITS, Obstacle.OUTSIDE_COVERAGE),
    ],
)
def test_the_first_obstacle_that_is_true_counts_s33(
    rights: Rights, deliverable: bool, selection: Selection, found: Obstacle | None
) -> None:
    assert obstacle(selection, filing(deliverable=deliverable), rights) is found


@pytest.mark.parametrize(
    ("rights", "deliverable", "selection", "reason"),
    [
        (ELSEWHERE, False, PERMITS, RemovedReason.NO_LONGER_DELIVERABLE),
        (ELSEWHERE, True, Selection(topics=["roads"]), RemovedReason.SUBSCRIPTION_CHANGED),
        (ELSEWHERE, True, PERMITS, RemovedReason.LEFT_COVERAGE),
        (ROADS_ONLY, True, PERMITS, RemovedReason.PLAN_CHANGED),
    ],
)
def test_what_leaves_has_the_reason_of_its_obstacle_r065_to_r069(
    rights: Rights, deliverable: bool, selection: Selection, reason: RemovedReason
) -> None:
    found = move(selection, [filing(deliverable=deliverable)], rights=rights, delivered={A})
    assert (found.joins, found.leaves) == ([], [(A, reason)])


@pytest.mark.parametrize("delivered", [{A}, set()])
def test_a_plan_that_cannot_be_read_changes_nothing_r070_s34(delivered: set[DatasetId]) -> None:
    found = move(PERMITS, [filing()], rights=UNREADABLE, delivered=delivered)
    assert (found.joins, found.leaves, found.unsure) == ([], [], True)


def test_an_unreadable_plan_still_lets_go_what_the_selection_does_not_match() -> None:
    found = move(Selection(topics=["roads"]), [filing()], rights=UNREADABLE, delivered={A})
    assert found.leaves == [(A, RemovedReason.SUBSCRIPTION_CHANGED)]
    assert not found.unsure


@pytest.mark.parametrize(
    ("rights", "deliverable", "subscribed", "refused"),
    [
        ([EVERYTHING], True, True, None),
        ([ELSEWHERE], True, True, None),
        ([EVERYTHING], True, False, NotSubscribed),
        ([UNREADABLE], True, False, NotSubscribed),
        ([ELSEWHERE], True, False, OutsideCoverage),
        ([ROADS_ONLY], True, False, OutsideCoverage),
        ([ELSEWHERE, EVERYTHING], True, False, NotSubscribed),
        ([ELSEWHERE], False, False, NotDeliverable),
    ],
)
def test_the_first_answer_that_is_true_is_given_and_membership_opens_s31_s32(
    rights: Sequence[Rights], deliverable: bool, subscribed: bool, refused: type[Exception] | None
) -> None:
    asked = filing(deliverable=deliverable)
    if refused is None:
        check_delivered(asked, rights, subscribed=subscribed)
        return
    with pytest.raises(refused):
        check_delivered(asked, rights, subscribed=subscribed)


def test_the_catalogue_needs_coverage_and_plan_and_no_subscription_s30() -> None:
    check_catalogue(filing(), [EVERYTHING], subscribed=False)
    check_catalogue(filing(), [UNREADABLE], subscribed=False)
    with pytest.raises(OutsideCoverage, match="coverage"):
        check_catalogue(filing(), [ELSEWHERE], subscribed=False)
    with pytest.raises(OutsideCoverage, match="plan"):
        check_catalogue(filing(), [ROADS_ONLY], subscribed=False)
