"""Cases A13 to A16 and A20: rows that a source gives in pages, each once and all of them."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.cases.cases import FOLDER, case
from tests.fakes.builds import Builds, declare
from tests.fakes.paged_server import Datastore, Soda

from ploti.errors import SourceError
from ploti.model.version import Counts
from ploti.model.wire import Instant
from ploti.server.adapters.blobs import FolderBlobs, LinkSigner
from ploti.server.adapters.fetcher import SourceFetcher
from ploti.server.adapters.fetcher.limits import Limits
from ploti.server.build.candidate import Candidate
from ploti.server.ports.outside import Fetched
from ploti.server.sources.declaration import Source

BLOB = "states/ds_a/att_1"


def rows_of(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FOLDER / name).read_text())
    return found


def read(folder: Path, server: Soda | Datastore | web.Response, kind: str) -> bytes:
    """What is fetched of a fake server."""

    async def answer(request: web.Request) -> web.Response:
        if isinstance(server, web.Response):
            return web.Response(body=server.body, content_type="application/json")
        return await server.answer(request)

    async def main() -> bytes:
        moment = Instant.parse("2026-01-01T00:00:00Z")
        signer = LinkSigner(b"s" * 32, base="http://x/", now=lambda: moment)
        blobs = FolderBlobs(folder / "blobs", signer=signer)
        fetcher = SourceFetcher(
            blobs,
            file_roots=(),
            allow_networks=("127.0.0.0/8",),
            max_source=1 << 22,
            user_agent="ploti/test",
            limits=Limits(pauses=(0, 0)),
        )
        app = web.Application()
        app.router.add_get("/{path:.*}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            url = f"http://127.0.0.1:{runner.addresses[0][1]}/rows?resource_id=1"
            fetched = await fetcher.fetch(Source(kind=kind, url=url), into=BLOB)
            assert isinstance(fetched, Fetched)
            assert fetched.name == f"{kind}.ndjson"
            return await blobs.read(BLOB)
        finally:
            fetcher.close()
            await runner.cleanup()

    return asyncio.run(main())


def build(builds: Builds, state: bytes) -> Candidate:
    result = builds.build(state, name="rows.ndjson")
    assert isinstance(result, Candidate), result
    return result


@pytest.mark.parametrize("number", ["A13", "A14", "A16"])
def test_all_rows_of_a_socrata_source_come_once(number: str, tmp_path: Path) -> None:
    """A13 more rows than a page has, A14 no order of its own, A16 a field that comes last."""
    given, expected = case(number), case(number)["expect"]
    server = Soda(rows_of(given["serve"]["rows_file"]), given["serve"])
    server.page_size = given["given"].get("page_size")
    state = read(tmp_path, server, "socrata")
    source = {"kind": "socrata", "url": "https://data.example/resource/a.json"}
    builds = Builds(tmp_path, declare(key=given["given"]["key"], source=source))
    built = build(builds, state)
    assert built.row_count == expected["row_count"]
    names = [column.name for column in built.schema.columns]
    assert not [name for name in names if name.startswith(":")]
    if "columns" in expected:
        assert names == expected["columns"]
        closed = [row["closed_on"] for row in builds.rows(built)]
        assert closed.count(None) == expected["nulls"]["closed_on"]


def test_a15_what_the_source_numbers_anew_is_no_change(tmp_path: Path) -> None:
    given = case("A15")
    source = {"kind": "socrata", "url": "https://data.example/resource/a.json"}
    builds = Builds(tmp_path, declare(key=given["given"]["key"], source=source))
    states = [
        "".join(json.dumps(row) + "\n" for row in rows_of(given["given"][name])).encode()
        for name in ("previous", "next")
    ]
    build(builds, states[0])
    built = build(builds, states[1])
    assert built.counts == Counts(**given["expect"]["counts"])
    assert builds.changed_keys(built)["changed"] == given["expect"]["changed_keys"]


def test_a20_a_limit_that_is_lowered_in_silence_loses_no_row(tmp_path: Path) -> None:
    given = case("A20")
    state = read(tmp_path, Datastore(rows_of("A20.rows.json"), given["serve"]), "ckan")
    source = {"kind": "ckan", "url": "https://data.example/api/3/action/datastore_search"}
    builds = Builds(tmp_path, declare(key=given["given"]["key"], source=source))
    built = build(builds, state)
    assert built.row_count == given["expect"]["row_count"]
    assert [column.name for column in built.schema.columns] == ["ref", "use"]
    named = Builds(tmp_path / "named", declare(key=["_id"], source=source))
    named.folder.mkdir()
    assert [c.name for c in build(named, state).schema.columns] == ["_id", "ref", "use"]


def test_pages_that_repeat_rows_are_no_whole_read(tmp_path: Path) -> None:
    server = Datastore(rows_of("A20.rows.json"), case("A20")["serve"])
    server.repeats = True
    with pytest.raises(SourceError, match="0 were new"):
        read(tmp_path, server, "ckan")


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        ("ckan", b'{"success": false, "error": {"message": "no such resource"}}', "no such"),
        ("socrata", b'{"error": true, "message": "no such view"}', "no such view"),
        ("socrata", b"[{}", "no rows"),
    ],
)
def test_an_error_inside_an_answer_that_is_ok_is_seen(
    kind: str, body: bytes, said: str, tmp_path: Path
) -> None:
    with pytest.raises(SourceError, match=said):
        read(tmp_path, web.Response(body=body), kind)
