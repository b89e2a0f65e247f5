"""Every command against a real server: what people read, what programs parse, how it ends."""

import csv
import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.e2e.serving import PLOTI, Server, environment, served

from ploti.cli import run

FIRST = "code,name,lon,lat\nA1,Alpha,-81.5,28.5\nB2,Beta,-81.6,28.6\nC3,Gamma,,\n"
SECOND = "code,name,lon,lat\nA1,Alpha,-81.5,28.5\nB2,Beta City,-81.6,28.6\nD4,Delta,-81.7,28.7\n"
NARROW = "code,lon,lat\nA1,-81.5,28.5\nB2,-81.6,28.6\nD4,-81.7,28.7\n"
TWICE = "code,name,lon,lat\nA1,Alpha,-81.5,28.5\nA1,Beta,-81.6,28.6\n"
DECLARATION = """
id: {id}
title: Towns
place: us/fl
topic: places/towns
license: CC0-1.0
key: [code]
geometry: {{longitude: lon, latitude: lat}}
"""
Json = dict[str, Any]


@dataclass
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Json:
        [line] = self.out.splitlines()
        found: Json = json.loads(line)
        return found

    @property
    def lines(self) -> list[Json]:
        return [json.loads(line) for line in self.out.splitlines()]


Command = Callable[..., Ended]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("cli")) as running:
        yield running


@pytest.fixture(scope="module")
def towns(server: Server) -> str:
    """A dataset with two versions, subscribed to after the first; the subscription's id."""
    geometry = {"longitude": "lon", "latitude": "lat"}
    server.declare("ds_towns", title="Towns", key=["code"], geometry=geometry)
    server.push("ds_towns", FIRST.encode())
    subscription = server.subscribe("ds_towns").rpartition("/")[2]
    server.push("ds_towns", SECOND.encode())
    return subscription


