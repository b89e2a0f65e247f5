"""House rules of every test: which sockets it may open, and that CI skips nothing."""

import ipaddress
import os
import signal
import socket
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.fakes import postgres as postgresql

pytest_plugins = ["pytester"]

# A test may be skipped where its data beside the repository is absent, or the Debian package that
# `.ci/run` could not install.
SKIPS_ALLOWED_IN_CI = ("../shared", "Debian package")
WITHOUT_SOCKETS = {"unit", "property"}

_sockets = {"allowed": True}


class SocketBlockedError(RuntimeError):
    """A test reached for a socket that it may not have."""


def _is_loopback(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode()
    if host in {None, "", "localhost"}:
        return host != ""
    try:
        return ipaddress.ip_address(str(host).partition("%")[0]).is_loopback
    except ValueError:
        return False


def _is_address(host: object) -> bool:
    text = host.decode() if isinstance(host, bytes) else str(host)
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return _is_old_address(text)
    return True


def _is_old_address(text: str) -> bool:
    """Whether it is IPv4 as it used to be written too: 127.1, 0x7f000001."""
    try:
        socket.inet_aton(text)
    except OSError:
        return False
    return True


def _watch_sockets(event: str, args: tuple[object, ...]) -> None:
    """Refuse what the running test may not reach; asking about a numeric address sends nothing."""
    if not event.startswith("socket."):
        return
    if event in {"socket.connect", "socket.bind", "socket.sendto"}:
        address = args[1]
        if _sockets["allowed"] and (not isinstance(address, tuple) or _is_loopback(address[0])):
            return
        message = f"{event} to {address!r}"
    elif event in {"socket.getaddrinfo", "socket.gethostbyname"}:
        if _is_address(args[0]) or (_sockets["allowed"] and _is_loopback(args[0])):
            return
        message = f"{event} of {args[0]!r}"
    else:
        return
    allowed = "loopback only" if _sockets["allowed"] else "no sockets"
    raise SocketBlockedError(f"{message}: this test may use {allowed}")


sys.addaudithook(_watch_sockets)

# A shell starts what runs behind it with Ctrl-C ignored, and so would be what tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """Tests wait for a third of their time: three workers for two processors."""
    return max(1, (os.cpu_count() or 1) * 3 // 2)


@pytest.fixture(autouse=True)
def _sockets_of_the_folder(request: pytest.FixtureRequest) -> Iterator[None]:
    """No sockets for unit and property tests, loopback for all others."""
    folder = request.path.relative_to(Path(__file__).parent).parts[0]
    _sockets["allowed"] = folder not in WITHOUT_SOCKETS
    yield
    _sockets["allowed"] = True


@pytest.fixture(scope="session")
def postgres() -> Iterator[postgresql.Cluster]:
    """One PostgreSQL server for all tests that ask for it."""
    with postgresql.running() as cluster:
        yield cluster


@pytest.fixture
def postgis_url(postgres: postgresql.Cluster, postgres_url: str) -> str:
    """The address of a new PostgreSQL database that has PostGIS."""
    if not postgres.offers("postgis"):
        pytest.skip("the Debian package postgresql-postgis is not installed")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION postgis")
    return postgres_url


@pytest.fixture
def postgres_url(postgres: postgresql.Cluster) -> Iterator[str]:
    """The address of a new, empty PostgreSQL database."""
    with postgres.database() as url:
        yield url


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """With CI=true a skip is a failure, or a rule could go untested without a word."""
    if os.environ.get("CI") != "true" or not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not any(each in reason for each in SKIPS_ALLOWED_IN_CI):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: a test may not be skipped in CI ({reason})"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Apply the rule on skips to a test."""
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Apply the rule on skips to a whole module."""
    report = yield
    _refuse_skip(report)
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Tell how to run the same order again: a quiet run prints no header."""
    seed = config.getoption("randomly_seed", None)
    if exitstatus and seed is not None:
        terminalreporter.write_line(f"The same order again: ARGS=--randomly-seed={seed}")
