"""A dataset's whole way over REST: declared, pushed, followed, downloaded, held and reviewed."""

import csv
import hashlib
import io
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import httpx2
import pytest
from tests.e2e.serving import Server, served

FIRST = b"icao,name,lat,lon\nAAAA,Alpha,1.5,2.5\nBBBB,Beta,3.5,4.5\nCCCC,Gamma,5.5,6.5\n"
SECOND = b"icao,name,lat,lon\nBBBB,Beto,3.5,4.5\nCCCC,Gamma,5.5,6.5\nDDDD,Delta,7.5,8.5\n"
WIDER = SECOND.replace(b"lat,lon", b"lat,lon,city").replace(b".5\n", b".5,Y\n")
NARROWER = b"icao,lat,lon\nBBBB,3.5,4.5\nCCCC,5.5,6.5\nDDDD,7.5,8.5\n"
POINTS = {"longitude": "lon", "latitude": "lat"}
Json = dict[str, Any]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("push")) as running:
        yield running


def events(server: Server, log: str) -> list[Json]:
    found: list[Json] = server.get(f"{log}/events").json()["events"]
    return found


def told(server: Server, log: str) -> list[tuple[str, int | None]]:
    return [
        (event["type"].removeprefix("feed.dataset."), event["data"].get("version"))
        for event in events(server, log)
    ]


def version_of(server: Server, dataset: str, number: int, form: str = "geoparquet") -> Json:
    path = f"/v1/feeds/datasets/{dataset}/versions/{number}"
    response = server.get(path, params={"format": form})
    assert response.status_code == 200, response.text
    found: Json = response.json()
    return found


def download(file: Json) -> bytes:
    content = httpx2.get(file["url"]).raise_for_status().content
    assert len(content) == file["bytes"]
    assert hashlib.sha256(content).hexdigest() == file["sha256"]
    return content


def rows(content: bytes) -> list[Json]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def test_a_dataset_goes_its_whole_way(server: Server, tmp_path: Path) -> None:
    server.declare("ds_way", key=["icao"], geometry=POINTS)
    log = server.subscribe("ds_way")
    assert told(server, log) == [("added", None)]
    assert server.push("ds_way", FIRST)["outcome"] == "released"
    assert server.push("ds_way", FIRST)["outcome"] == "unchanged"
    second = server.push("ds_way", SECOND)
    assert (second["version"], second["counts"]) == (2, {"added": 1, "changed": 1, "removed": 1})
    assert told(server, log) == [("added", None), ("resync_required", 1), ("updated", 2)]

    listed = server.get("/v1/feeds/datasets/ds_way/versions").json()["versions"]
    assert [version["version"] for version in listed] == [1, 2]
    version = version_of(server, "ds_way", 2)
    assert {name: version[name] for name in listed[1]} == listed[1]
    [snapshot] = version["files"]["snapshot"]
    path = tmp_path / "snapshot.parquet"
    path.write_bytes(download(snapshot))
    names = duckdb.sql(f"SELECT icao, name FROM '{path}' ORDER BY icao").fetchall()
    assert names == [("BBBB", "Beto"), ("CCCC", "Gamma"), ("DDDD", "Delta")]

    [changes] = version_of(server, "ds_way", 2, "csv")["files"]["changes"]
    by_change = {row["_ploti_change"]: row for row in rows(download(changes))}
    assert by_change["changed"]["name"] == "Beto"
    assert by_change["removed"]["icao"] == ""
    listing = server.get("/v1/feeds/datasets/ds_way/versions/2/changes?limit=2").json()
    rest = server.get(
        f"/v1/feeds/datasets/ds_way/versions/2/changes?cursor={listing['nextCursor']}"
    ).json()
    assert rest["nextCursor"] is None
    in_json = {row["recordId"]: row["change"] for row in listing["changes"] + rest["changes"]}
    assert in_json == {row["_ploti_record_id"]: name for name, row in by_change.items()}

    digest = server.get("/v1/feeds/datasets/ds_way/versions/2/digest").json()
    assert (digest["contentDigest"], digest["rowCount"]) == (version["contentDigest"], 3)
    assert sum(bucket["rows"] for bucket in digest["buckets"]) == 3
    schema = server.get("/v1/feeds/datasets/ds_way/schema").json()
    assert [column["name"] for column in schema["columns"]][-1] == "geometry"


def test_the_manifest_names_the_versions_at_its_cursor(server: Server) -> None:
    """R-137."""
    server.declare("ds_manifest", key=["icao"])
    log = server.subscribe("ds_manifest")
    server.push("ds_manifest", FIRST)
    manifest = server.get(f"{log}/manifest").json()
    assert manifest["eventCursor"] == events(server, log)[-1]["id"]
    [entry] = manifest["datasets"]
    assert (entry["version"], entry["rowCount"]) == (1, 3)
    linked = server.get(entry["links"]["version"]).json()
    assert linked["contentDigest"] == entry["contentDigest"]