def command_of(
    key: str, server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    def ploti(*arguments: str | Path) -> Ended:
        monkeypatch.setenv("PLOTI_API_URL", server.url)
        monkeypatch.setenv("PLOTI_API_KEY", key)
        status = run([str(each) for each in arguments])
        return Ended(status, *capsys.readouterr())

    return ploti


@pytest.fixture
def staff(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    return command_of(server.staff_key, server, capsys, monkeypatch)


@pytest.fixture
def ploti(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    return command_of(server.key, server, capsys, monkeypatch)


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str, str], Path]:
    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


Write = Callable[[str, str], Path]


def test_datasets_are_applied_listed_and_shown(staff: Command, file: Write) -> None:
    declared = file("a.yaml", DECLARATION.format(id="ds_applied"))
    dry = staff("admin", "datasets", "apply", declared, "--dry-run")
    assert (dry.status, dry.out) == (0, "ds_applied: would be created\n")
    assert staff("admin", "datasets", "show", "ds_applied").status == 1
    applied = staff("admin", "datasets", "apply", declared)
    assert applied.out.startswith("ds_applied: created\n\nNext: ploti admin push ds_applied FILE")
    assert staff("admin", "datasets", "apply", declared).out.startswith("ds_applied: as it was")
    changed = file("a.yaml", DECLARATION.format(id="ds_applied").replace("Towns", "Cities"))
    assert staff("admin", "datasets", "apply", changed, "--json").json["applied"] == [
        {"datasetId": "ds_applied", "created": False, "changed": ["title"], "dryRun": False}
    ]
    listed = staff("admin", "datasets", "list", "--json").json
    assert "ds_applied" in [each["id"] for each in listed["datasets"]]
    assert "ds_applied" in staff("admin", "datasets", "list").out
    shown = staff("admin", "datasets", "show", "ds_applied", "--json").json
    assert shown["declaration"]["key"] == ["code"]
    assert "title: Cities" in staff("admin", "datasets", "show", "ds_applied").out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("id: ds_b\ntitle: B\n", "place"),
        (
            "id: ds_b\ntitle: B\nplace: us\ntopic: t\nsource: {kind: arcgis, url: 'https://a.b'}\n",
            "FeatureServer",
        ),
        ("id: ds_b\ntitle: B\nplace: us\ntopic: t\nkeys: [a]\n", "keys"),
        ("id: DS B\ntitle: B\nplace: us\ntopic: t\n", "ds_"),
    ],
    ids=["missing", "no-layer", "unknown", "bad-id"],
)
def test_a_declaration_that_cannot_be_taken_is_one_line_with_its_file(
    staff: Command, file: Write, text: str, told: str
) -> None:
    ended = staff("admin", "datasets", "apply", file("b.yaml", text))
    assert (ended.status, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert "b.yaml: " in ended.err
    assert told in ended.err


def test_a_state_is_pushed_dry_then_held_shown_discarded_and_released(
    staff: Command, file: Write
) -> None:
    staff("admin", "datasets", "apply", file("a.yaml", DECLARATION.format(id="ds_reviewed")))
    first = file("first.csv", FIRST)
    dry = staff("admin", "push", "ds_reviewed", first, "--dry-run", "--json")
    assert (dry.status, dry.json["outcome"]) == (0, "released")
    told = staff("admin", "push", "ds_reviewed", first, "--dry-run").out
    assert "nothing is stored" in told
    assert "Next:" not in told
    assert staff("admin", "datasets", "show", "ds_reviewed", "--json").json["current"] is None
    released = staff("admin", "push", "ds_reviewed", first)
    assert "outcome  released" in released.out
    told = released.out.splitlines()[-1].removeprefix("Next: ploti ")
    assert "ds_reviewed" in told
    assert staff(*told.split()).status == 0, "what is to be typed next works without a subscription"
    again = staff("admin", "push", "ds_reviewed", first, "--json")
    assert (again.status, again.json["outcome"]) == (0, "unchanged")

    held = staff("admin", "push", "ds_reviewed", file("twice.csv", TWICE), "--json")
    assert (held.status, held.json["outcome"]) == (0, "held")
    assert held.json["hold"]["reason"] == "data_check"
    hold = held.json["hold"]["id"]
    discarded = staff("admin", "holds", "discard", hold, "--note", "A slip.", "--json").json
    assert (discarded["state"], discarded["note"]) == ("discarded", "A slip.")

    hold = staff("admin", "push", "ds_reviewed", file("n.csv", NARROW), "--json").json["hold"]["id"]
    waiting = staff("admin", "holds", "list", "--state", "open", "--json").json["holds"]
    assert hold in [each["id"] for each in waiting]
    assert hold in staff("admin", "holds", "list").out
    shown = staff("admin", "holds", "show", hold)
    assert "schema change  MAJOR, 1.0 to 2.0" in shown.out
    assert f"Next: ploti admin holds release {hold}" in shown.out
    assert staff("admin", "holds", "show", hold, "--json").json["matched"] is True
    assert staff("admin", "holds", "release", hold, "--note", "It is so.").status == 0
    twice = staff("admin", "holds", "release", hold)
    assert (twice.status, twice.err.count("\n")) == (1, 1)
    current = staff("admin", "datasets", "show", "ds_reviewed", "--json").json["current"]
    assert (current["version"], current["schemaVersion"]) == (3, "2.0")


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_state_that_cannot_be_read_failed_with_status_1(
    staff: Command, file: Write, towns: str, form: str
) -> None:
    page = file("page.csv", "<!doctype html><html><body>Not found</body></html>")
    flags = ["--json"] if form == "json" else []
    ended = staff("admin", "push", "ds_towns", page, *flags)
    assert (ended.status, ended.err) == (1, "")
    assert "HTML" in (ended.json["detail"] if form == "json" else ended.out)


def test_a_dataset_without_a_source_is_pushed_and_not_checked(staff: Command, towns: str) -> None:
    ended = staff("admin", "check", "ds_towns")
    assert (ended.status, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert "push" in ended.err


def test_the_catalogue_is_read(ploti: Command, towns: str) -> None:
    listed = ploti("feeds", "datasets", "list", "--place", "us", "--json").json
    assert {each["id"]: each["subscribed"] for each in listed["datasets"]}["ds_towns"] is True
    assert "ds_towns" not in ploti("feeds", "datasets", "list", "--place", "de").out
    assert "ds_towns" in ploti("feeds", "datasets", "list").out
    shown = ploti("feeds", "datasets", "show", "ds_towns")
    assert "rows            3" in shown.out
    assert ploti("feeds", "datasets", "show", "ds_towns", "--json").json["keyColumns"] == ["code"]
    versions = ploti("feeds", "datasets", "versions", "ds_towns", "--json").json["versions"]
    assert [each["version"] for each in versions] == [1, 2]
    assert "+1 ~1 -1" in ploti("feeds", "datasets", "versions", "ds_towns").out
    version = ploti("feeds", "datasets", "version", "ds_towns", "2", "--json").json
    assert version["counts"] == {"added": 1, "changed": 1, "removed": 1}
    assert "snapshot.parquet?" in ploti("feeds", "datasets", "version", "ds_towns", "2").out
    schema = ploti("feeds", "datasets", "schema", "ds_towns", "--json").json
    assert [each["name"] for each in schema["columns"]][:2] == ["code", "name"]
    assert "geometry, EPSG:4326" in ploti("feeds", "datasets", "schema", "ds_towns").out


def test_changes_are_one_record_a_line(ploti: Command, towns: str) -> None:
    found = ploti("feeds", "datasets", "changes", "ds_towns", "2", "--json").lines
    assert {each["change"]: each["record"] and each["record"]["name"] for each in found} == {
        "removed": None,
        "changed": "Beta City",
        "added": "Delta",
    }
    assert len(ploti("feeds", "datasets", "changes", "ds_towns", "2").out.splitlines()) == 3
    refused = ploti("feeds", "datasets", "changes", "ds_towns", "1")
    assert (refused.status, refused.err.count("\n")) == (1, 1)


def test_files_are_downloaded_under_telling_names(
    ploti: Command, towns: str, tmp_path: Path
) -> None:
    to = tmp_path / "new" / "folder"
    snapshot = ploti("feeds", "datasets", "download", "ds_towns", "--to", to)
    assert snapshot.out == f"{to / 'towns_v2.parquet'}\n"
    relation = duckdb.sql(f"select code, name from '{to}/towns_v2.parquet' order by code")
    assert relation.fetchall() == [("A1", "Alpha"), ("B2", "Beta City"), ("D4", "Delta")]
    table = ploti("feeds", "datasets", "download", "ds_towns", "1", "--to", to, "--format", "csv")
    with Path(table.out.strip()).open(encoding="utf-8", newline="") as opened:
        assert sorted(row["code"] for row in csv.DictReader(opened)) == ["A1", "B2", "C3"]
    options = ["--to", to, "--file", "schema", "--json"]
    schema = ploti("feeds", "datasets", "download", "ds_towns", "2", *options).json
    assert schema == {
        "datasetId": "ds_towns",
        "version": 2,
        "file": "schema",
        "path": str(to / "towns_v2_schema.json"),
    }
    none = ploti("feeds", "datasets", "download", "ds_towns", "1", "--to", to, "--file", "changes")
    assert (none.status, none.err.count("\n")) == (1, 1)
    assert len(list(to.iterdir())) == 3


def test_a_subscription_is_made_changed_and_deleted(ploti: Command, towns: str) -> None:
    made = ploti("feeds", "subscriptions", "create", "--name", "All", "--place", "us", "--json")
    subscription = made.json["id"]
    assert made.json["places"] == ["us"]
    assert subscription in ploti("feeds", "subscriptions", "list").out
    listed = ploti("feeds", "subscriptions", "list", "--json").json["subscriptions"]
    assert {towns, subscription} <= {each["id"] for each in listed}
    change = ["--topic", "places", "--no-places", "--name", "Places", "--json"]
    changed = ploti("feeds", "subscriptions", "update", subscription, *change).json
    assert (changed["name"], changed["places"], changed["topics"]) == ("Places", [], ["places"])
    assert "Places" in ploti("feeds", "subscriptions", "show", subscription).out
    assert ploti("feeds", "subscriptions", "show", subscription, "--json").json == changed
    deleted = ploti("feeds", "subscriptions", "delete", subscription, "--json").json
    assert deleted == {"id": subscription, "deleted": True}
    assert ploti("feeds", "subscriptions", "show", subscription).status == 1


def test_the_manifest_leads_into_the_log(ploti: Command, towns: str) -> None:
    manifest = ploti("feeds", "subscriptions", "manifest", towns, "--json").json
    assert [each["version"] for each in manifest["datasets"]] == [2]
    cursor = manifest["eventCursor"]
    assert cursor in ploti("feeds", "subscriptions", "manifest", towns).out
    nothing = ploti("feeds", "subscriptions", "events", towns, "--cursor", cursor, "--json")
    assert (nothing.status, nothing.out) == (0, "")


def test_the_log_is_read_from_a_cursor_by_type_and_by_number_r173(
    ploti: Command, towns: str
) -> None:
    found = ploti("feeds", "subscriptions", "events", towns, "--json").lines
    assert [each["type"] for each in found] == ["feed.dataset.added", "feed.dataset.updated"]
    one = ploti("feeds", "subscriptions", "events", towns, "--limit", "1", "--json").lines
    assert one == found[:1]
    after = ["--cursor", "evt_000000000001", "--json"]
    assert ploti("feeds", "subscriptions", "events", towns, *after).lines == found[1:]
    kept = ["--types", "feed.dataset.updated,feed.dataset.removed", "--json"]
    assert ploti("feeds", "subscriptions", "events", towns, *kept).lines == found[1:]
    people = ploti("feeds", "subscriptions", "events", towns).out
    assert "updated  version 2 after 1, +1 ~1 -1" in people
    past = ploti("feeds", "subscriptions", "events", towns, "--cursor", "evt_000000000099")
    assert (past.status, past.out, past.err.count("\n")) == (1, "", 1)


def test_following_prints_an_event_as_it_happens(server: Server, towns: str) -> None:
    server.declare("ds_late")
    subscription = server.subscribe("ds_late").rpartition("/")[2]
    command = f"feeds subscriptions events {subscription} --follow --limit 2 --json"
    settings = environment(PLOTI_API_URL=server.url, PLOTI_API_KEY=server.key)
    with subprocess.Popen(
        [*PLOTI, *command.split()], stdout=subprocess.PIPE, text=True, env=settings
    ) as process:
        timer = threading.Timer(120, process.kill)
        timer.start()
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["data"]["version"] is None
        server.push("ds_late", b"a\n1\n")
        event = json.loads(process.stdout.readline())
        timer.cancel()
    assert event["type"] == "feed.dataset.resync_required"
    assert process.returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        "admin datasets list",
        "admin datasets show ds_towns",
        "admin check ds_towns",
        "admin holds list",
        "admin holds show hold_a",
        "admin holds release hold_a",
        "admin holds discard hold_a",
    ],
)
def test_a_subscribers_key_is_refused_by_the_staffs_commands(
    ploti: Command, towns: str, arguments: str
) -> None:
    ended = ploti(*arguments.split())
    assert (ended.status, ended.out, ended.err.count("\n")) == (6, "", 1)
    assert "admin" in ended.err


