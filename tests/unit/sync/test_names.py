"""Names that a destination cannot hold get another, once and for good."""

from __future__ import annotations

import pytest

from ploti.sync.names import Limits, fit, fit_columns

POSTGRES = Limits(longest=63, reserved=frozenset({"ctid"}), ignores_case=False)
LONG = "permit_application_reviewing_department_assigned_inspector_remarks"


@pytest.mark.parametrize("name", ["order", "Select", "2nd_review", 'say "hi"', "naïve größe"])
def test_a_name_that_can_be_had_stays(name: str) -> None:
    assert fit(name, POSTGRES) == name


def test_long_names_with_one_beginning_stay_two_names_of_63_bytes() -> None:
    """D07."""
    first, second = (fit(f"{LONG}_{end}", POSTGRES) for end in ("first", "second"))
    assert first != second
    assert {len(first), len(second)} == {63}
    assert fit(f"{LONG}_first", POSTGRES) == first


def test_a_name_is_cut_between_characters_and_counted_in_bytes() -> None:
    found = fit("ß" * 40, POSTGRES)
    assert found.startswith("ß" * 27 + "_")
    assert len(found.encode()) <= 63


def test_what_the_destination_keeps_to_itself_is_given_another_name() -> None:
    assert fit("ctid", POSTGRES) == "ctid_"
    assert fit("SQLite_stat1", Limits(prefixes=("sqlite_", "gpkg_"))) == "t_SQLite_stat1"
    assert fit("a/b", Limits(forbidden="/\0")) == "a_b"
    assert fit("", Limits()) == "unnamed"


def test_names_that_become_one_are_told_apart_and_a_further_column_renames_none() -> None:
    known: dict[str, str] = {}
    for columns in (["STATUS"], ["STATUS", "status"], ["STATUS", "status", "status_2", "Status"]):
        fitted = fit_columns(columns, Limits(), known=known, own=["_ploti_record_id"])
        assert known.items() <= fitted.items()
        known = fitted
    assert known == {"status": "status_2", "status_2": "status_2_2", "Status": "Status_3"}


def test_where_case_matters_both_stay() -> None:
    assert fit_columns(["STATUS", "status"], POSTGRES, known={}, own=[]) == {}
