"""Downloads against a server that breaks, expires, changes and damages by script."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes import api
from tests.fakes.api import Breaks, Drips, Handler, Reply, Server, problem

import ploti
from ploti.client import files, problems, transport
from ploti.client.files import DamagedFile, MissingFile, fetch_file

BODY = os.urandom(700_000)
VERSION = "GET /v1/feeds/datasets/ds_a/versions/3"
FORBIDDEN = Reply(b"<Error>AccessDenied</Error>", 403)
REFRESHED = "GET /files/2"
FILE = "GET /files/1"


def file(link: int, body: bytes) -> dict[str, object]:
    return {
        "url": f"http://127.0.0.1:{{port}}/files/{link}",
        "format": "geoparquet",
        "rows": 5,
        "bytes": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
    }


def version(server: Server, link: int = 1, body: bytes = BODY, **kept: object) -> Reply:
    listed = file(link, body)
    listed["url"] = f"{server.url}/files/{link}"
    links = {"snapshot": [listed], "changes": None, "idMap": None, "schema": listed} | kept
    counts = {"added": 1, "changed": 2, "removed": 3}
    return Reply(
        {
            "datasetId": "ds_a",
            "version": 3,
            "previousVersion": 2,
            "schemaVersion": "1.0",
            "publishedAt": "2026-10-18T06:13:02.000Z",
            "sourceFetchedAt": "2026-10-18T06:13:02.000Z",
            "rowCount": 5,
            "counts": counts,
            "resyncRequired": False,
            "reason": None,
            "schemaChange": None,
            "contentDigest": "",
            "files": links | {"expiresAt": "2026-10-18T07:13:02.000Z"},
        }
    )


def serves(body: bytes, *, most: int | None = None) -> api.Answer:
    """Answers Range requests out of `body`, and breaks off after `most` bytes each time."""

    def answer(handler: Handler) -> None:
        asked = handler.headers.get("Range")
        offset = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        rest = body[offset:]
        headers = {"Content-Range": f"bytes {offset}-{len(body) - 1}/{len(body)}"} if asked else {}
        sent = rest if most is None else rest[:most]
        Breaks(sent, length=len(rest), status=206 if asked else 200, headers=headers)(handler)

    return answer


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problems, "FIRST_PAUSE", 0.001)


@pytest.fixture
def server() -> Iterator[Server]:
    with api.running() as running:
        running.on(VERSION, version(running))
        running.on(FILE, serves(BODY))
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[ploti.Client]:
    with ploti.Client("ploti_secret", url=server.url, timeout=20) as client:
        yield client


def ranges(server: Server, call: str = FILE) -> list[str | None]:
    return [seen.headers.get("range") for seen in server.asked(call)]


def test_a_file_has_its_name_only_when_it_is_whole_and_right(
    server: Server, client: ploti.Client, tmp_path: Path
) -> None:
    told: list[int] = []

    def progress(done: int, total: int | None) -> None:
        assert not (tmp_path / "a.parquet").exists()
        assert total == len(BODY)
        told.append(done)

    to = fetch_file(client, "ds_a", 3, "snapshot", to=tmp_path / "a.parquet", progress=progress)
    assert to == tmp_path / "a.parquet"
    assert to.read_bytes() == BODY
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]
    assert told[-1] == len(BODY)


def test_the_key_does_not_go_to_the_address_of_a_file_s11(
    server: Server, client: ploti.Client, tmp_path: Path
) -> None:
    fetch_file(client, "ds_a", 3, "snapshot", to=tmp_path / "a")
    assert "authorization" in server.asked(VERSION)[0].headers
    assert "authorization" not in server.asked(FILE)[0].headers


def test_a_broken_download_goes_on_where_it_broke(
    server: Server, client: ploti.Client, tmp_path: Path
) -> None:
    server.on(FILE, serves(BODY, most=200_000))
    to = fetch_file(client, "ds_a", 3, "snapshot", to=tmp_path / "a")
    assert to.read_bytes() == BODY
    assert ranges(server) == [None, "bytes=200000-", "bytes=400000-", "bytes=600000-"]
    assert len(server.asked(VERSION)) == 1


def test_a_download_that_was_given_up_goes_on_the_next_time(
    server: Server, client: ploti.Client, tmp_path: Path
) -> None:
    server.on(FILE, serves(BODY, most=300_000), problem(404, "not_found", "Gone."))
    with pytest.raises(ploti.NotFound):
        fetch_file(client, "ds_a", 3, "snapshot", to=tmp_path / "a")
    assert (tmp_path / "a.part").stat().st_size == 300_000
    server.on(FILE, serves(BODY))
    assert fetch_file(client, "ds_a", 3, "snapshot", to=tmp_path / "a").read_bytes() == BODY
    assert ranges(server)[-1] == "bytes=300000-"


def test_a_part_of_another_file_costs_a_second_download_and_nothing_else(
    server: Server, client: ploti.Client, tmp_path: Path
) -> None:
    (tmp_path / "a.part").write_bytes(b"x" * 1000)
    assert fetch_file(client, "ds_a", 3, "snapshot", to=tmp_path / "a").read_bytes() == BODY
    assert ranges(server) == ["bytes=1000-", None]


def test_a_server_that_knows_no_ranges_is_read_from_the_start(
    server: Server, client: ploti.Client, tmp_path: Path
) -> None:
    (tmp_path / "a.part").write_bytes(BODY[:1000])
    server.on(FILE, Reply(BODY))
    assert fetch_file(client, "ds_a", 3, "snapshot", to=tmp_path / "a").read_bytes() == BODY


def test_an_answer_from_another_place_than_asked_for_is_not_appended(
    server: Server, client: ploti.Client, tmp_path: Path
) -> None:
    (tmp_path / "a.part").write_bytes(BODY[:1000])
    shifted = Reply(BODY, 206, {"Content-Range": f"bytes 0-{len(BODY) - 1}/{len(BODY)}"})
    server.on(FILE, shifted)
    assert fetch_file(client, "ds_a", 3, "snapshot", to=tmp_path / "a").read_bytes() == BODY


def test_expired_links_are_asked_for_anew_and_the_download_goes_on_s46(
    server: Server, client: ploti.Client, tmp_path: Path
) -> None:
    server.on(VERSION, version(server, 1), version(server, 2))
    server.on(FILE, serves(BODY, most=200_000), FORBIDDEN)
    server.on(REFRESHED, serves(BODY))
    assert fetch_file(client, "ds_a", 3, "snapshot", to=tmp_path / "a").read_bytes() == BODY
    assert ranges(server, REFRESHED) == ["bytes=200000-"]


def test_links_that_expire_again_and_again_are_renewed_while_the_download_gets_on(
    server: Server, client: ploti.Client, tmp_path: Path
) -> None:
    piece = serves(BODY, most=150_000)
    server.on(FILE, *[piece, FORBIDDEN] * 4, piece)
    assert fetch_file(client, "ds_a", 3, "snapshot", to=tmp_path / "a").read_bytes() == BODY
    assert len(server.asked(VERSION)) == 5


def test_links_that_are_refused_fresh_are_asked_for_only_once(
    server: Server, client: ploti.Client, tmp_path: Path
) -> None:
    server.on(FILE, FORBIDDEN)
    with pytest.raises(ploti.SyncError, match="refuses the links"):
        fetch_file(client, "ds_a", 3, "snapshot", to=tmp_path / "a")
    assert len(server.asked(VERSION)) == 2
    assert len(server.asked(FILE)) == 2


def test_a_fresh_link_to_another_file_is_not_mixed_in(
    server: Server, client: ploti.Client, tmp_path: Path
) -> None:
    server.on(VERSION, version(server, 1), version(server, 2, body=BODY[::-1]))
    server.on(FILE, serves(BODY, most=200_000), FORBIDDEN)
    server.on(REFRESHED, serves(BODY[::-1]))
    with pytest.raises(ploti.SyncError, match="another file"):
        fetch_file(client, "ds_a", 3, "snapshot", to=tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_damaged_bytes_never_get_the_name_and_are_not_kept(
    server: Server, client: ploti.Client, tmp_path: Path
) -> None:
    server.on(FILE, serves(BODY[:-1] + bytes([BODY[-1] ^ 1])))
    with pytest.raises(DamagedFile, match="snapshot of version 3 of ds_a"):
        fetch_file(client, "ds_a", 3, "snapshot", to=tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "answer",
    [Reply(BODY[:-1]), Reply(BODY + b"x"), Breaks(b"", length=700_000), Reply(b"", 503)],
    ids=["short", "long", "broken", "busy"],
)
def test_a_file_that_never_comes_whole_is_an_error_after_a_few_tries(
    server: Server, client: ploti.Client, tmp_path: Path, answer: api.Answer
) -> None:
    server.on(FILE, answer)
    with pytest.raises((ploti.SyncError, ploti.TransportError)):
        fetch_file(client, "ds_a", 3, "snapshot", to=tmp_path / "a")
    assert not (tmp_path / "a").exists()
    assert len(server.asked(FILE)) <= problems.TRIES + 1


def test_a_file_that_only_drips_is_broken_off(
    server: Server, client: ploti.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PATIENCE", 0.1)
    server.on(FILE, Drips())
    with pytest.raises(ploti.TransportError, match=r"less than 131072 bytes came in 0\.1 s"):
        fetch_file(client, "ds_a", 3, "snapshot", to=tmp_path / "a")


def test_a_file_whose_head_only_drips_is_broken_off(
    server: Server, client: ploti.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "CONNECT", 0.1)
    monkeypatch.setattr(transport, "STALL", 0.1)
    server.on(FILE, Drips(head=b"HTTP/1.1 200 OK\r\nX-Slow: "))
    with pytest.raises(ploti.TransportError, match="went silent"):
        fetch_file(client, "ds_a", 3, "snapshot", to=tmp_path / "a")
    assert len(server.asked(FILE)) == problems.TRIES


def test_a_link_that_is_no_address_is_one_clear_error(
    server: Server, client: ploti.Client, tmp_path: Path
) -> None:
    broken = file(1, BODY) | {"url": "http://127.0.0.1:port/a"}
    server.on(VERSION, version(server, snapshot=[broken]))
    with pytest.raises(ploti.TransportError, match="is no address"):
        fetch_file(client, "ds_a", 3, "snapshot", to=tmp_path / "a")


def test_a_file_that_is_there_is_not_downloaded_again(
    server: Server, client: ploti.Client, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(BODY)
    fetch_file(client, "ds_a", 3, "snapshot", to=tmp_path / "a")
    assert server.asked(FILE) == []


def test_what_a_version_has_not_is_said(client: ploti.Client, tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="changes of version 3 of ds_a"):
        fetch_file(client, "ds_a", 3, "changes", to=tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_role_that_there_is_not_is_told_with_those_that_there_are(
    client: ploti.Client, tmp_path: Path
) -> None:
    with pytest.raises(ploti.ConfigError, match="'rows' is no file of a version: give snapshot, "):
        client.feeds.datasets.download("ds_a", 3, to=tmp_path / "a", role="rows")


def test_the_schema_is_a_file_too(client: ploti.Client, tmp_path: Path) -> None:
    assert fetch_file(client, "ds_a", 3, "schema", to=tmp_path / "a").read_bytes() == BODY


def test_an_empty_file_is_a_file(server: Server, client: ploti.Client, tmp_path: Path) -> None:
    server.on(VERSION, version(server, 1, body=b""))
    assert fetch_file(client, "ds_a", 3, "snapshot", to=tmp_path / "a").read_bytes() == b""


def test_a_refusal_of_the_version_is_the_error(
    server: Server, client: ploti.Client, tmp_path: Path
) -> None:
    server.on(VERSION, problem(409, "not_subscribed", "Subscribe to it."))
    with pytest.raises(ploti.NotSubscribed, match="Subscribe"):
        fetch_file(client, "ds_a", 3, "snapshot", to=tmp_path / "a")


def test_a_csv_in_the_making_is_waited_for(
    server: Server, client: ploti.Client, tmp_path: Path
) -> None:
    making = problem(503, "unavailable", "It is being made.", Retry_After="0")
    server.on(VERSION, *[making] * 9, version(server))
    fetch_file(client, "ds_a", 3, "snapshot", format="csv", to=tmp_path / "a")
    assert {seen.query["format"] for seen in server.asked(VERSION)} == {"csv"}


def test_a_folder_that_is_not_there_is_one_clear_error(
    client: ploti.Client, tmp_path: Path
) -> None:
    with pytest.raises(ploti.SyncError, match=r"cannot write .*/none/a: No such file"):
        fetch_file(client, "ds_a", 3, "snapshot", to=tmp_path / "none" / "a")


def test_the_current_version_is_meant_where_none_is_given(
    server: Server, client: ploti.Client, tmp_path: Path
) -> None:
    current = {"version": 3, "schemaVersion": "1.0", "rowCount": 5}
    names = ["license", "attribution", "lastCheckedAt", "nextCheckBy", "hold"]
    dataset = {"id": "ds_a", "title": "A", "place": "us", "topic": "x", "keyColumns": []}
    current |= {"publishedAt": "2026-10-18T06:13:02.000Z"}
    call = "GET /v1/feeds/datasets/ds_a"
    server.on(call, Reply(dataset | dict.fromkeys(names) | {"current": current}))
    assert client.feeds.datasets.download("ds_a", to=tmp_path / "a").read_bytes() == BODY
    server.on(call, Reply(dataset | dict.fromkeys(names) | {"current": None}))
    with pytest.raises(MissingFile, match="no version yet"):
        client.feeds.datasets.download("ds_a", to=tmp_path / "b")
