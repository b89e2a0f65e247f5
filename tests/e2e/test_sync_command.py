"""`ploti feeds sync`, `status` and `verify` as a shell meets them, against a made-up feed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path

import pytest
from tests.e2e.serving import PLOTI, environment
from tests.fakes import feed_server, forked, synced
from tests.fakes.feed import SUBSCRIPTION, FakeFeed, make_schema
from tests.fakes.feed_server import KEY, Fault, FeedServer, answer_problem, serve

from ploti.cli.sync import status, verify
from ploti.errors import InternalError, Unauthenticated, Unavailable
from ploti.model.ids import DatasetId

PERMITS = DatasetId("ds_permits")
SCHEMA = make_schema(no="string", units="int64")


def rows(*units: int) -> dict[str, dict[str, object]]:
    return {f"rec_{each}": {"no": str(each), "units": unit} for each, unit in enumerate(units)}


@pytest.fixture
def server() -> Iterator[FeedServer]:
    feed = FakeFeed()
    feed.join(PERMITS)
    feed.release(PERMITS, SCHEMA, rows(1, 2))
    with serve(feed) as server:
        yield server


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "feeds.duckdb"


def settings(server: FeedServer) -> dict[str, str]:
    return environment(PLOTI_API_URL=server.url, PLOTI_API_KEY=KEY)


def command(server: FeedServer, *arguments: str) -> dict[str, object]:
    return {"args": [*PLOTI, "feeds", *arguments], "env": settings(server), "text": True}


def ploti(server: FeedServer, *arguments: str) -> subprocess.CompletedProcess[str]:
    return forked.run("feeds", *arguments, env=settings(server))


def sync(server: FeedServer, file: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    return ploti(server, "sync", SUBSCRIPTION, "--to", f"duckdb:{file}", *flags)


def until(what: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 60
    while not what():
        assert time.monotonic() < give_up, "it did not come to pass"
        time.sleep(0.05)


@contextmanager
def following(server: FeedServer, file: Path) -> Iterator[forked.Forked]:
    """A sync that follows, with its lines to read; killed at the end if it still runs."""
    with forked.Forked(
        ["feeds", "sync", SUBSCRIPTION, "--to", f"duckdb:{file}", "--follow", "--json"],
        env=settings(server),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: forked.Forked, moment: str) -> dict[str, object]:
    assert process.stdout is not None
    for line in process.stdout:
        told: dict[str, object] = json.loads(line)
        if told["moment"] == moment:
            return told
    raise AssertionError(f"it ended without {moment}")


def test_it_syncs_tells_and_proves(server: FeedServer, file: Path) -> None:
    done = sync(server, file)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].split() == ["permits", "1", "current", "ds_permits", "-"]
    assert "Next: ploti feeds verify" in done.stdout
    assert done.stderr == ""
    server.feed.release(PERMITS, SCHEMA, rows(1, 3))
    to = ("--to", f"duckdb:{file}")
    behind = ploti(server, "status", SUBSCRIPTION, *to)
    assert (behind.returncode, "the copy has version 1, 2 is current" in behind.stdout) == (3, True)
    told = json.loads(sync(server, file, "--json").stdout)
    assert (told["applies"], told["datasets"][0]["version"]) == (1, 2)
    assert ploti(server, "status", SUBSCRIPTION, *to).returncode == 0
    equal = ploti(server, "verify", SUBSCRIPTION, *to)
    assert equal.returncode == 0
    assert equal.stdout.splitlines()[1].split() == ["permits", "2", "equal", "-"]
    synced.execute(file, "UPDATE permits SET units = 9 WHERE no = '1'")
    differs = ploti(server, "verify", SUBSCRIPTION, *to, "--json")
    assert differs.returncode == 5
    assert len(json.loads(differs.stdout)["datasets"][0]["buckets"]) == 1
    assert "differs" in ploti(server, "verify", SUBSCRIPTION, *to).stdout


def test_its_flags_do_what_they_say(server: FeedServer, file: Path) -> None:
    other = DatasetId("ds_parcels")
    server.feed.join(other)
    server.feed.release(other, SCHEMA, rows(3))
    flags = ("--dataset", PERMITS, "--verify", "--on-removed", "drop")
    assert sync(server, file, *flags, "--table-name", "mine").returncode == 0
    assert synced.query(file, "SELECT count(*) FROM mine") == [(2,)]
    assert synced.held(file) == {PERMITS: (1, "held")}
    assert any(path.endswith("/versions/1/digest") for path in server.seen)
    server.feed.leave(PERMITS)
    assert sync(server, file, *flags).returncode == 0
    assert synced.query(file, "FROM duckdb_tables() WHERE table_name = 'mine'") == []


def test_a_program_syncs_by_the_sdk(server: FeedServer, file: Path) -> None:
    program = "import ploti, sys; print(ploti.feeds.sync('sub_test', to='duckdb:' + sys.argv[1]))"
    given = command(server)
    done = subprocess.run(
        [sys.executable, "-c", program, str(file)],
        env=given["env"],
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert "loads=1" in done.stdout, done.stderr
    assert synced.held(file) == {PERMITS: (1, "held")}


def test_where_no_table_is_made_none_is_to_be_proved(file: Path) -> None:
    feed = FakeFeed()
    feed.join(PERMITS)
    with serve(feed) as server:
        done = sync(server, file)
    assert (done.returncode, "waiting" in done.stdout) == (0, True)
    assert "verify" not in done.stdout
    assert f"Next: ploti feeds subscriptions show {SUBSCRIPTION}" in done.stdout


def test_an_expired_cursor_is_recovered_from_and_said(server: FeedServer, file: Path) -> None:
    sync(server, file)
    server.feed.release(PERMITS, SCHEMA, rows(7))
    server.feed.prune()
    done = sync(server, file)
    assert done.returncode == 0
    assert "past retention: going on from the manifest" in done.stderr
    assert synced.query(file, "SELECT units FROM permits") == [(7,)]


def test_a_dataset_that_is_stuck_is_named_with_exit_status_3(
    server: FeedServer, file: Path
) -> None:
    sync(server, file)
    server.feed.release(PERMITS, SCHEMA, rows(7))
    server.faults.append(Fault("/files/", feed_server.damage, times=99))
    stuck = sync(server, file)
    assert stuck.returncode == 3
    assert "Not up to date: ds_permits" in stuck.stdout
    assert "sha256" in stuck.stderr
    server.faults.clear()
    assert sync(server, file).returncode == 0


@pytest.mark.parametrize("fault", [feed_server.truncate, feed_server.refuse_link])
def test_a_download_that_breaks_or_whose_link_expires_goes_on(
    server: FeedServer, file: Path, fault: Callable[[feed_server.Handler, bytes], None]
) -> None:
    """S-46."""
    server.faults.append(Fault("/files/", fault))
    assert sync(server, file).returncode == 0
    assert synced.held(file) == {PERMITS: (1, "held")}


def test_a_swapped_download_is_found_out(server: FeedServer, file: Path) -> None:
    """R-103."""
    sync(server, file)
    before = server.feed.file(PERMITS, 1, "snapshot")
    server.feed.release(PERMITS, SCHEMA, rows(7))
    server.faults.append(Fault("/files/", feed_server.swap(before)))
    assert sync(server, file).returncode == 0
    assert synced.query(file, "SELECT units FROM permits") == [(7,)]


def test_a_refused_key_is_6_and_a_server_that_is_not_there_7(
    server: FeedServer, file: Path
) -> None:
    server.faults.append(Fault("manifest", answer_problem(Unauthenticated("it was revoked"))))
    refused = sync(server, file)
    assert (refused.returncode, refused.stderr) == (6, "Error: it was revoked\n")
    assert not file.exists()
    gone = FeedServer(server.feed, url="http://127.0.0.1:9")
    lost = sync(gone, file)
    assert (lost.returncode, lost.stderr.count("\n")) == (7, 1)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--to", "mysql://x"), "is no destination"),
        (("--to", "duckdb:x", "--dataset", "Permits"), "is no dataset id"),
        (("--to", "duckdb:x", "--on-removed", "burn"), "burn"),
        ((), "--to"),
    ],
)
def test_what_cannot_be_meant_is_2(server: FeedServer, flags: tuple[str, ...], says: str) -> None:
    wrong = ploti(server, "sync", SUBSCRIPTION, *flags)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert says in wrong.stderr
    assert wrong.stderr.count("\n") == 1


def test_it_follows_waits_out_a_lost_server_and_ends_cleanly(
    server: FeedServer, file: Path
) -> None:
    with following(server, file) as process:
        assert read_until(process, "committed")["version"] == 1
        server.feed.release(PERMITS, SCHEMA, rows(5, 6))
        server.ring()
        assert read_until(process, "committed")["version"] == 2
        lost = answer_problem(Unavailable("back soon"))
        server.faults.append(Fault("/versions/3", lost, times=6))
        server.feed.release(PERMITS, SCHEMA, rows(5, 7))
        server.ring()
        assert "back soon" in str(read_until(process, "retrying")["detail"])
        assert read_until(process, "committed")["version"] == 3
        server.holding.clear()
        assert server.holding.wait(60)  # so that the fault is met by the request after this one
        server.faults.append(Fault("/events", answer_problem(InternalError("a slip"))))
        server.feed.release(PERMITS, SCHEMA, rows(5, 8))
        server.ring()
        assert "a slip" in str(read_until(process, "retrying")["detail"])
        server.feed.release(PERMITS, SCHEMA, rows(5, 9))
        server.ring()
        assert read_until(process, "committed")["version"] == 5
        read_until(process, "closed")
        assert synced.query(file, "SELECT units FROM permits ORDER BY no") == [(5,), (9,)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert sorted(each.name for each in file.parent.iterdir()) == [file.name, f"{file.name}.lock"]


def test_a_second_client_is_refused_with_4(server: FeedServer, file: Path) -> None:
    with following(server, file) as process:
        read_until(process, "committed")
        second = sync(server, file)
        assert second.returncode == 4
        assert f"(process {process.pid})" in second.stderr
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
    assert sync(server, file).returncode == 0


READER = """
import duckdb, sys, time
connection = duckdb.connect(sys.argv[1], read_only=True)
print("reading", flush=True)
sys.stdin.read()
"""


@contextmanager
def reader(file: Path) -> Iterator[subprocess.Popen[str]]:
    """Another program that has the file open."""
    with subprocess.Popen(
        [sys.executable, "-c", READER, str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "reading\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_subscription_that_is_unknown_leaves_nothing_behind(
    server: FeedServer, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    folder.mkdir()
    wrong = ploti(server, "sync", "sub_none", "--to", f"duckdb:{folder}/feed.duckdb")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (1, 1)
    assert list(folder.iterdir()) == []


def test_a_file_that_is_no_database_is_told_with_what_to_do(server: FeedServer, file: Path) -> None:
    file.write_text("Dear reader, " * 1_000)
    wrong = sync(server, file)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (1, 1)
    assert f"{file} is no DuckDB database: name another file" in wrong.stderr
    assert file.read_text().startswith("Dear reader")


def test_commands_that_only_read_wait_a_few_seconds_for_another_program() -> None:
    for look in (status, verify):
        assert signature(look).parameters["lock_timeout"].default == 5.0


def test_a_reader_is_waited_for_as_long_as_it_was_said(server: FeedServer, file: Path) -> None:
    sync(server, file)
    server.feed.release(PERMITS, SCHEMA, rows(5, 6))
    with reader(file) as process:
        busy = sync(server, file, "--lock-timeout", "0.5")
        assert busy.returncode == 4
        assert "is in use by another program" in busy.stderr
        given = command(server, "sync", SUBSCRIPTION, "--to", f"duckdb:{file}")
        with subprocess.Popen(**given, stdout=subprocess.DEVNULL) as waiting:
            until(lambda: any("changes" in path for path in server.files_seen()[2:]))
            process.communicate("")
            assert waiting.wait(timeout=60) == 0
    assert synced.held(file) == {PERMITS: (2, "held")}


FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
from ploti.cli import run
sys.exit(run(sys.argv[2:]))
"""


