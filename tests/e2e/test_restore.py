"""A backup made while a server runs, and what it is good for: yesterday restored under clients."""

import json
import shutil
import signal
import sqlite3
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.serving import Server, environment
from tests.fakes import forked, synced

FIRST = b"id,kind\n1,a\n2,b\n"
LATER = [b"id,kind\n1,c\n2,b\n", b"id,kind\n1,c\n2,b\n3,d\n"]
AFTER = b"id,kind\n1,e\n4,f\n"


def ploti(*arguments: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
    return forked.run(*map(str, arguments), env=environment(**settings))


def done(*arguments: str | Path, **settings: str) -> str:
    ended = ploti(*arguments, **settings)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def until(holds: Callable[[], Any]) -> None:
    end = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.1)


@contextmanager
def following(server: Server, subscription: str, file: Path) -> Iterator[None]:
    """A client that keeps a table in step, with its server or waiting for it."""
    process = forked.Forked(
        ["feeds", "sync", subscription, "--to", f"duckdb:{file}", "--follow", "--json"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(PLOTI_API_URL=server.url, PLOTI_API_KEY=server.key),
    )
    try:
        yield
        assert process.poll() is None, "the client goes on whatever its server does"
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    finally:
        process.kill()
        process.wait()


def holds(file: Path, version: int) -> bool:
    """Whether a copy holds this version; one that is being written cannot be looked at."""
    try:
        return synced.held(file) == {"ds_a": (version, "held")}
    except Exception:  # noqa: BLE001 - locked by the client, or not there yet
        return False


def unpack(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    return folder


def test_yesterdays_backup_restored_under_three_running_clients_gives_no_number_twice(
    tmp_path: Path,
) -> None:
    archive = tmp_path / "yesterday.tar"
    server = Server(tmp_path / "data")
    port, staff, key = server.url.rpartition(":")[2], server.staff_key, server.key
    server.declare("ds_a", key=["id"])
    subscriptions = [server.subscribe("ds_a").rpartition("/")[2] for _ in range(3)]
    files = [tmp_path / f"{number}.duckdb" for number in range(3)]
    with ExitStack() as clients:
        for subscription, file in zip(subscriptions, files, strict=True):
            clients.enter_context(following(server, subscription, file))
        assert server.push("ds_a", FIRST)["version"] == 1
        until(lambda: all(holds(file, 1) for file in files))
        done("backup", archive, "--data", server.data)
        for number, content in enumerate(LATER, start=2):
            assert server.push("ds_a", content)["version"] == number
        until(lambda: all(holds(file, 3) for file in files))
        events = server.get(f"/v1/feeds/subscriptions/{subscriptions[0]}/events").json()
        server.stop()

        restored = unpack(archive, tmp_path / "restored")
        refused = ploti("serve", "--data", restored, "--port", port)
        assert refused.returncode == 1
        assert "ploti admin recover" in refused.stderr
        done("admin", "recover", "--data", restored)
        shutil.copy(tmp_path / "data" / "keys", restored / "keys")
        with Server(restored, "--port", port) as again:
            assert (again.staff_key, again.key) == (staff, key)
            until(lambda: all(holds(file, 1) for file in files))
            old = again.get(
                f"/v1/feeds/subscriptions/{subscriptions[0]}/events",
                params={"cursor": events["nextCursor"]},
            )
            assert (old.status_code, old.json()["code"]) == (410, "expired")
            version = again.push("ds_a", AFTER)["version"]
            assert version > 3
            until(lambda: all(holds(file, version) for file in files))
            for subscription in subscriptions:
                log = f"/v1/feeds/subscriptions/{subscription}"
                cursor = {"cursor": "evt_000001000002"}
                (event,) = again.get(f"{log}/events", params=cursor).json()["events"]
                assert event["type"] == "feed.dataset.resync_required"
                assert event["data"]["reason"] == "previous_unavailable"
            settings = {"PLOTI_API_URL": again.url, "PLOTI_API_KEY": again.key}
            clients.close()
            for subscription, file in zip(subscriptions, files, strict=True):
                done("feeds", "verify", subscription, "--to", f"duckdb:{file}", **settings)


def test_a_folder_whose_database_was_put_back_is_refused_until_it_is_recovered(
    tmp_path: Path,
) -> None:
    with Server(tmp_path / "data") as server:
        server.declare("ds_a", key=["id"])
        server.push("ds_a", FIRST)
    shutil.copy(tmp_path / "data" / "ploti.db", tmp_path / "old.db")
    with Server(tmp_path / "data") as server:
        for content in LATER:
            server.push("ds_a", content)
    for left in (tmp_path / "data").glob("ploti.db*"):
        left.unlink()
    shutil.copy(tmp_path / "old.db", tmp_path / "data" / "ploti.db")
    with pytest.raises(AssertionError, match=r"The database is older than what was given out"):
        Server(tmp_path / "data")
    found = ploti("doctor", "--data", tmp_path / "data")
    assert found.returncode == 1
    assert "ploti admin recover" in found.stdout
    done("admin", "recover", "--data", tmp_path / "data")
    with Server(tmp_path / "data") as server:
        assert server.push("ds_a", AFTER)["version"] == 1002


def test_a_backup_over_postgresql_has_the_same_rows_and_files(
    tmp_path: Path, postgres_url: str
) -> None:
    secrets = "of-the-tests-alone-and-32-long-or-more"
    settings = {"PLOTI_DATABASE_URL": postgres_url, "PLOTI_SECRET_KEYS": secrets}
    archive = tmp_path / "backup.tar"
    with Server(tmp_path / "data", settings=settings) as server:
        server.declare("ds_a", key=["id"])
        log = server.subscribe("ds_a")
        for content in (FIRST, *LATER):
            server.push("ds_a", content)
        done("backup", archive, "--data", server.data, **settings)
        events = server.get(f"{log}/events").json()
        assert "Nothing is wrong" in done("doctor", "--data", server.data, **settings)
    restored = unpack(archive, tmp_path / "restored")
    assert (archive.stat().st_mode & 0o777) == 0o600
    with closing(sqlite3.connect(restored / "ploti.db")) as database:
        assert database.execute("SELECT last_seq FROM feed_log").fetchone() == (4,)
        assert database.execute("SELECT count(*) FROM version").fetchone() == (3,)
    names = done("admin", "recover", "--data", restored, PLOTI_SECRET_KEYS=secrets)
    assert "missing" not in names
    shutil.copy(tmp_path / "data" / "keys", restored / "keys")
    with Server(restored, settings={"PLOTI_SECRET_KEYS": secrets}) as again:
        files = again.get("/v1/feeds/datasets/ds_a/versions/3").json()["files"]
        assert again.http.get(files["snapshot"][0]["url"]).status_code == 200
        assert again.push("ds_a", AFTER)["version"] == 1004
    assert len(events["events"]) == 4
    recovered = done("admin", "recover", "--data", tmp_path / "data", **settings)
    assert "has the rows" not in recovered
    assert "1 log was raised by 1000000: " in recovered
    assert "1 dataset was raised by 1000: " in recovered
    with Server(tmp_path / "data", settings=settings) as server:
        assert server.push("ds_a", AFTER)["version"] == 1004


def test_a_backup_of_sqlite_goes_into_an_empty_database_of_postgresql(
    tmp_path: Path, postgres_url: str
) -> None:
    """With all that was in it: keys, logs that go on, files, and webhooks' secrets."""
    archive = tmp_path / "backup.tar"
    with Server(tmp_path / "data", settings={"PLOTI_ALLOW_NETWORKS": "127.0.0.0/8"}) as server:
        server.declare("ds_a", key=["id"])
        log = server.subscribe("ds_a")
        for content in (FIRST, *LATER):
            server.push("ds_a", content)
        body = {"url": "http://127.0.0.1:9/h", "subscriptionId": log.rpartition("/")[2]}
        hook = server.request("POST", "/v1/webhooks", json=body).json()
        done("backup", archive, "--data", server.data)
    restored = unpack(archive, tmp_path / "restored")
    restored.chmod(0o700)
    secrets = f"{'n' * 32},{(restored / 'secret').read_text()}"
    settings = {"PLOTI_DATABASE_URL": postgres_url, "PLOTI_SECRET_KEYS": secrets}
    recovered = done("admin", "recover", "--data", restored, **settings)
    assert "has the rows of the folder's ploti.db" in recovered
    assert "1 log was raised by 1000000: " in recovered
    assert "has the rows" not in done("admin", "recover", "--data", restored, **settings)
    shutil.copy(tmp_path / "data" / "keys", restored / "keys")
    more = {"PLOTI_ALLOW_NETWORKS": "127.0.0.0/8"}
    with Server(restored, settings=settings | more) as again:
        files = again.get("/v1/feeds/datasets/ds_a/versions/3").json()["files"]
        assert again.http.get(files["snapshot"][0]["url"]).status_code == 200
        tested = again.request("POST", f"/v1/webhooks/{hook['id']}/test").json()
        assert tested["attempts"][0]["error"], "it was signed, and nobody is there"
        again.declare("ds_b", key=["id"])
        other = again.subscribe("ds_b")
        assert again.push("ds_a", AFTER)["version"] == 2004
        newest = again.get(f"{log}/manifest").json()["eventCursor"]
        assert newest == "evt_000002000005"
        assert len(again.get(f"{other}/events").json()["events"]) == 1
    assert "Nothing is wrong" in done("doctor", "--data", restored, **settings)


def test_a_backup_never_replaces_a_file_and_needs_a_servers_folder(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server:
        file = tmp_path / "there.tar"
        file.write_text("kept")
        refused = ploti("backup", file, "--data", server.data)
        assert (refused.returncode, file.read_text()) == (2, "kept")
        assert "is there already" in refused.stderr
        assert [path.name for path in server.data.iterdir() if "backup" in path.name] == []
    nowhere = ploti("backup", tmp_path / "a.tar", "--data", tmp_path / "none")
    assert nowhere.returncode == 2
    assert "no server has run there" in nowhere.stderr
    assert not (tmp_path / "none").exists()


def test_what_is_done_offline_is_one_document_with_json(tmp_path: Path, postgres_url: str) -> None:
    def document(*arguments: str | Path, **settings: str) -> Any:
        """What was printed, all of it."""
        return json.loads(done(*arguments, "--json", **settings))

    postgres = {"PLOTI_DATABASE_URL": postgres_url, "PLOTI_SECRET_KEYS": "s" * 32}
    planned = document("migrate", "--data", tmp_path / "pg", "--dry-run", **postgres)
    assert planned["dryRun"] is True
    assert document("migrate", "--data", tmp_path / "pg", **postgres) == planned | {"dryRun": False}
    assert [step[:4] for step in planned["steps"]][:1] == ["0001"]
    archive = tmp_path / "backup.tar"
    with Server(tmp_path / "data") as server:
        server.declare("ds_a", key=["id"])
        server.subscribe("ds_a")
        server.push("ds_a", FIRST)
        assert document("doctor", "--data", server.data) == {"wrong": []}
        backup = document("backup", archive, "--data", server.data)
    assert backup.pop("files") > 0
    assert backup == {"file": str(archive)}
    restored = unpack(archive, tmp_path / "restored")
    found = ploti("doctor", "--data", restored, "--json")
    assert found.returncode == 1
    assert any("ploti admin recover" in each for each in json.loads(found.stdout)["wrong"])
    gone = next((restored / "blobs" / "datasets").rglob("*.parquet"))
    gone.unlink()
    recovered = document("admin", "recover", "--data", restored)
    missing = [str(gone.relative_to(restored / "blobs"))]
    assert recovered == {"filled": False, "logs": 1, "datasets": 1, "missing": missing}


def test_migrate_says_what_it_would_do_and_does_it(tmp_path: Path, postgres_url: str) -> None:
    settings = {"PLOTI_DATABASE_URL": postgres_url, "PLOTI_SECRET_KEYS": "s" * 32}
    said = done("migrate", "--data", tmp_path / "data", "--dry-run", **settings)
    assert "would run 0001" in said
    assert "Nothing was done" in said
    assert "runs 0001" in done("migrate", "--data", tmp_path / "data", **settings)
    said = done("migrate", "--data", tmp_path / "data", **settings)
    assert said == "The database is of this release\n"
    with Server(tmp_path / "embedded"):
        pass
    assert done("migrate", "--data", tmp_path / "embedded") == "The database is of this release\n"
    with closing(sqlite3.connect(tmp_path / "embedded" / "ploti.db")) as database, database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    newer = ploti("migrate", "--data", tmp_path / "embedded")
    assert newer.returncode == 2
    assert "newer ploti, update this one" in newer.stderr


def test_doctor_names_each_thing_that_is_wrong_and_what_to_do(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server:
        server.declare("ds_a", key=["id"])
        server.push("ds_a", FIRST)
        assert "Nothing is wrong" in done("doctor", "--data", server.data)
        server.data.chmod(0o755)
        next((server.data / "blobs" / "datasets").rglob("*.parquet")).unlink()
        found = ploti(
            *("doctor", "--data", server.data),
            PLOTI_PUBLIC_URL="http://feeds.invalid",
            PLOTI_ALLOW_NETWORKS="0.0.0.0/0",
            PLOTI_FILE_ROOTS="/no/such/folder",
            PLOTI_BUILD_MEMORY="900TiB",
            PLOTI_MIN_FREE="900TiB",
        )
    assert found.returncode == 1
    for said in (
        "chmod 700",
        "files are missing, such as",
        "of PLOTI_MIN_FREE: make room",
        "PLOTI_PUBLIC_URL: keys go to",
        "PLOTI_PUBLIC_URL: http://feeds.invalid/healthz does not answer",
        "PLOTI_ALLOW_NETWORKS: 0.0.0.0/0",
        "PLOTI_FILE_ROOTS: /no/such/folder",
        "PLOTI_BUILD_MEMORY",
    ):
        assert said in found.stdout
    (tmp_path / "data" / "ploti.db").write_bytes(b"no database, but something else" * 99)
    broken = ploti("doctor", "--data", tmp_path / "data")
    assert broken.returncode == 1
    assert "is no database" in broken.stdout


def test_doctor_looks_whether_a_server_that_runs_is_reached_at_its_public_address(
    tmp_path: Path,
) -> None:
    """Where none runs there is nobody to answer: that is not what is wrong."""
    with Server(tmp_path / "other") as other, Server(tmp_path / "data") as server:
        found = done("doctor", "--data", server.data, PLOTI_PUBLIC_URL=server.url)
        assert "Nothing is wrong" in found
        elsewhere = ploti("doctor", "--data", server.data, PLOTI_PUBLIC_URL=f"{other.url}/feeds")
        assert elsewhere.returncode == 1
        assert "/feeds/healthz answers 404, but not as ploti" in elsewhere.stdout
        url = server.url
    assert "Nothing is wrong" in done("doctor", "--data", server.data, PLOTI_PUBLIC_URL=url)


@pytest.mark.parametrize("kind", ["none", "damaged"])
def test_a_database_that_cannot_be_read_is_told_on_one_line_by_each_command(
    tmp_path: Path, kind: str
) -> None:
    data, database = tmp_path / "d", tmp_path / "d" / "ploti.db"
    data.mkdir(mode=0o700)
    (data / "lock").touch()
    done("migrate", "--data", data)
    whole = database.read_bytes()
    database.write_bytes(whole[: len(whole) // 2] if kind == "damaged" else b"x" * 9_000)
    for command in (["migrate"], ["backup", tmp_path / "b.tar"], ["admin", "recover"]):
        ended = ploti(*command, "--data", data)
        assert ended.returncode == 2, ended.stderr
        assert ended.stderr.startswith(f"Error: {database} is ")
        assert ended.stderr.count("\n") == 1
    assert f"wrong: {database} is " in ploti("doctor", "--data", data).stdout