def test_the_current_snapshot_has_an_address_that_stays(server: Server) -> None:
    server.declare("ds_stays", key=["icao"])
    server.subscribe("ds_stays")
    path = "/v1/feeds/datasets/ds_stays/current/snapshot"
    assert server.get(path).status_code == 404
    for state, names in ((FIRST, {"Alpha", "Beta", "Gamma"}), (SECOND, {"Beto", "Gamma", "Delta"})):
        server.push("ds_stays", state)
        response = server.get(path, params={"format": "csv"})
        assert response.status_code == 307
        content = httpx2.get(response.headers["location"]).content
        assert {row["name"] for row in rows(content)} == names


def test_a_download_is_resumed_by_a_range_and_proved_by_its_etag(server: Server) -> None:
    server.declare("ds_range", key=["icao"])
    server.subscribe("ds_range")
    server.push("ds_range", FIRST)
    [file] = version_of(server, "ds_range", 1)["files"]["snapshot"]
    first = httpx2.get(file["url"], headers={"range": "bytes=0-99"})
    etag = first.headers["etag"]
    rest = httpx2.get(file["url"], headers={"range": "bytes=100-", "if-range": etag})
    assert (first.status_code, rest.status_code) == (206, 206)
    assert hashlib.sha256(first.content + rest.content).hexdigest() == file["sha256"]
    assert etag == f'"{file["sha256"]}"'
    head = httpx2.head(file["url"])
    assert (head.status_code, head.headers["content-length"]) == (200, str(file["bytes"]))
    assert httpx2.get(file["url"] + "0").status_code == 403


def test_a_wait_is_answered_by_the_release_that_it_waits_for(server: Server) -> None:
    server.declare("ds_wait", key=["icao"])
    log = server.subscribe("ds_wait")
    cursor = events(server, log)[-1]["id"]
    answers: list[tuple[Json, float]] = []

    def wait() -> None:
        """Again where the push outlasts a wait."""
        headers = {"authorization": f"Bearer {server.key}"}
        url = f"{server.url}{log}/events?cursor={cursor}&wait=30"
        while not (answers and answers[-1][0]["events"]):
            began = time.monotonic()
            page: Json = httpx2.get(url, headers=headers, timeout=60).json()
            answers.append((page, time.monotonic() - began))

    waiting = threading.Thread(target=wait)
    waiting.start()
    server.push("ds_wait", FIRST)
    waiting.join()
    page, seconds = answers[-1]
    assert [event["data"]["version"] for event in page["events"]] == [1]
    assert seconds < 30


def test_a_major_change_is_held_and_its_release_tells_it(server: Server) -> None:
    server.declare("ds_hold", key=["icao"])
    log = server.subscribe("ds_hold")
    server.push("ds_hold", FIRST)
    held = server.push("ds_hold", NARROWER)
    assert (held["outcome"], held["hold"]["reason"]) == ("held", "schema_review")
    assert told(server, log)[-1] == ("delayed", 1)
    assert server.get("/v1/feeds/datasets/ds_hold").json()["hold"]["reason"] == "schema_review"
    hold = f"/v1/admin/holds/{held['hold']['id']}"
    assert server.staff("GET", hold).json()["state"] == "open"
    released = server.staff("POST", f"{hold}/release", json={"note": "seen"}).json()
    assert (released["state"], released["note"]) == ("released", "seen")
    assert told(server, log)[-2:] == [("schema_changed", 2), ("resync_required", 2)]
    assert server.staff("POST", f"{hold}/discard", json={}).status_code == 409


def test_a_discarded_version_is_as_if_it_had_never_been(server: Server) -> None:
    server.declare("ds_drop", key=["icao"])
    server.subscribe("ds_drop")
    server.push("ds_drop", FIRST)
    held = server.push("ds_drop", NARROWER)
    server.staff("POST", f"/v1/admin/holds/{held['hold']['id']}/discard", json={})
    assert server.push("ds_drop", NARROWER)["outcome"] == "unchanged"
    assert server.push("ds_drop", WIDER)["version"] == 3
    listed = server.get("/v1/feeds/datasets/ds_drop/versions").json()["versions"]
    assert [(v["version"], v["previousVersion"]) for v in listed] == [(1, None), (3, 1)]