def test_a_disk_that_fills_as_the_file_is_closed_is_told_and_loses_nothing(
    server: FeedServer, file: Path
) -> None:
    sync(server, file)
    version = server.feed.release(PERMITS, SCHEMA, rows(*range(3_000)))
    given = command(server, "sync", SUBSCRIPTION, "--to", f"duckdb:{file}")
    arguments = [sys.executable, "-c", FULL, str(file.stat().st_size), *given["args"][3:]]
    full = subprocess.run(
        arguments, env=given["env"], text=True, capture_output=True, timeout=120, check=False
    )
    assert full.returncode == 1, full.stderr
    assert full.stderr.startswith("Error: ")
    assert full.stderr.count("\n") == 1
    assert sync(server, file).returncode == 0
    assert synced.read_table(file, version, "permits") == synced.expected(version)


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "gpkg", "parquet"])
def test_a_disk_that_fills_leaves_the_version_before_whole(
    server: FeedServer, tmp_path: Path, kind: str
) -> None:
    """D12: no half version, no moved cursor, nothing left over, a plain message."""
    place = tmp_path / f"feeds.{kind}"
    to = synced.address(place)
    first = server.feed.datasets[PERMITS].versions[1]
    assert ploti(server, "sync", SUBSCRIPTION, "--to", to).returncode == 0
    cursor, whole = synced.cursor(place), size(place)
    many = {f"rec_{each}": {"no": f"no. {each * 7919}", "units": each} for each in range(60_000)}
    version = server.feed.release(PERMITS, SCHEMA, many)
    limits = [100_000]  # the download itself does not fit
    if kind != "parquet":  # whose table is the download
        limits.append(whole + 800_000)
    for limit in limits:
        full = ploti_limited(server, limit, to)
        assert full.returncode == 1, full.stdout + full.stderr
        assert full.stderr.startswith("Error: ")
        assert full.stderr.count("\n") == 1
        assert synced.held(place) == {PERMITS: (1, "held")}
        assert synced.cursor(place) == cursor
        assert synced.read_table(place, first, "permits") == synced.expected(first)
        assert leftovers(place) == []
    assert ploti(server, "sync", SUBSCRIPTION, "--to", to).returncode == 0
    assert synced.read_table(place, version, "permits") == synced.expected(version)