def test_a_push_with_a_wrong_key_is_refused_whatever_its_size(
    server: Server,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    ploti = command_of("ploti_wrong", server, capsys, monkeypatch)
    (tmp_path / "large.csv").write_bytes(bytes(30_000_000))
    ended = ploti("admin", "push", "ds_towns", tmp_path / "large.csv")
    assert (ended.status, ended.out, ended.err.count("\n")) == (6, "", 1)


def test_what_is_not_there_is_one_line_and_status_1(ploti: Command, towns: str) -> None:
    for arguments in (
        "feeds datasets show ds_none",
        "feeds datasets version ds_towns 99",
        "feeds datasets schema ds_none",
        "feeds subscriptions show sub_none",
        "feeds subscriptions manifest sub_none",
        "feeds subscriptions events sub_none",
        "feeds subscriptions delete sub_none",
        "feeds subscriptions create",
        "feeds subscriptions events sub_none --types feed.unknown",
    ):
        ended = ploti(*arguments.split())
        assert (ended.status, ended.out, ended.err.count("\n")) == (1, "", 1), arguments


def test_a_server_that_is_not_there_is_status_7(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLOTI_API_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("PLOTI_API_KEY", server.key)
    assert run(["feeds", "datasets", "list"]) == 7
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "PLOTI_API_URL" in err


def test_the_command_is_a_program_of_its_own(server: Server, towns: str) -> None:
    settings = environment(PLOTI_API_URL=server.url, PLOTI_API_KEY=server.key)
    command = [*PLOTI, "feeds", "datasets", "show", "ds_towns", "--json"]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, env=settings)
    assert (json.loads(ran.stdout)["id"], ran.stderr) == ("ds_towns", "")