def test_a_dry_run_says_how_it_would_end_and_keeps_nothing(server: Server) -> None:
    server.declare("ds_dry", key=["icao"])
    path = "/v1/admin/datasets/ds_dry/push?name=a.csv&dryRun=true"
    outcome = server.staff("POST", path, content=FIRST).json()
    assert (outcome["outcome"], outcome["counts"]["added"]) == ("released", 3)
    assert server.staff("GET", "/v1/admin/datasets/ds_dry").json()["current"] is None
    assert list((server.data / "blobs").rglob("*ds_dry*/**/*.parquet")) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"<!DOCTYPE html><html><body>Sorry</body></html>", "HTML"),
        (b"name,lat\nAlpha,1\n", "icao"),
        (b"icao,name\nAAAA\n", "line 2"),
        (b"", "empty"),
    ],
)
def test_what_is_no_state_fails_on_one_line_and_leaves_all_as_it_was(
    server: Server, content: bytes, said: str
) -> None:
    server.declare("ds_wrong", key=["icao"])
    outcome = server.push("ds_wrong", content)
    assert outcome["outcome"] == "failed"
    assert said.lower() in outcome["detail"].lower()
    assert "\n" not in outcome["detail"]
    assert str(server.data) not in outcome["detail"]
    assert server.staff("GET", "/v1/admin/datasets/ds_wrong").json()["current"] is None


def test_a_push_over_the_limit_is_refused(tmp_path: Path) -> None:
    with served(tmp_path, "--max-source", "1000") as small:
        small.declare("ds_big", key=["icao"])
        path = "/v1/admin/datasets/ds_big/push?name=a.csv"
        response = small.staff("POST", path, content=FIRST + b"x" * 1000)
        assert (response.status_code, response.json()["code"]) == (413, "too_large")
        assert small.push("ds_big", FIRST)["outcome"] == "released"


def test_a_build_over_its_memory_is_a_failed_push_that_names_the_setting(tmp_path: Path) -> None:
    with served(tmp_path, "--build-memory", "150MiB") as small:
        small.declare("ds_big", key=["icao"])
        outcome = small.push("ds_big", FIRST)
        assert outcome["outcome"] == "failed"
        assert "PLOTI_BUILD_MEMORY" in outcome["detail"]
        assert small.get("/healthz").status_code == 200


def test_a_source_in_an_opened_folder_is_checked_by_rest(tmp_path: Path) -> None:
    opened = tmp_path / "open"
    opened.mkdir()
    (opened / "a.csv").write_bytes(FIRST)
    with served(tmp_path, "--file-roots", str(opened)) as server:
        source = {"kind": "file", "url": str(opened / "a.csv")}
        server.declare("ds_file", key=["icao"], source=source)
        server.subscribe("ds_file")
        check = "/v1/admin/datasets/ds_file/check"
        assert server.staff("POST", check).json()["outcome"] == "released"
        assert server.staff("POST", check).json()["outcome"] == "unchanged"
        server.declare("ds_pushed", key=["icao"])
        pushed = server.staff("POST", "/v1/admin/datasets/ds_pushed/check")
        assert (pushed.status_code, pushed.json()["code"]) == (409, "conflict")


def test_a_state_of_many_columns_is_built_within_the_memory(server: Server) -> None:
    server.declare("ds_wide", key=["c0"])
    names = ",".join(f"c{number}" for number in range(150))
    for value in (b"1", b"2"):
        state = f"{names}\n".encode() + b",".join([b"7", *[value] * 149]) + b"\n"
        outcome = server.push("ds_wide", state)
        assert outcome["outcome"] == "released", outcome


def test_a_key_that_repeats_is_held_released_and_accepted_from_then_on(server: Server) -> None:
    """S-05: released, each of the rows is a record; the same finding holds no later version."""
    server.declare("ds_twins", key=["id"])
    first = server.push("ds_twins", b"id,n\na,1\na,2\nb,3\n")
    assert (first["outcome"], first["hold"]["reason"]) == ("held", "data_check")
    path = f"/v1/admin/holds/{first['hold']['id']}/release"
    assert server.staff("POST", path, json={"note": "known"}).status_code == 200
    assert server.push("ds_twins", b"id,n\nb,3\na,2\na,1\n")["outcome"] == "unchanged"
    second = server.push("ds_twins", b"id,n\na,1\na,5\nb,3\n")
    assert second["outcome"] == "released"
    assert second["counts"] == {"added": 0, "changed": 1, "removed": 0}


def test_a_dataset_without_a_key_has_versions_like_another(server: Server) -> None:
    server.declare("ds_keyless", key=[])
    assert server.push("ds_keyless", b"a,b\n1,x\n1,x\n2,y\n")["outcome"] == "released"
    second = server.push("ds_keyless", b"a,b\n2,y\n1,x\n3,z\n1,x\n1,x\n")
    assert second["outcome"] == "released"
    assert second["counts"] == {"added": 2, "changed": 0, "removed": 0}
