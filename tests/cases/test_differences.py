"""Cases of groups B and C: two states of a dataset, and what is counted between them."""

from pathlib import Path
from typing import Any

import pytest
from tests.cases.cases import FOLDER, case
from tests.fakes.builds import Builds, declare

from ploti.model.event import HoldReason
from ploti.model.version import ResyncReason
from ploti.server.build.candidate import BuildResult, Candidate, FileRole, Unchanged
from ploti.server.release.decide import resync_reason, review
from ploti.server.sources.declaration import Holds


class Steps:
    """A case's state before, built, and then the one after."""

    def __init__(self, number: str, folder: Path, **settings: Any) -> None:
        self.expect: dict[str, Any] = case(number)["expect"]
        given = case(number)["given"]
        self.declaration = declare(
            key=given["key"] or [],
            columns=given.get("types", {}),
            trim=given.get("trim_text", False),
            **({"ignore_changes": given.get("ignore_in_comparison", [])} | settings),
        )
        self.builds = Builds(
            folder, self.declaration, schema_version=given.get("previous_schema_version", "1.0")
        )
        first = self.builds.build(FOLDER / given["previous"])
        assert isinstance(first, Candidate), first
        self.ids = {row["_ploti_record_id"] for row in self.builds.rows(first)}
        self.result: BuildResult = self.builds.build(FOLDER / given["next"])

    @property
    def candidate(self) -> Candidate:
        assert isinstance(self.result, Candidate), self.result
        return self.result

    def reason(self) -> HoldReason | None:
        """Why the version is held."""
        return review(self.candidate, base=self.builds.base, holds=Holds()).reason

    def kept_ids(self) -> bool:
        """Whether the next version has the records of the one before, and no other."""
        return {row["_ploti_record_id"] for row in self.builds.rows(self.result)} == self.ids

    def counts(self) -> dict[str, int]:
        counts = self.candidate.counts
        assert counts is not None
        return {name: getattr(counts, name) for name in ("added", "changed", "removed")}


@pytest.mark.parametrize("number", ["B02", "B03", "B52"])
def test_what_is_only_written_otherwise_is_no_change(number: str, tmp_path: Path) -> None:
    """B02 rows and columns in another order, B03 quoting, B52 names with outer blanks."""
    assert isinstance(Steps(number, tmp_path).result, Unchanged)


@pytest.mark.parametrize("number", ["B05", "B08", "B10", "B55"])
def test_only_what_is_another_value_is_counted(number: str, tmp_path: Path) -> None:
    """B05 empty fields, B08 a stamp that moves, B10 `12.0` for 12, B55 empty texts of JSON."""
    steps = Steps(number, tmp_path)
    assert steps.counts() == steps.expect["counts"]
    assert steps.builds.changed_keys(steps.result)["changed"] == steps.expect["changed_keys"]


def test_b01_numbers_are_the_same_up_to_the_last_bit(tmp_path: Path) -> None:
    steps = Steps("B01", tmp_path, compare={"fee": 1e-9, "area": 1e-9})
    assert steps.counts() == steps.expect["counts"]
    assert steps.builds.changed_keys(steps.result)["changed"] == steps.expect["changed_keys"]


def test_b04_outer_blanks_are_no_content_where_values_are_trimmed(tmp_path: Path) -> None:
    steps = Steps("B04", tmp_path)
    assert steps.counts() == steps.expect["counts"]
    found = steps.builds.changed_keys(steps.result)
    assert (found["changed"], found["added"]) == (["BP-002"], ["BP-004"])


def test_b07_permits_that_were_all_renumbered_keep_their_ids(tmp_path: Path) -> None:
    steps = Steps("B07", tmp_path)
    assert steps.counts() == {"added": 0, "changed": 40, "removed": 0}
    assert steps.kept_ids()


def test_b08_without_the_setting_every_record_is_changed(tmp_path: Path) -> None:
    steps = Steps("B08", tmp_path, ignore_changes=[])
    assert steps.counts() == {"added": 0, "changed": 50, "removed": 0}
    (hint,) = [each for each in steps.candidate.findings if each.kind == "one_column"]
    assert (hint.subject, hint.measure) == ("last_update", 48)


