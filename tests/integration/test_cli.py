"""The commands against a scripted server: what they print, send and end with."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import api
from tests.fakes.api import Reply, Server, problem

from ploti.cli import run
from ploti.client import problems

EVENTS = "GET /v1/feeds/subscriptions/sub_a/events"
APPLY_A = "PUT /v1/admin/datasets/ds_a"
APPLY_B = "PUT /v1/admin/datasets/ds_b"
PUSH = "POST /v1/admin/datasets/ds_a/push"


@pytest.fixture(autouse=True)
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with api.running() as running:
        monkeypatch.setenv("PLOTI_API_URL", running.url)
        monkeypatch.setenv("PLOTI_API_KEY", "ploti_secret")
        yield running


def stale(number: int) -> dict[str, object]:
    return {
        "id": f"evt_{number:012d}",
        "type": "feed.dataset.stale",
        "timestamp": "2026-10-18T06:13:02.000Z",
        "subscriptionId": "sub_a",
        "data": {"datasetId": "ds_a", "reason": "check_overdue", "lastCheckedAt": None},
    }


def page(*numbers: int, cursor: int) -> Reply:
    return Reply({"events": [*map(stale, numbers)], "nextCursor": f"evt_{cursor:012d}"})


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_events_are_read_to_the_end_one_a_line_r173(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.on(EVENTS, page(43, 44, cursor=44), page(cursor=900), page(901, cursor=901))
    command = "feeds subscriptions events sub_a --cursor evt_000000000042 --json"
    assert run(command.split()) == 0
    assert lines(capsys)[:3] == [stale(43), stale(44), stale(901)]
    cursors = [seen.query["cursor"] for seen in server.seen]
    assert cursors[:3] == ["evt_000000000042", "evt_000000000044", "evt_000000000900"]


def test_a_limit_is_of_all_events_and_a_filter_is_sent(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.on(EVENTS, page(*range(1, 501), cursor=500), page(501, cursor=501))
    command = "feeds subscriptions events sub_a --limit 501 --types feed.dataset.stale --json"
    assert run(command.split()) == 0
    assert len(lines(capsys)) == 501
    assert [seen.query["limit"] for seen in server.seen] == ["500", "1"]
    assert {seen.query["types"] for seen in server.seen} == {"feed.dataset.stale"}


def test_people_are_told_with_which_cursor_to_go_on(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.on(EVENTS, page(43, cursor=43), page(cursor=43))
    assert run(["feeds", "subscriptions", "events", "sub_a"]) == 0
    told = capsys.readouterr().out
    assert "stale  check_overdue" in told
    assert "Next: ploti feeds subscriptions events sub_a --cursor evt_000000000043" in told


def test_following_waits_and_outlives_a_server_that_is_away(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(problems, "FIRST_PAUSE", 0.001)
    away = problem(503, "unavailable", "Restarting.")
    server.on(EVENTS, page(cursor=0), page(1, cursor=1), *[away] * 10, page(2, cursor=2))
    command = "feeds subscriptions events sub_a --follow --limit 2 --json"
    assert run(command.split()) == 0
    out, err = capsys.readouterr()
    assert [json.loads(line)["id"][-1] for line in out.splitlines()] == ["1", "2"]
    assert "Restarting.; trying again in 1 s" in err
    assert {seen.query["wait"] for seen in server.seen} == {"30"}


def test_without_following_a_server_that_is_away_ends_the_command(server: Server) -> None:
    server.on(EVENTS, problem(410, "expired", "Read the manifest."))
    assert run(["feeds", "subscriptions", "events", "sub_a"]) == 1


def test_ctrl_c_ends_following_without_a_word(server: Server, tmp_path: Path) -> None:
    def waits(handler: api.Handler) -> None:
        waiting.set()
        handler.server.stopping.wait(60)
        page(cursor=0)(handler)

    waiting = threading.Event()
    server.on(EVENTS, waits)
    command = [
        sys.executable,
        "-m",
        "ploti",
        *["feeds", "subscriptions", "events", "sub_a", "--follow"],
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert waiting.wait(60)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_a_reader_that_has_had_enough_is_no_error(server: Server) -> None:
    server.on(EVENTS, page(*range(1, 501), cursor=500), page(cursor=500))
    command = [
        sys.executable,
        "-m",
        "ploti",
        *["feeds", "subscriptions", "events", "sub_a", "--json"],
    ]
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(command, check=False, stdout=writing, stderr=subprocess.PIPE, timeout=60)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("outcome", "status"), [("unchanged", 0), ("released", 0), ("held", 0), ("failed", 1)]
)
@pytest.mark.parametrize("form", ["json", "text"])
def test_a_push_ends_by_its_outcome(
    *,
    server: Server,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    outcome: str,
    status: int,
    form: str,
) -> None:
    hold = {"id": "hold_a", "reason": "data_check"} if outcome == "held" else None
    counts = {"added": 1, "changed": 2, "removed": 3}
    body = {"outcome": outcome, "version": 2, "counts": counts, "hold": hold, "detail": "So."}
    server.on(PUSH, Reply(body))
    (tmp_path / "permits.csv").write_text("a\n1\n")
    flags = ["--json"] if form == "json" else []
    assert run(["admin", "push", "ds_a", str(tmp_path / "permits.csv"), *flags]) == status
    out, err = capsys.readouterr()
    assert err == ""
    if form == "json":
        assert json.loads(out) == body
    else:
        assert f"outcome  {outcome}" in out
        assert "+1 ~2 -3" in out
        assert ("Next: ploti admin holds show hold_a" in out) == (outcome == "held")
    assert server.seen[0].body == b"a\n1\n"
    assert server.seen[0].query == {"name": "permits.csv"}


def test_a_push_of_a_missing_file_is_wrong_usage(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["admin", "push", "ds_a", str(tmp_path / "gone.csv")]) == 2
    assert capsys.readouterr().err.endswith("gone.csv: No such file or directory\n")
    assert server.seen == []


def applied(dataset: str, *, created: bool = True, changed: tuple[str, ...] = ()) -> Reply:
    return Reply({"datasetId": dataset, "created": created, "changed": [*changed], "dryRun": False})


def test_all_declarations_are_tried_before_one_is_applied(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.yaml").write_text("id: ds_a\n")
    (tmp_path / "b.yaml").write_text("id: ds_x\n---\nid: ds_b\n")
    server.on(APPLY_A, applied("ds_a"))
    server.on("PUT /v1/admin/datasets/ds_x", applied("ds_x"))
    server.on(APPLY_B, problem(400, "invalid_input", "title is missing"))
    files = [str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml")]
    assert run(["admin", "datasets", "apply", *files]) == 1
    assert capsys.readouterr().err.endswith("b.yaml, document 2: title is missing\n")
    assert {seen.query.get("dryRun") for seen in server.seen} == {"true"}


def test_what_was_applied_is_said(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.yaml").write_text("id: ds_a\nkey: [no]\n---\nid: ds_b\n")
    server.on(APPLY_A, applied("ds_a"))
    server.on(APPLY_B, applied("ds_b", created=False, changed=("key", "title")))
    assert run(["admin", "datasets", "apply", str(tmp_path / "a.yaml")]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        "ds_a: created",
        "ds_b: changed: key, title",
    ]
    assert [seen.query.get("dryRun") for seen in server.asked(APPLY_A)] == ["true", None]
    assert json.loads(server.seen[0].body) == {"id": "ds_a", "key": ["no"]}


def test_after_apply_the_way_to_a_first_state_is_told(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.yaml"
    server.on(APPLY_A, applied("ds_a"))
    for source, told in [
        ("{format: csv}", "ploti admin push ds_a FILE"),
        ("{kind: file, url: /srv/a.csv}", "ploti admin check ds_a"),
    ]:
        file.write_text(f"id: ds_a\nsource: {source}\n")
        assert run(["admin", "datasets", "apply", str(file)]) == 0
        assert capsys.readouterr().out.endswith(f"Next: {told}\n")


def test_a_dry_run_applies_nothing(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.yaml").write_text("id: ds_a\n")
    server.on(APPLY_A, applied("ds_a"))
    command = ["admin", "datasets", "apply", str(tmp_path / "a.yaml"), "--dry-run", "--json"]
    assert run(command) == 0
    [document] = lines(capsys)
    assert [each["datasetId"] for each in document["applied"]] == ["ds_a"]
    assert [seen.query for seen in server.seen] == [{"dryRun": "true"}]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (problem(401, "unauthenticated", "No such key."), 6),
        (problem(403, "forbidden", "It needs the permission admin."), 6),
        (problem(404, "not_found", "No such dataset."), 1),
        (Reply(b"<html>", 404), 7),
    ],
    ids=["401", "403", "404", "not-ploti"],
)
def test_a_refusal_is_one_line_and_its_status(
    server: Server, capsys: pytest.CaptureFixture[str], answer: api.Answer, status: int
) -> None:
    server.on("GET /v1/feeds/datasets/ds_a", answer)
    assert run(["feeds", "datasets", "show", "ds_a", "--json"]) == status
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("Error: ")


def test_without_a_key_it_is_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PLOTI_API_KEY")
    assert run(["feeds", "datasets", "list"]) == 2
    assert "PLOTI_API_KEY" in capsys.readouterr().err


def test_a_list_is_of_all_pages_and_one_document(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    def of(id_: str) -> dict[str, object]:
        whole = {"id": id_, "name": "", "createdAt": "2026-10-18T06:13:02.000Z"}
        return whole | {"places": [], "topics": [], "datasets": ["ds_a"]}

    server.on(
        "GET /v1/feeds/subscriptions",
        Reply({"subscriptions": [of("sub_a")], "nextCursor": "sub_a"}),
        Reply({"subscriptions": [of("sub_b")], "nextCursor": None}),
    )
    assert run(["feeds", "subscriptions", "list", "--json"]) == 0
    [document] = lines(capsys)
    assert [each["id"] for each in document["subscriptions"]] == ["sub_a", "sub_b"]
    assert document["nextCursor"] is None


def test_choices_can_be_emptied_and_are_otherwise_left_alone(server: Server) -> None:
    call = "PATCH /v1/feeds/subscriptions/sub_a"
    server.on(call, Reply({"id": "sub_a", "name": "", "createdAt": "2026-10-18T06:13:02.000Z"}))
    command = "feeds subscriptions update sub_a --no-places --dataset ds_a --dataset ds_b"
    assert run(command.split()) == 0
    assert json.loads(server.seen[0].body) == {"places": [], "datasets": ["ds_a", "ds_b"]}


def test_an_id_that_no_dataset_has_is_told_beside_the_subscription(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    made = {"id": "sub_a", "name": "", "createdAt": "2026-10-18T06:13:02.000Z"}
    server.on("POST /v1/feeds/subscriptions", Reply(made, 201))
    there = {"id": "ds_a", "title": "T", "place": "us", "topic": "t", "keyColumns": []}
    unset = ["license", "attribution", "current", "lastCheckedAt", "nextCheckBy", "hold"]
    server.on("GET /v1/feeds/datasets/ds_a", Reply(there | dict.fromkeys(unset)))
    server.on("GET /v1/feeds/datasets/ds_b", problem(404, "not_found", "There is no ds_b"))
    command = "feeds subscriptions create --dataset ds_a --dataset ds_b --json"
    assert run(command.split()) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["id"] == "sub_a"
    assert told.err == "Not delivered for now: ds_b. There is no ds_b\n"
