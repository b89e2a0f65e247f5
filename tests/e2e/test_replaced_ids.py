"""Ids replaced by staff on a real server, and what subscribers make of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
from tests.e2e.serving import Server, environment, served
from tests.fakes import forked

import ploti

STATE = b"code,name\nA1,Alpha\nB2,Beta\nC3,Gamma\n"
Json = dict[str, Any]


def run(server: Server, key: str, *arguments: str) -> Json:
    """What a command prints as JSON."""
    env = environment(PLOTI_API_URL=server.url, PLOTI_API_KEY=key)
    done = forked.run(*arguments, "--json", env=env)
    assert done.returncode == 0, done.stderr + server.log()
    found: Json = json.loads(done.stdout)
    return found


def staff(server: Server, *arguments: str) -> Json:
    """What a command about ids prints for staff."""
    return run(server, server.staff_key, "admin", "ids", *arguments)


def synced(server: Server, log: str, file: Path) -> dict[str, str]:
    """The ids by code in a table that follows the subscription."""
    subscription = log.rpartition("/")[2]
    run(server, server.key, "feeds", "sync", subscription, "--to", f"duckdb:{file}")
    verified = run(server, server.key, "feeds", "verify", subscription, "--to", f"duckdb:{file}")
    assert verified
    with duckdb.connect(str(file)) as connection:
        rows = connection.execute("SELECT code, _ploti_record_id FROM towns").fetchall()
    return dict(rows)


def test_approved_ids_reach_a_follower_and_their_maps_lead_there_r059_r104_s24(
    tmp_path: Path,
) -> None:
    with served(tmp_path) as server:
        server.declare("ds_towns", key=["code"])
        log = server.subscribe("ds_towns")
        server.push("ds_towns", STATE)
        before = synced(server, log, tmp_path / "towns.duckdb")
        proposal = staff(server, "replace", "ds_towns")
        listed = staff(server, "proposals", "ds_towns")
        assert [each["id"] for each in listed["proposals"]] == [proposal["id"]]
        assert staff(server, "show", proposal["id"]) == proposal
        note = ("--note", "numbered anew")
        done = staff(server, "approve", proposal["id"], *note)
        assert (done["outcome"], done["version"]) == ("released", 2)
        server.push("ds_towns", STATE.replace(b"A1,Alpha\n", b""))
        again = staff(server, "replace", "ds_towns", "--from", "name")
        staff(server, "approve", again["id"])
        last = staff(server, "replace", "ds_towns")
        rejected = staff(server, "reject", last["id"])
        assert rejected["state"] == "rejected"

        after = synced(server, log, tmp_path / "towns.duckdb")
        assert after == {"B2": "rec_000000040000000000", "C3": "rec_000000040000000001"}
        with ploti.Client(server.key, url=server.url) as client:
            whole = client.feeds.id_map("ds_towns", 1, 4)
            assert {before[code]: after[code] for code in after}.items() <= whole.items()
            assert whole[before["A1"]] == "rec_000000020000000000"
            assert client.feeds.id_map("ds_towns", 2, 3) == {}
            version = client.feeds.datasets.version("ds_towns", 4)
            assert version.files.id_map is not None
            assert version.files.id_map[0].rows == 2
        events = server.get(f"{log}/events").json()["events"]
        assert [event["data"].get("reason") for event in events[1:]] == [
            *("first_version", "record_ids_changed", None, "record_ids_changed"),
        ]
        kinds = server.staff("POST", "/v1/admin/datasets/ds_towns/proposals", json={"from": "no"})
        assert kinds.status_code == 400
        assert kinds.json()["errors"][0]["field"] == "from"


def test_there_must_be_a_proposal_to_show_or_decide(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        path = "/v1/admin/proposals/prop_none"
        for answer in (
            server.staff("GET", path),
            server.staff("POST", f"{path}/approve", json={}),
            server.staff("POST", f"{path}/reject", json={}),
        ):
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