def test_b08_the_new_stamp_travels_with_what_changed(tmp_path: Path) -> None:
    steps = Steps("B08", tmp_path)
    changes = steps.builds.rows(steps.result, FileRole.CHANGES)
    stamps = [row["last_update"] for row in changes]
    assert len(stamps) == 2
    assert len(set(stamps)) == 1


def test_b11_equal_rows_are_counted_and_each_is_a_record(tmp_path: Path) -> None:
    steps = Steps("B11", tmp_path)
    assert steps.counts() == steps.expect["counts"]
    assert len({row["_ploti_record_id"] for row in steps.builds.rows(steps.result)}) == 4


def test_b58_a_row_number_in_every_row_is_ignored_where_it_is_said(tmp_path: Path) -> None:
    steps = Steps("B58", tmp_path)
    assert steps.counts() == steps.expect["counts"]
    assert steps.builds.changed_keys(steps.result)["added"] == steps.expect["added_keys"]


@pytest.mark.parametrize("number", ["C05", "C55"])
def test_a_state_without_the_key_is_held_for_its_schema(number: str, tmp_path: Path) -> None:
    """C05 the key's column is gone, C55 it is written in other letters beside a new one."""
    steps = Steps(number, tmp_path)
    change = steps.candidate.schema_change
    assert steps.reason() is HoldReason.SCHEMA_REVIEW
    assert change is not None
    assert [column.name for column in change.removed] == steps.builds.declaration.key
    assert resync_reason(change, first=False) is ResyncReason.KEY_COLUMNS_CHANGED
    assert steps.kept_ids()


def test_c03_and_c01_are_held_for_their_schema(tmp_path: Path) -> None:
    for number in ("C01", "C03"):
        (tmp_path / number).mkdir()
        assert Steps(number, tmp_path / number).reason() is HoldReason.SCHEMA_REVIEW


def test_b06_a_key_that_repeats_is_a_fault_with_examples(tmp_path: Path) -> None:
    steps = Steps("B06", tmp_path)
    fault = steps.candidate.key_fault
    assert steps.reason() is HoldReason.DATA_CHECK
    assert fault is not None
    assert fault.repeated_keys == 1
    assert any("BP-2" in example for example in fault.examples)


def test_b09_where_a_ring_begins_and_how_it_turns_is_no_content(tmp_path: Path) -> None:
    """P4 became a geometry of another type, P5 a line that runs back, P6 moved."""
    steps = Steps("B09", tmp_path)
    assert steps.builds.changed_keys(steps.result)["changed"] == ["P4", "P5", "P6"]
    assert steps.counts() == {"added": 0, "changed": 3, "removed": 0}


def test_b10_a_column_of_whole_numbers_stays_one_beside_a_blank(tmp_path: Path) -> None:
    candidate = Steps("B10", tmp_path).candidate
    assert candidate.schema.column("units").type == "int64"
    assert candidate.schema_change is not None
    assert (candidate.schema_change.level, candidate.schema_change.nullable) == ("MINOR", ["units"])


@pytest.mark.parametrize("number", ["C01", "C02", "C03", "C07", "C52"])
def test_a_schema_change_has_its_level_and_its_number(number: str, tmp_path: Path) -> None:
    """C01 a renamed column, C02 and C52 a new one, C03 a retyped one, C07 a first null."""
    steps = Steps(number, tmp_path)
    change = steps.candidate.schema_change
    assert change is not None
    assert (change.from_, change.to) == ("2.1", steps.expect["next_schema_version"])
    assert change.level == steps.expect["change"]
    if "counts" in steps.expect:
        assert steps.counts() == steps.expect["counts"]


def test_c01_a_renamed_column_is_one_removed_and_one_added(tmp_path: Path) -> None:
    change = Steps("C01", tmp_path).candidate.schema_change
    assert change is not None
    assert [column.name for column in change.removed] == ["owner"]
    assert [column.name for column in change.added] == ["owner_name"]


def test_c03_a_retyped_column_loses_no_value(tmp_path: Path) -> None:
    steps = Steps("C03", tmp_path)
    change = steps.candidate.schema_change
    assert change is not None
    (retyped,) = change.retyped
    assert (retyped.name, retyped.from_, retyped.to) == ("units", "int64", "string")
    assert None not in [row["units"] for row in steps.builds.rows(steps.result)]
    assert [finding.kind for finding in steps.candidate.findings] == ["likely_null_values"]
