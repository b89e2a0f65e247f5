"""Sources checked by a real server at their time, and the staff's commands around it."""

import json
import time
from pathlib import Path
from typing import Any

from tests.e2e.serving import Server, environment, served
from tests.fakes import forked

DAY = 86_400
Json = dict[str, Any]


def staff(server: Server, *arguments: str) -> Json:
    """What a command of the staff's prints as JSON."""
    env = environment(PLOTI_API_URL=server.url, PLOTI_API_KEY=server.staff_key)
    done = forked.run("admin", *arguments, "--json", env=env)
    assert done.returncode == 0, done.stderr
    found: Json = json.loads(done.stdout)
    return found


def wait_for_version(server: Server, number: int) -> Json:
    """The dataset once this version is current."""
    for _ in range(600):
        found: Json = server.get("/v1/feeds/datasets/ds_checked").json()
        if (found["current"] or {}).get("version") == number:
            return found
        time.sleep(0.1)
    raise AssertionError(server.log())


def wait_for_event(server: Server, log: str, kind: str) -> Json:
    for _ in range(600):
        events: list[Json] = server.get(f"{log}/events").json()["events"]
        for event in events:
            if event["type"] == f"feed.dataset.{kind}":
                return event
        time.sleep(0.1)
    raise AssertionError(server.log())


def rows(count: int) -> str:
    return "".join(["id,kind\n", *(f"{number},a\n" for number in range(count))])


def test_sources_are_checked_at_their_time_stale_after_a_day_and_steered_by_commands(
    tmp_path: Path,
) -> None:
    """R-043, R-045, S-08, S-23 on a server whose clock is moved."""
    source, clock = tmp_path / "checked.csv", tmp_path / "clock"
    source.write_text(rows(40))
    clock.write_text("0")
    settings = {"PLOTI_FILE_ROOTS": str(tmp_path), "PLOTI_TEST_CLOCK": str(clock)}
    with served(tmp_path, **settings) as server:
        server.declare(
            "ds_checked",
            key=["id"],
            source={"kind": "file", "url": str(source)},
            check_every="24h",
        )
        log = server.subscribe("ds_checked")
        first = wait_for_version(server, 1)
        assert first["lastCheckedAt"] < first["nextCheckBy"]

        source.write_text(rows(41))
        clock.write_text(str(DAY + 60))
        wait_for_version(server, 2)

        source.unlink()
        clock.write_text(str(3 * DAY + 120))
        stale = wait_for_event(server, log, "stale")
        assert stale["data"]["reason"] == "check_overdue"
        status = staff(server, "status")
        assert [each["datasetId"] for each in status["failing"]] == ["ds_checked"]
        assert {each["kind"] for each in status["queues"]} == {"check", "prune"}

        source.write_text(rows(25))
        held = staff(server, "check", "ds_checked", "--full")
        assert held["outcome"] == "held"
        staff(server, "holds", "release", held["hold"]["id"])
        [accepted] = staff(server, "holds", "accepted", "ds_checked")["findings"]
        assert (accepted["kind"], accepted["measure"]) == ("few_rows", 25)
        left = staff(server, "holds", "accepted", "ds_checked", "--withdraw", accepted["id"])
        assert left["findings"] == []

        rebuilt = staff(server, "versions", "rebuild", "ds_checked")
        assert (rebuilt["outcome"], rebuilt["version"]) == ("released", 4)
        restored = staff(server, "versions", "restore", "ds_checked", "2")
        assert (restored["version"], restored["counts"]["added"]) == (5, 16)
        paused = staff(server, "datasets", "show", "ds_checked")
        assert (paused["nextCheckBy"], paused["declaration"]["paused"]) == (None, True)
        assert staff(server, "datasets", "resume", "ds_checked")["nextCheckBy"] is not None
        assert staff(server, "datasets", "pause", "ds_checked")["nextCheckBy"] is None
        assert staff(server, "datasets", "remove", "ds_checked")["deliverable"] is False
        removed = wait_for_event(server, log, "removed")
        assert removed["data"]["reason"] == "no_longer_deliverable"
