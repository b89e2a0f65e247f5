"""Every failure is one line on standard error with the status of its kind."""

from pathlib import Path

import pytest
from cyclopts import App

from ploti import errors
from ploti.cli import failures, run
from ploti.errors import BY_CODE, MEANINGS, Code, ExitStatus, Fault


def fail(error: BaseException, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    status = failures.end_badly(error)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("Error: ")
    return status, err.removeprefix("Error: ").rstrip()


@pytest.mark.parametrize("code", list(Code))
def test_each_code_ends_with_the_status_of_the_table(
    code: Code, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fail(BY_CODE[code]("Do\nthis."), capsys) == (MEANINGS[code].exit_status, "Do this.")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.TransportError("x"), 7),
        (errors.ConfigError("x"), 2),
        (errors.SyncError("x"), 1),
        (errors.DestinationBusy("x"), 4),
        (errors.VerificationFailed("x"), 5),
        (errors.Unauthenticated("x"), 6),
        (errors.Forbidden("x"), 6),
        (errors.Expired("x"), 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_the_statuses_are_those_that_the_operators_page_lists(
    error: errors.PlotiError, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fail(error, capsys)[0] == status


def test_faults_that_the_detail_leaves_out_are_told_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    faults = (Fault("title", "is missing"), Fault("place", "is missing"))
    error = errors.InvalidInput("It cannot be taken: title is missing", errors=faults)
    told = "It cannot be taken: title is missing; place is missing"
    assert fail(error, capsys) == (1, told)


def test_a_file_that_the_system_refuses_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    error = PermissionError(13, "Permission denied", "some/file")
    assert fail(error, capsys) == (1, "some/file: Permission denied")


def test_ctrl_c_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    assert failures.end_badly(KeyboardInterrupt()) == 130
    assert capsys.readouterr() == ("", "")


def test_a_missing_library_is_named_with_what_brings_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    app = App(result_action="return_value")
    app.command("tests.unit.cli.lazy_without_library:command", name="lazy")
    with pytest.raises(ImportError) as raised:
        app(["lazy"], exit_on_error=False, print_error=False)
    status, told = fail(raised.value, capsys)
    assert status == ExitStatus.FAILED
    assert told.startswith("no_such_library is not installed: pip install 'ploti[sync]'")


def test_a_fault_of_ours_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        failures.end_badly(ZeroDivisionError())
    with pytest.raises(ImportError):
        failures.end_badly(ModuleNotFoundError("x", name="ploti.cli.gone"))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("nothing", "See ploti --help"),
        ("feeds datasets lst", 'Did you mean "list"'),
        ("feeds datasets show", "ploti feeds datasets show --help"),
        ("feeds datasets list --unknown", "--unknown"),
        ("feeds datasets version ds_a two", "two"),
        ("feeds subscriptions events sub_a --limit 0", "limit"),
        ("admin push ds_a", "FILE"),
        ("admin holds list --state lost", "lost"),
    ],
)
def test_wrong_usage_is_status_2_and_one_line(
    arguments: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments.split()) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("Error: ")
    assert told in err


@pytest.mark.parametrize("port", ["-1", "65536", "99999", "http"])
def test_a_port_that_there_is_not_is_refused_before_anything_is_made(
    port: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", "--data", str(tmp_path / "d"), "--port", port]) == ExitStatus.USAGE
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "d").exists()
