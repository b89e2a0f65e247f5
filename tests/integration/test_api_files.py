"""Files behind signed links: whole, in parts, by their head, and not without the signature."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from tests.integration.running import BASE, Running, problem

from ploti.model.wire import Instant

CONTENT = os.urandom(700_001)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
SIZE = len(CONTENT)


async def stream() -> AsyncIterator[bytes]:
    yield CONTENT


@pytest.fixture(scope="module")
def link(api: Running) -> str:
    name = "datasets/ds_a/1/att_1/snapshot.parquet"
    api.call(api.blobs.receive(name, stream(), limit=SIZE))
    return signed(api, name)


def signed(api: Running, name: str, *, file_name: str = "ds_a_v1.parquet", hours: int = 1) -> str:
    until = Instant.of(api.clock.now() + timedelta(hours=hours))
    link = api.blobs.link(name, file_name=file_name, sha256=SHA256, expires_at=until)
    return link.removeprefix(BASE)


def test_a_link_gives_the_whole_file_without_a_key(api: Running, link: str) -> None:
    """R-210."""
    response = api.get(link, key=None)
    assert (response.status_code, response.content) == (200, CONTENT)
    assert response.headers["etag"] == f'"{SHA256}"'
    assert response.headers["accept-ranges"] == "bytes"
    assert response.headers["content-length"] == str(SIZE)
    assert response.headers["content-type"] == "application/vnd.apache.parquet"
    assert response.headers["content-disposition"].endswith("''ds_a_v1.parquet")


def test_the_name_to_save_under_is_quoted_whatever_it_is(api: Running, link: str) -> None:
    name = "datasets/ds_a/1/att_1/snapshot.parquet"
    hostile = signed(api, name, file_name='a"\r\nx: y/é.csv')
    headers = api.get(hostile, key=None).headers
    assert headers["content-disposition"] == (
        "attachment; filename*=UTF-8''a%22%0D%0Ax%3A%20y%2F%C3%A9.csv"
    )
    assert headers["content-type"] == "text/csv; charset=utf-8"
    assert "x" not in headers


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=5-9", 5, 10),
        ("bytes=700000-", 700_000, SIZE),
        ("bytes=300000-600000", 300_000, 600_001),
        ("bytes=10-9999999", 10, SIZE),
        ("bytes=-1", SIZE - 1, SIZE),
        ("bytes=-9999999", 0, SIZE),
        ("bytes=0-", 0, SIZE),
    ],
)
def test_a_range_gives_just_its_bytes(
    api: Running, link: str, asked: str, start: int, end: int
) -> None:
    response = api.get(link, key=None, headers={"range": asked})
    assert (response.status_code, response.content) == (206, CONTENT[start:end])
    assert response.headers["content-range"] == f"bytes {start}-{end - 1}/{SIZE}"
    assert response.headers["content-length"] == str(end - start)


@pytest.mark.parametrize("asked", [f"bytes={SIZE}-", "bytes=9999999-", "bytes=5-4", "bytes=-0"])
def test_a_range_outside_the_file_is_a_problem_that_says_its_size(
    api: Running, link: str, asked: str
) -> None:
    response = api.get(link, key=None, headers={"range": asked})
    problem(response, 416, "invalid_input")
    assert response.headers["content-range"] == f"bytes */{SIZE}"


@pytest.mark.parametrize("asked", ["bytes=0-1,5-6", "lines=1-2", "bytes=a-b", "bytes=-", ""])
def test_a_range_of_another_kind_gives_the_whole_file(api: Running, link: str, asked: str) -> None:
    response = api.get(link, key=None, headers={"range": asked})
    assert (response.status_code, len(response.content)) == (200, SIZE)


def test_if_range_gives_the_part_only_of_the_same_file(api: Running, link: str) -> None:
    def status(etag: str) -> int:
        headers = {"range": "bytes=0-9", "if-range": etag}
        return api.get(link, key=None, headers=headers).status_code

    assert status(f'"{SHA256}"') == 206
    assert status('"other"') == 200
    assert status(f'W/"{SHA256}"') == 200
    assert status("Mon, 30 Nov 2026 12:00:00 GMT") == 200


def test_if_none_match_spares_a_file_that_is_known(api: Running, link: str) -> None:
    for known in (f'"{SHA256}"', f'"other", "{SHA256}"', "*", f'W/"{SHA256}"'):
        response = api.get(link, key=None, headers={"if-none-match": known})
        assert (response.status_code, response.content) == (304, b"")
    assert api.get(link, key=None, headers={"if-none-match": '"other"'}).status_code == 200


def test_the_head_of_a_file_is_that_of_the_whole(api: Running, link: str) -> None:
    head = api.send("HEAD", link, key=None, headers={"range": "bytes=0-9"})
    assert head.status_code == 200
    assert head.headers["content-length"] == str(SIZE)
    assert head.headers["etag"] == f'"{SHA256}"'


def test_a_link_that_is_expired_changed_or_cut_is_forbidden_s46(api: Running, link: str) -> None:
    name = "datasets/ds_a/1/att_1/snapshot.parquet"
    path, _, query = link.partition("?")
    for other in (
        signed(api, name, hours=-1),
        link.replace("ds_a_v1", "ds_a_v2"),
        link.replace("/1/att_1/", "/1/att_2/"),
        f"{link}&more=1",
        f"{link}&file=ds_a_v1.parquet",
        path,
        f"{path}?{query.partition('&')[2]}",
        "/files/../../etc/passwd",
        "/files/%2e%2e/secret?" + query,
    ):
        response = api.get(other, key=None)
        assert response.status_code in {403, 404}, other
        problem(response, response.status_code, response.json()["code"])
        assert response.status_code == 403 or "/files/" not in other or ".." in other


def test_a_file_that_is_not_kept_any_more_is_not_found(api: Running) -> None:
    problem(api.get(signed(api, "datasets/ds_a/9/att_1/x.csv"), key=None), 404, "not_found")


def test_an_empty_file_is_whole_and_has_no_ranges(api: Running) -> None:
    async def nothing() -> AsyncIterator[bytes]:
        for _ in range(0):
            yield b""

    api.call(api.blobs.receive("datasets/empty", nothing(), limit=1))
    link = signed(api, "datasets/empty")
    assert api.get(link, key=None).content == b""
    problem(api.get(link, key=None, headers={"range": "bytes=0-"}), 416, "invalid_input")


def test_many_read_one_file_side_by_side(api: Running, link: str) -> None:
    async def read_all() -> list[int]:
        requests = [api.http.get(link) for _ in range(20)]
        return [len(response.content) for response in await asyncio.gather(*requests)]

    assert api.call(read_all()) == [SIZE] * 20