def ploti_limited(server: FeedServer, size: int, to: str) -> subprocess.CompletedProcess[str]:
    """A sync that can write no file longer than this."""
    given = command(server, "sync", SUBSCRIPTION, "--to", to)
    return subprocess.run(
        [sys.executable, "-c", FULL, str(size), *given["args"][3:]],
        env=given["env"],
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )


def size(place: Path) -> int:
    return place.stat().st_size if place.is_file() else 0


def leftovers(place: Path) -> list[str]:
    """What a run that failed should have taken away."""
    found = [*place.parent.iterdir(), *place.glob("_ploti/*")]
    endings = ("downloads", "journal", ".new")
    return [each.name for each in found if each.name.endswith(endings)]


def test_two_versions_are_compared(server: FeedServer) -> None:
    server.feed.release(PERMITS, SCHEMA, rows(1, 3, 4))
    told = ploti(server, "diff", PERMITS, "1", "2")
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.splitlines()[:3] == [
        'changed  rec_1  {"no":"1","units":3}',
        'added  rec_2  {"no":"2","units":4}',
        "+1 ~1 -0, by changes",
    ]
    document = json.loads(ploti(server, "diff", PERMITS, "1", "2", "--json").stdout)
    assert document["counts"] == {"added": 1, "changed": 1, "removed": 0}
    assert [each["recordId"] for each in document["changes"]] == ["rec_1", "rec_2"]
    assert ploti(server, "diff", PERMITS, "1", "9").returncode == 1
