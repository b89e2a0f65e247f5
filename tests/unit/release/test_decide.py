"""The review of a candidate, and the reasons of a resync."""

import itertools
from typing import Any

import pytest

from ploti.model.admin import Finding
from ploti.model.event import HoldReason
from ploti.model.ids import DatasetId, HoldId, MemberId
from ploti.model.schema import (
    AddedColumn,
    Geometry,
    GeometryChange,
    KeyChange,
    Level,
    RetypedColumn,
    Schema,
    SchemaChange,
)
from ploti.model.version import ResyncReason
from ploti.model.wire import Instant
from ploti.server.build.candidate import Base, Candidate, KeyFault
from ploti.server.release.accepted import Accepted
from ploti.server.release.decide import resync_reason, review, schema_version
from ploti.server.sources.declaration import Holds

SCHEMA = Schema(columns=[], key_columns=["id"], geometry=None)


def change(level: Level = Level.MAJOR, **more: Any) -> SchemaChange:
    nothing: dict[str, Any] = {
        **{name: [] for name in ("added", "removed", "nullable", "described", "retyped")},
        "key_columns": None,
        "geometry": None,
    }
    return SchemaChange(from_="1.4", to="2.0", level=level, **(nothing | more))


def base(rows: int = 100) -> Base:
    return Base(
        version=3, schema=SCHEMA, schema_version="1.4", row_count=rows, snapshot="b", buckets=[]
    )


def candidate(rows: int = 100, **more: Any) -> Candidate:
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "schema_change": None,
        "row_count": rows,
        "counts": None,
        "state_digest": "s",
        "content_digest": None,
        "buckets": [],
        "files": [],
        "findings": [],
        "key_fault": None,
    }
    return Candidate(**(found | more))


def reason(built: Candidate, base: Base | None, holds: Holds | None = None) -> HoldReason | None:
    return review(built, base=base, holds=holds or Holds()).reason


def test_a_candidate_without_findings_is_released() -> None:
    verdict = review(candidate(), base=base(), holds=Holds())
    assert (verdict.reason, verdict.findings, verdict.matched) == (None, [], True)


def test_a_major_change_is_held_for_schema_review_and_said_in_words_r073() -> None:
    major = change(
        removed=[AddedColumn(name="kind", type="string")],
        retyped=[RetypedColumn(name="cost", from_="int64", to="float64")],
        key_columns=KeyChange(from_=["id"], to=["id", "year"]),
        geometry=GeometryChange(
            from_=None, to=Geometry(column="geometry", crs="EPSG:4326", types=[])
        ),
    )
    verdict = review(candidate(schema_change=major), base=base(), holds=Holds())
    assert verdict.reason is HoldReason.SCHEMA_REVIEW
    (finding,) = verdict.findings
    assert finding.message == (
        "The schema goes from 1.4 to 2.0: kind is gone; cost was int64, is float64; "
        "the key is id, year; the geometry's column or CRS is another"
    )


def test_a_key_that_is_gone_is_said_so() -> None:
    gone = change(key_columns=KeyChange(from_=["id"], to=[]))
    (finding,) = review(candidate(schema_change=gone), base=base(), holds=Holds()).findings
    assert finding.message.endswith("the key is gone")


def test_a_minor_change_is_released() -> None:
    assert reason(candidate(schema_change=change(Level.MINOR)), base()) is None


@pytest.mark.parametrize(
    ("rows", "expected"), [(70, None), (69, HoldReason.DATA_CHECK), (0, HoldReason.DATA_CHECK)]
)
def test_rows_below_the_ratio_of_the_base_are_held_r074(
    rows: int, expected: HoldReason | None
) -> None:
    assert reason(candidate(rows), base(100)) is expected


@pytest.mark.parametrize(("rows", "expected"), [(19, None), (20, HoldReason.DATA_CHECK)])
def test_a_threshold_needs_twenty_records(rows: int, expected: HoldReason | None) -> None:
    assert reason(candidate(0), base(rows)) is expected


def test_a_dataset_may_set_its_own_ratio_or_none() -> None:
    assert reason(candidate(10), base(100), Holds(min_row_ratio=0.1)) is None
    assert reason(candidate(9), base(100), Holds(min_row_ratio=0.1)) is HoldReason.DATA_CHECK
    assert reason(candidate(0), base(100), Holds(min_row_ratio=None)) is None


