"""What a version's measures against its base say, and what was accepted before."""

from typing import Any

import pytest
from tests.unit.release.test_decide import base, candidate

from ploti.model.admin import Finding
from ploti.model.event import HoldReason
from ploti.model.ids import DatasetId, HoldId, MemberId
from ploti.model.version import Counts
from ploti.model.wire import Instant
from ploti.server.build.measures import Measures
from ploti.server.release.accepted import Accepted, with_accepted
from ploti.server.release.decide import review
from ploti.server.release.thresholds import measured
from ploti.server.sources.declaration import Holds

Box = tuple[float, float, float, float]


def kinds(rows: int = 100, *, holds: Holds | None = None, of: int = 100, **more: Any) -> list[str]:
    built = candidate(rows, **more)
    return [each.kind for each in measured(built, base=base(of), holds=holds or Holds())]


def gone(removed: int) -> Counts:
    return Counts(added=removed, changed=0, removed=removed)


def filled(before: int, after: int, *, rows: int = 100) -> dict[str, Measures]:
    return {
        "before": Measures(rows=rows, filled={"id": rows, "cost": before}, box=None),
        "after": Measures(rows=rows, filled={"id": rows, "cost": after}, box=None),
    }


def boxes(before: Box | None, after: Box | None, *, rows: int = 100) -> dict[str, Measures]:
    return {
        "before": Measures(rows=rows, filled={}, box=before),
        "after": Measures(rows=rows, filled={}, box=after),
    }


@pytest.mark.parametrize(
    ("removed", "of", "held"), [(50, 100, False), (51, 100, True), (19, 19, False), (11, 20, True)]
)
def test_ids_that_turn_over_wholesale_hold_r074(removed: int, of: int, *, held: bool) -> None:
    assert ("id_turnover" in kinds(of, of=of, counts=gone(removed))) is held
    off = Holds(max_id_turnover=None)
    assert kinds(of, of=of, counts=gone(removed), holds=off) == []


@pytest.mark.parametrize(
    ("before", "after", "held"),
    [(100, 51, False), (100, 50, True), (40, 20, True), (40, 21, False), (19, 0, False)],
)
def test_a_filled_column_that_empties_holds(before: int, after: int, *, held: bool) -> None:
    assert ("emptied" in kinds(**filled(before, after))) is held
    assert kinds(**filled(before, after), holds=Holds(min_filled_ratio=None)) == []


def test_the_finding_names_the_column_and_the_shares() -> None:
    (finding,) = measured(candidate(**filled(80, 8)), base=base(), holds=Holds())
    assert finding.subject == "cost"
    assert finding.message == "cost has values in 8.0% of the rows, where 80.0% had one"


@pytest.mark.parametrize(
    ("after", "held"),
    [
        ((0, 0, 20, 5), False),
        ((0, 0, 20.1, 5), True),
        ((-10.1, 0, 10, 5), True),
        ((0, -10.1, 10, 5), True),
        ((0, 0, 10, 15.1), True),
        ((2, 2, 3, 3), False),
        (None, False),
    ],
)
def test_an_extent_that_leaves_the_one_before_by_more_than_its_size_holds(
    after: Box | None, *, held: bool
) -> None:
    found = boxes((0, 0, 10, 5), after)
    assert ("extent_shift" in kinds(**found)) is held
    assert kinds(**found, holds=Holds(max_extent_shift=None)) == []
    assert kinds(**boxes((0, 0, 10, 5), after, rows=19)) == []


def test_one_place_has_no_size_to_stray_by() -> None:
    assert kinds(**boxes((1, 1, 1, 1), (0, 0, 5, 5))) == []


def test_a_first_version_passes_all_thresholds() -> None:
    assert measured(candidate(3, **filled(100, 1)), base=None, holds=Holds()) == []


def found(kind: str = "id_turnover", measure: float | None = 0.6, subject: str = "") -> Finding:
    reason = HoldReason.DATA_CHECK
    return Finding(reason=reason, kind=kind, subject=subject, message="m", measure=measure)


def accepted(finding: Finding) -> Accepted:
    return Accepted(
        id="acc_1",
        dataset_id=DatasetId("ds_a"),
        kind=finding.kind,
        subject=finding.subject,
        measure=finding.measure,
        message=finding.message,
        hold_id=HoldId("hold_1"),
        accepted_at=Instant.parse("2026-11-30T00:00:00Z"),
        accepted_by=MemberId("mem_1"),
        note=None,
    )


@pytest.mark.parametrize(
    ("before", "now", "holds"),
    [
        (found(), found(measure=0.66), False),
        (found(), found(measure=0.67), True),
        (found("few_rows", 500), found("few_rows", 450), False),
        (found("few_rows", 500), found("few_rows", 449), True),
        (found("emptied", 0.1, "cost"), found("emptied", 0.095, "cost"), False),
        (found("emptied", 0.1, "cost"), found("emptied", 0.1, "zip"), True),
        (found("schema_major", None, "a is gone"), found("schema_major", None, "a is gone"), False),
        (found("schema_major", None, "a is gone"), found("schema_major", None, "b is gone"), True),
    ],
)
def test_an_accepted_finding_holds_only_where_it_is_worse(
    before: Finding, now: Finding, *, holds: bool
) -> None:
    (judged,) = with_accepted([now], [accepted(before)])
    assert (judged.reason is not None, judged.accepted) == (holds, not holds)


def test_a_candidate_whose_findings_are_all_accepted_is_released() -> None:
    built = candidate(counts=gone(60))
    assert review(built, base=base(), holds=Holds()).reason is HoldReason.DATA_CHECK
    verdict = review(built, base=base(), holds=Holds(), accepted=[accepted(found())])
    assert verdict.reason is None
    assert [each.accepted for each in verdict.findings] == [True]
