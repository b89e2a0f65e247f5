"""That conftest keeps its own rules: sockets by folder, and no skip in CI."""

import socket
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
SKIPS = """
import pytest

def test_skipped():
    pytest.skip("no time")

@pytest.mark.skip(reason="needs ../shared/data")
def test_without_the_shared_folder():
    pass

@pytest.mark.skip(reason="the Debian package postgresql-postgis is not installed")
def test_without_a_package():
    pass

@pytest.mark.xfail(reason="a known fault", strict=True)
def test_expected_to_fail():
    assert not "as expected"
"""
SKIPS_ITSELF = """
import pytest

pytest.skip("no time", allow_module_level=True)
"""
CONNECTS = """
import socket

def test_connects():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
"""


@pytest.fixture(autouse=True)
def _fakes_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The conftest is run in another folder, from where it still imports the tests' fakes."""
    monkeypatch.setenv("PYTHONPATH", str(CONFTEST.parents[1]))


def test_a_test_may_reach_loopback_and_nothing_else() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
    with socket.socket() as outside, pytest.raises(RuntimeError, match="loopback only"):
        outside.connect(("192.0.2.1", 80))
    with pytest.raises(RuntimeError, match="loopback only"):
        socket.getaddrinfo("example.com", 80)


def run(pytester: pytest.Pytester, files: dict[str, str]) -> dict[str, int]:
    """Run these test files under the project's conftest; tell how many had each outcome."""
    pytester.makeconftest(CONFTEST.read_text(encoding="utf-8"))
    for file, text in files.items():
        (pytester.path / file).parent.mkdir(exist_ok=True)
        (pytester.path / file).write_text(text, encoding="utf-8")
    return pytester.runpytest_subprocess("--import-mode=importlib").parseoutcomes()


def test_unit_and_property_tests_have_no_sockets_and_all_others_have_loopback(
    pytester: pytest.Pytester,
) -> None:
    without = {"unit/test_it.py": CONNECTS, "property/test_it.py": CONNECTS}
    with_loopback = {"integration/test_it.py": CONNECTS, "e2e/test_it.py": CONNECTS}
    assert run(pytester, without | with_loopback) == {"failed": 2, "passed": 2}


def test_in_ci_a_skip_fails_unless_it_names_the_shared_folder_or_a_debian_package(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    outcomes = run(pytester, {"test_skips.py": SKIPS})
    assert outcomes == {"failed": 1, "skipped": 2, "xfailed": 1}


def test_in_ci_a_module_that_skips_itself_fails(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    outcomes = run(pytester, {"test_skips.py": SKIPS_ITSELF})
    assert outcomes.keys() & {"error", "errors"}


def test_outside_ci_a_skip_is_a_skip(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    outcomes = run(pytester, {"test_skips.py": SKIPS, "test_itself.py": SKIPS_ITSELF})
    assert outcomes == {"skipped": 4, "xfailed": 1}
