"""What people see: aligned, whole, and free of what would steer their terminal."""

import pytest

from ploti.cli.output import print_fields, print_line, print_table, say_counts, text, transfer
from ploti.model.version import Counts
from ploti.model.wire import Instant


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        ("", "-"),
        (True, "yes"),
        (False, "no"),
        (1234567, "1,234,567"),
        ([], "-"),
        (["a", "b"], "a, b"),
        (Instant.parse("2026-10-18T06:13:02Z"), "2026-10-18T06:13:02.000Z"),
        ("Straße 東京", "Straße 東京"),
        ("red \x1b[31m alert\x07\nnext", "red  [31m alert  next"),
        ("right \u202eto left", "right  to left"),
    ],
    ids=str,
)
def test_a_value_is_shown_on_one_line_and_steers_nothing(value: object, shown: str) -> None:
    assert text(value) == shown


def test_a_table_is_aligned_and_nothing_is_cut_off(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["id", "rows"], [["ds_" + "x" * 100, 5], ["ds_b", 12345]], empty="None.")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ID".ljust(105) + "ROWS"
    assert lines[2] == "ds_b".ljust(105) + "12,345"


def test_a_table_without_rows_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["id"], [], empty="No datasets.")
    assert capsys.readouterr().out == "No datasets.\n"


def test_fields_that_are_none_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    print_fields({"id": "ds_a", "current version": None, "rows": 0})
    assert capsys.readouterr().out == "id    ds_a\nrows  0\n"


def test_a_line_leaves_out_what_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    print_line("evt_1", "", "x")
    assert capsys.readouterr().out == "evt_1  x\n"


def test_counts_are_few_signs() -> None:
    assert say_counts(Counts(added=2130, changed=12396, removed=2875)) == "+2,130 ~12,396 -2,875"
    assert say_counts(None) is None


def test_there_is_no_progress_bar_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with transfer("sending", then="building", quiet=False) as progress:
        assert progress is None
    assert capsys.readouterr() == ("", "")