def test_a_faulty_key_is_held_also_in_a_first_version_r074() -> None:
    fault = KeyFault(null_rows=2, repeated_keys=1, examples=["a"])
    verdict = review(candidate(key_fault=fault), base=None, holds=Holds(min_row_ratio=None))
    assert (verdict.reason, verdict.matched) == (HoldReason.DATA_CHECK, True)
    (finding,) = verdict.findings
    assert finding.examples == ["a"]
    assert finding.message.endswith("keys that repeat: 1, rows without a key: 2")


def test_what_could_not_be_matched_is_held_for_processing_r075() -> None:
    verdict = review(candidate(unmatched="too many pairs"), base=base(), holds=Holds())
    assert (verdict.reason, verdict.matched) == (HoldReason.PROCESSING, False)
    (finding,) = verdict.findings
    assert finding.message.endswith("too many pairs")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (KeyFault(null_rows=3, repeated_keys=0, examples=[]), "; rows without a key: 3"),
        (KeyFault(null_rows=0, repeated_keys=2, examples=[]), "; keys that repeat: 2"),
    ],
)
def test_only_the_faults_there_are_are_said(fault: KeyFault, said: str) -> None:
    (finding,) = review(candidate(key_fault=fault), base=None, holds=Holds()).findings
    assert finding.message.endswith(said)


def test_a_first_version_is_reviewed_for_its_key_alone() -> None:
    assert reason(candidate(0), None) is None


def test_of_several_reasons_schema_review_is_shown_first() -> None:
    verdict = review(candidate(0, schema_change=change()), base=base(), holds=Holds())
    assert verdict.reason is HoldReason.SCHEMA_REVIEW
    assert [finding.reason for finding in verdict.findings] == [
        HoldReason.SCHEMA_REVIEW,
        HoldReason.DATA_CHECK,
    ]


def test_what_the_build_found_is_kept_and_holds_nothing_by_itself() -> None:
    note = Finding(reason=None, kind="nul", message="3 NULs were cleaned")
    verdict = review(candidate(findings=[note]), base=base(), holds=Holds())
    assert (verdict.reason, verdict.findings) == (None, [note])


def test_the_reason_of_a_resync_is_the_first_that_applies_r051_r052_r053_r055_r057() -> None:
    changes = {
        "none": None,
        "minor": change(Level.MINOR),
        "major": change(),
        "key": change(key_columns=KeyChange(from_=["id"], to=["no"])),
    }
    for name, ids, first, gone in itertools.product(changes, *[(False, True)] * 3):
        applies = {
            ResyncReason.RECORD_IDS_CHANGED: ids,
            ResyncReason.FIRST_VERSION: first,
            ResyncReason.PREVIOUS_UNAVAILABLE: gone and name == "none",
            ResyncReason.KEY_COLUMNS_CHANGED: name == "key",
            ResyncReason.SCHEMA_CHANGED: name == "major" or (gone and name == "minor"),
        }
        expected = next((reason for reason, is_so in applies.items() if is_so), None)
        found = resync_reason(
            changes[name], first=first, ids_changed=ids, previous_unavailable=gone
        )
        assert found is expected, (name, ids, first, gone)


def test_schema_versions_follow_from_the_last_released_one_s12() -> None:
    assert schema_version(None, base=None) == "1.0"
    assert schema_version(None, base=base()) == "1.4"
    assert schema_version(change(), base=base()) == "2.0"


def test_that_records_were_not_matched_is_never_accepted_s26() -> None:
    unmatched = candidate(unmatched="too many pairs")
    (finding,) = review(unmatched, base=base(), holds=Holds()).findings
    accepted = Accepted(
        id="acc_1",
        dataset_id=DatasetId("ds_a"),
        kind=finding.kind,
        subject=finding.subject,
        measure=None,
        message=finding.message,
        hold_id=HoldId("hold_1"),
        accepted_at=Instant.parse("2026-11-30T12:00:00Z"),
        accepted_by=MemberId("mem_1"),
        note=None,
    )
    verdict = review(unmatched, base=base(), holds=Holds(), accepted=[accepted])
    assert verdict.reason is HoldReason.PROCESSING
