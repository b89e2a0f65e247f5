"""What the references say of an event's links: followed on a real server, to the last byte."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import httpx2
import pyarrow.parquet as pq
import pytest
from tests.e2e.serving import Server, served

DATASET = "ds_towns"
PAIRS = {("upsert", "added"), ("upsert", "changed"), ("delete", "removed")}
COORDINATES = {"longitude": "x", "latitude": "y"}
Json = dict[str, Any]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("links")) as running:
        running.declare(DATASET, key=["code"], geometry=COORDINATES)
        running.subscribe(DATASET)
        running.push(DATASET, b"code,name,x,y\nA1,Alpha,1,1\nB2,Beta,2,2\nC3,Gamma,3,3\n")
        running.push(DATASET, b"code,name,x,y\nA1,Alpha,1,1\nB2,Berta,2,2\nD4,Delta,4,4\n")
        yield running


@pytest.fixture
def links(server: Server) -> Json:
    """The links of the newest event."""
    subscription = server.get("/v1/feeds/subscriptions").json()["subscriptions"][0]
    events = server.get(f"/v1/feeds/subscriptions/{subscription['id']}/events").json()["events"]
    assert events[-1]["type"] == "feed.dataset.updated"
    found: Json = events[-1]["data"]["links"]
    return found


def follow(server: Server, link: str) -> Json:
    """What a link answers for the key."""
    answer = httpx2.get(link, headers={"authorization": f"Bearer {server.key}"}, timeout=60)
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


def fetch(file: Json) -> bytes:
    """A file of a version, for which no key is needed; its size and sha256 are as stated."""
    answer = httpx2.get(file["url"], timeout=60)
    assert answer.status_code == 200, answer.text
    assert len(answer.content) == file["bytes"]
    assert hashlib.sha256(answer.content).hexdigest() == file["sha256"]
    return answer.content


def rows(file: Json) -> list[Json]:
    table = pq.read_table(io.BytesIO(fetch(file)))
    assert table.num_rows == file["rows"]
    return table.drop_columns(["geometry", "_ploti_bbox"]).to_pylist()


def test_both_links_are_followed_with_the_key_and_not_without_r023_r024_r091(
    server: Server, links: Json
) -> None:
    version, schema = follow(server, links["version"]), follow(server, links["schema"])
    assert (version["datasetId"], version["version"], version["previousVersion"]) == (DATASET, 2, 1)
    assert [column["name"] for column in schema["columns"]][:2] == ["code", "name"]
    assert schema["schemaVersion"] == version["schemaVersion"] == "1.0"
    for link in links.values():
        assert httpx2.get(link).status_code == 401


def test_the_files_are_the_versions_snapshot_changes_and_schema_r088_r102_r103_r210(
    server: Server, links: Json
) -> None:
    version = follow(server, links["version"])
    files = version["files"]
    (snapshot,), (changes,) = files["snapshot"], files["changes"]
    names = {row["code"]: row["name"] for row in rows(snapshot)}
    assert names == {"A1": "Alpha", "B2": "Berta", "D4": "Delta"}
    changed = {
        row["_ploti_change"]: (row["_ploti_op"], row["code"], row["name"]) for row in rows(changes)
    }
    assert changed == {
        "added": ("upsert", "D4", "Delta"),
        "changed": ("upsert", "B2", "Berta"),
        "removed": ("delete", None, None),
    }
    assert snapshot["rows"] == version["rowCount"] == 3
    assert changes["rows"] == sum(version["counts"].values()) == 3
    assert b'"name"' in fetch(files["schema"])


def test_files_are_geoparquet_unless_csv_is_asked_for_r101(server: Server, links: Json) -> None:
    files = follow(server, links["version"])["files"]
    (snapshot,) = files["snapshot"]
    assert snapshot["format"] == "geoparquet"
    assert b"geo" in pq.read_schema(io.BytesIO(fetch(snapshot))).metadata
    (as_csv,) = follow(server, f"{links['version']}?format=csv")["files"]["snapshot"]
    assert as_csv["format"] == "csv"
    assert fetch(as_csv).decode().splitlines()[0] == "_ploti_record_id,code,name,x,y,geometry"


def test_the_changes_are_answered_as_json_too_and_there_are_three_kinds_r107_r114(
    server: Server, links: Json
) -> None:
    (file,) = follow(server, links["version"])["files"]["changes"]
    listed = follow(server, f"{links['version']}/changes")["changes"]
    assert {(each["op"], each["change"]) for each in listed} == PAIRS
    in_file = {
        (row["_ploti_op"], row["_ploti_change"], row["_ploti_record_id"]) for row in rows(file)
    }
    assert {(each["op"], each["change"], each["recordId"]) for each in listed} == in_file


def test_a_dataset_of_the_size_of_the_reference_has_files_of_its_sizes_r211(
    server: Server, tmp_path: Path
) -> None:
    """184,220 rows, of which 212 came, 38 changed and 3 went: what the reference shows."""
    server.declare("ds_permits", key=["permit"])
    server.subscribe("ds_permits")
    server.push("ds_permits", permits(tmp_path, since=0, until=184_011, changed=0), name="p.csv")
    outcome = server.push("ds_permits", permits(tmp_path, since=3, until=184_223, changed=38))
    assert outcome["counts"] == {"added": 212, "changed": 38, "removed": 3}
    version = server.get("/v1/feeds/datasets/ds_permits/versions/2").json()
    (snapshot,), (changes,) = version["files"]["snapshot"], version["files"]["changes"]
    assert (snapshot["rows"], changes["rows"]) == (184_220, 253)
    assert snapshot["bytes"] <= 21_933_012
    assert changes["bytes"] <= 48_210
    assert version["files"]["schema"]["bytes"] <= 4_120


def permits(folder: Path, *, since: int, until: int, changed: int) -> bytes:
    """A table of permits from one number to another, with the first few values changed."""
    path = folder / "permits.csv"
    duckdb.sql(
        "SELECT n AS permit, DATE '2010-01-01' + (n // 40)::INTEGER AS issued,"
        " ['Deck', 'Pool', 'Shed', 'Barn'][n * 7 % 4 + 1] AS kind,"
        f" md5((n + CASE WHEN n - {since} < {changed} THEN 1 ELSE 0 END)::VARCHAR) AS applicant,"
        " n * 7919 % 100000 AS cost, n * 104729 % 9000 || ' Main Street' AS address"
        f" FROM range({since}, {until}) t(n)"
    ).write_csv(str(path))
    return path.read_bytes()
