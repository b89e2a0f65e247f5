"""The fetcher on real sockets: what it brings, and what it refuses with a clear sentence."""

import asyncio
import errno
import gzip
import hashlib
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.abc import ResolveResult
from tests.fakes.names import Names

from ploti.errors import SourceError
from ploti.model.admin import BuildProgress, BuildStage
from ploti.model.wire import Instant
from ploti.server.adapters.blobs import FolderBlobs, LinkSigner
from ploti.server.adapters.fetcher import SourceFetcher
from ploti.server.adapters.fetcher.folders import Folders
from ploti.server.adapters.fetcher.limits import Limits
from ploti.server.ports.outside import Fetched, NotModified
from ploti.server.sources.source import Source

CSV = b"permit_no,status\n" + b"".join(b"E-%04d,open\n" % number for number in range(200))
BLOB = "states/ds_a/att_1"
LOOPBACK = ("127.0.0.0/8",)
DAY = "Sat, 17 Oct 2026 06:13:02 GMT"
QUICK = Limits(connect=2, silence=2, total=10, pauses=(0, 0))
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Bench:
    """A fetcher over a folder of blobs."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.folder = folder
        signer = LinkSigner(
            b"s" * 32, base="http://x/", now=lambda: Instant.parse("2026-01-01T00:00:00Z")
        )
        self.blobs = FolderBlobs(folder / "blobs", signer=signer)
        given = {
            "file_roots": (),
            "allow_networks": LOOPBACK,
            "max_source": 1 << 20,
            "limits": QUICK,
        }
        self.fetcher = SourceFetcher(
            self.blobs,
            user_agent="ploti/test",
            **(given | settings),  # type: ignore[arg-type]
        )

    async def fetch(self, url: str, *, kind: str = "http", format: str | None = None) -> Fetched:
        try:
            found = await self.fetcher.fetch(Source(kind=kind, url=url, format=format), into=BLOB)
            assert isinstance(found, Fetched)
            return found
        finally:
            self.fetcher.close()

    def bytes(self) -> bytes:
        return (self.folder / "blobs" / BLOB).read_bytes()

    def is_empty(self) -> bool:
        return asyncio.run(self.blobs.names("")) == []


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    """A server on a free port that answers every path; gives its address."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def saying(*answers: bytes) -> AsyncIterator[str]:
    """A server that sends these bytes for one connection after another, then closes it."""
    left = list(answers)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(left.pop(0) if len(left) > 1 else left[0])
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def said(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers, "Connection: close"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def fetch(
    bench: Bench, *answers: bytes, path: str = "/data.csv", format: str | None = None
) -> Fetched:
    async def main() -> Fetched:
        async with saying(*answers) as base:
            return await bench.fetch(base + path, format=format)

    return asyncio.run(main())


def refusal(bench: Bench, *answers: bytes) -> str:
    with pytest.raises(SourceError) as caught:
        fetch(bench, *answers)
    assert bench.is_empty()
    assert "\n" not in caught.value.detail
    return caught.value.detail


def whole(body: bytes = CSV, *headers: str) -> bytes:
    return said(body, f"Content-Length: {len(body)}", *headers)


def test_the_bytes_come_into_the_blob_with_their_digest_and_the_name_of_the_source(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    fetched = fetch(bench, whole(), path="/files/permits%202024.csv?x=1")
    assert bench.bytes() == CSV
    assert fetched.blob.sha256 == hashlib.sha256(CSV).hexdigest()
    assert fetched.name == "permits 2024.csv"


@pytest.mark.parametrize(
    ("headers", "share"), [(("Content-Length: 6",), 1.0), (("Transfer-Encoding: chunked",), None)]
)
def test_what_came_is_told_in_bytes_and_as_a_share_where_all_are_known(
    tmp_path: Path, headers: tuple[str, ...], share: float | None
) -> None:
    told: list[BuildProgress] = []
    body = b"a\n1\n2\n" if share else b"6\r\na\n1\n2\n\r\n0\r\n\r\n"

    async def story() -> None:
        async with saying(said(body, *headers)) as address:
            fetcher = Bench(tmp_path).fetcher
            source = Source(kind="http", url=f"{address}/a.csv")
            await fetcher.fetch(source, into=BLOB, tell=told.append)
            fetcher.close()

    asyncio.run(story())
    assert told[-1] == BuildProgress(stage=BuildStage.FETCHING, bytes=6, share=share)


def test_a_source_that_stands_as_it_said_brings_nothing(tmp_path: Path) -> None:
    asked: list[tuple[str | None, str | None]] = []

    async def answer(request: web.Request) -> web.Response:
        headers = request.headers
        asked.append((headers.get("If-None-Match"), headers.get("If-Modified-Since")))
        if "If-None-Match" in headers:
            return web.Response(status=304)
        return web.Response(body=CSV, headers={"ETag": 'W/"1"', "Last-Modified": DAY})

    async def main() -> None:
        bench = Bench(tmp_path)
        async with serving(answer) as base:
            source = Source(kind="http", url=f"{base}/data.csv")
            first = await bench.fetcher.fetch(source, into=BLOB)
            assert isinstance(first, Fetched)
            again = await bench.fetcher.fetch(source, into=f"{BLOB}2", known=first.validators)
            assert isinstance(again, NotModified)
        assert await bench.blobs.names("") == [BLOB]
        bench.fetcher.close()

    asyncio.run(main())
    assert asked == [(None, None), ('W/"1"', DAY)]


def test_an_answer_that_nothing_changed_to_who_did_not_ask_is_a_failure(tmp_path: Path) -> None:
    assert "304" in refusal(Bench(tmp_path), said(b"", status="304 Not Modified"))


def test_the_name_in_the_answer_wins_and_loses_its_folders(tmp_path: Path) -> None:
    answer = whole(CSV, 'Content-Disposition: attachment; filename="../../etc/permits.csv"')
    assert fetch(Bench(tmp_path), answer).name == "permits.csv"


def test_the_server_sees_who_asks_and_that_gzip_is_understood(tmp_path: Path) -> None:
    seen: dict[str, str] = {}

    async def handler(request: web.Request) -> web.Response:
        seen.update(request.headers)
        return web.Response(body=CSV)

    async def main() -> None:
        async with serving(handler) as base:
            await Bench(tmp_path).fetch(base)

    asyncio.run(main())
    assert seen["User-Agent"] == "ploti/test"
    assert seen["Accept-Encoding"] == "gzip"
    assert "Cookie" not in seen


@pytest.mark.parametrize(
    "body",
    [gzip.compress(CSV), gzip.compress(CSV[:500]) + gzip.compress(CSV[500:]), CSV],
    ids=["packed", "packed in two members", "only called packed"],
)
def test_a_body_said_to_be_packed_is_what_its_first_bytes_say(tmp_path: Path, body: bytes) -> None:
    bench = Bench(tmp_path)
    fetch(bench, whole(body, "Content-Encoding: gzip"))
    assert bench.bytes() == CSV


def test_a_packed_body_that_is_cut_short_or_damaged_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress(CSV)
    detail = refusal(Bench(tmp_path), whole(packed[:-9], "Content-Encoding: gzip"))
    assert "cut short" in detail
    damaged = packed[:40] + b"\xff\xff\xff\xff" + packed[44:]
    assert "damaged" in refusal(Bench(tmp_path), whole(damaged, "Content-Encoding: gzip"))


def test_a_packed_body_that_grows_beyond_the_limit_is_stopped_at_the_limit(tmp_path: Path) -> None:
    bomb = gzip.compress(b"a" * (5 << 20))
    detail = refusal(Bench(tmp_path), whole(bomb, "Content-Encoding: gzip"))
    assert "PLOTI_MAX_SOURCE" in detail


def test_a_packing_that_was_not_asked_for_is_refused(tmp_path: Path) -> None:
    assert "packed with br" in refusal(Bench(tmp_path), whole(CSV, "Content-Encoding: br"))


def test_a_packed_file_that_is_not_said_to_be_packed_is_kept_as_it_came(tmp_path: Path) -> None:
    """What it holds is for its reader, as with every archive."""
    bench = Bench(tmp_path)
    fetch(bench, whole(gzip.compress(CSV)))
    assert gzip.decompress(bench.bytes()) == CSV


def test_a_connection_that_closes_early_is_noticed_by_the_length_and_tried_again(
    tmp_path: Path,
) -> None:
    short = said(CSV[:700], f"Content-Length: {len(CSV)}")
    assert "700 of 2,417 bytes" in refusal(Bench(tmp_path), short)
    bench = Bench(tmp_path)
    fetch(bench, short, whole())
    assert bench.bytes() == CSV


def test_a_framed_body_without_its_last_frame_is_noticed(tmp_path: Path) -> None:
    frame = b"%x\r\n%s\r\n" % (len(CSV), CSV)
    header = "Transfer-Encoding: chunked"
    assert "cut short" in refusal(Bench(tmp_path), said(frame, header))
    bench = Bench(tmp_path)
    fetch(bench, said(frame + b"0\r\n\r\n", header))
    assert bench.bytes() == CSV


def test_a_body_of_unknown_length_is_refused_unless_its_format_proves_it_whole(
    tmp_path: Path,
) -> None:
    assert "cannot be proved whole" in refusal(Bench(tmp_path), said(CSV))
    bench = Bench(tmp_path)
    fetch(bench, said(b'{"type": "FeatureCollection", "features": []}'), format="geojson")
    assert bench.bytes().endswith(b"}")


def test_a_source_that_announces_more_than_the_limit_is_not_read(tmp_path: Path) -> None:
    detail = refusal(Bench(tmp_path), said(CSV, "Content-Length: 2000000"))
    assert "2,000,000 bytes" in detail


def test_an_html_page_and_an_empty_body_are_told_apart_from_data(tmp_path: Path) -> None:
    page = b"\n<!DOCTYPE html><html><body>Down for maintenance</body></html>"
    assert "HTML" in refusal(Bench(tmp_path), whole(page))
    assert "empty" in refusal(Bench(tmp_path), whole(b""))
    assert "empty" in refusal(Bench(tmp_path), whole(b" \n"))


def test_an_answer_that_is_no_success_is_told_with_its_status(tmp_path: Path) -> None:
    for status in ("404 Not Found", "403 Forbidden", "206 Partial Content", "304 Not Modified"):
        answer = said(b"", "Content-Length: 0", status=status)
        assert refusal(Bench(tmp_path), answer) == f"the source answered {status}"


def test_a_source_that_says_later_is_asked_again_three_times_in_all(tmp_path: Path) -> None:
    later = said(b"", "Content-Length: 0", "Retry-After: 0", status="429 Too Many Requests")
    bench = Bench(tmp_path)
    fetch(bench, later, later, whole())
    assert bench.bytes() == CSV
    assert "429" in refusal(Bench(tmp_path / "other"), later, later, later, whole())


def test_a_source_that_says_much_later_is_not_waited_for(tmp_path: Path) -> None:
    later = said(b"", "Content-Length: 0", "Retry-After: 3600", status="503 Busy")
    assert "3600 seconds" in refusal(Bench(tmp_path), later, whole())


def test_a_date_at_which_to_come_back_is_by_the_clock_of_the_source(tmp_path: Path) -> None:
    def until(minute: int) -> bytes:
        later = f"Retry-After: Sat, 17 Oct 2026 06:{minute:02d}:02 GMT"
        return said(b"", "Content-Length: 0", f"Date: {DAY}", later, status="429 Busy")

    assert "to come back in 120 seconds" in refusal(Bench(tmp_path), until(15), whole())
    bench = Bench(tmp_path / "past")
    fetch(bench, until(12), whole())
    assert bench.bytes() == CSV


def test_redirects_are_followed_each_guarded_and_not_for_ever(tmp_path: Path) -> None:
    async def handler(request: web.Request) -> web.Response:
        match request.path:
            case "/data.csv":
                return web.Response(body=CSV)
            case "/moved":
                raise web.HTTPFound("/data.csv")
            case "/inside":
                raise web.HTTPFound("http://10.0.0.9/data.csv")
            case "/elsewhere":
                raise web.HTTPFound("file:///etc/passwd")
            case _:
                raise web.HTTPFound(request.path)

    async def follow(path: str) -> str:
        bench = Bench(tmp_path)
        async with serving(handler) as base:
            try:
                return (await bench.fetch(base + path)).name
            except SourceError as error:
                return error.detail

    assert asyncio.run(follow("/moved")) == "data.csv"
    assert "10.0.0.9 may not be read by http" in asyncio.run(follow("/inside"))
    assert "moved to an address that is not read" in asyncio.run(follow("/elsewhere"))
    assert "more than 5 times" in asyncio.run(follow("/loop"))


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::ffff:127.0.0.1]", "[::1]", "localhost", "0.0.0.0", "169.254.169.254"]
)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_private_address_is_not_dialled_however_it_is_written(
    tmp_path: Path, scheme: str, host: str
) -> None:
    bench = Bench(tmp_path, allow_networks=())
    with pytest.raises(SourceError, match="may not be read"):
        asyncio.run(bench.fetch(f"{scheme}://{host}:9/x"))


def test_plain_http_needs_a_network_that_was_opened(tmp_path: Path) -> None:
    bench = Bench(tmp_path, resolver=Names(["9.9.9.9"]))
    with pytest.raises(SourceError, match=r"9\.9\.9\.9, which may not be read by http.*need https"):
        asyncio.run(bench.fetch("http://data.example/permits.csv"))
    with pytest.raises(SourceError, match=r"^10\.0\.0\.9 may not be read: it is no public"):
        asyncio.run(bench.fetch("https://10.0.0.9/permits.csv"))


def test_a_name_that_means_another_address_at_the_next_look_is_refused_then(tmp_path: Path) -> None:
    """The address that is dialled is the one that is judged, not the one seen before (E07)."""
    names = Names(["127.0.0.1"], ["10.0.0.9"])

    async def handler(request: web.Request) -> web.Response:
        raise web.HTTPFound(f"http://rebind.example:{request.url.port}/data.csv")

    async def main() -> None:
        async with serving(handler) as base:
            port = base.rpartition(":")[2]
            await Bench(tmp_path, resolver=names).fetch(f"http://rebind.example:{port}/data.csv")

    with pytest.raises(SourceError, match=r"rebind.example is at 10\.0\.0\.9"):
        asyncio.run(main())
    assert names.asked == 2


def test_of_a_mixed_answer_only_allowed_addresses_are_dialled(tmp_path: Path) -> None:
    bench = Bench(tmp_path, resolver=Names(["10.0.0.9", "127.0.0.1"]))

    async def main() -> Fetched:
        async with saying(whole()) as base:
            return await bench.fetch(f"http://mixed.example:{base.rpartition(':')[2]}/a.csv")

    assert asyncio.run(main()).blob.bytes == len(CSV)


def test_a_proxy_of_the_environment_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    bench = Bench(tmp_path)
    fetch(bench, whole())
    assert bench.bytes() == CSV


def test_a_source_that_stays_silent_or_drips_runs_into_its_limits(tmp_path: Path) -> None:
    async def silent(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(30)
        return web.Response()

    async def dripping(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000000"})
        await response.prepare(request)
        for _ in range(1000):
            await response.write(b"a")
            await asyncio.sleep(0.01)
        return response

    async def ask(handler: Handler, limits: Limits) -> str:
        async with serving(handler) as base:
            with pytest.raises(SourceError) as caught:
                await Bench(tmp_path, limits=limits).fetch(base)
        return caught.value.detail

    silence = Limits(silence=0.05, pauses=())
    assert "did not answer in time" in asyncio.run(ask(silent, silence))
    assert "within 0.2 seconds" in asyncio.run(ask(dripping, Limits(total=0.2)))


def test_nobody_who_listens_and_an_untrusted_certificate_are_clear_errors(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(SourceError) as refused:
        asyncio.run(Bench(tmp_path).fetch(f"http://127.0.0.1:{port}/a.csv"))
    told = f"127.0.0.1:{port} cannot be reached: {os.strerror(errno.ECONNREFUSED)}"
    assert refused.value.detail.startswith(told)
    with pytest.raises(SourceError, match="no known name"):
        asyncio.run(Bench(tmp_path, resolver=Nowhere()).fetch("https://nowhere.example/a.csv"))


class Nowhere(Names):
    """Knows no name."""

    async def resolve(self, host: str, port: int = 0, family: object = None) -> list[ResolveResult]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def file_bench(tmp_path: Path) -> Bench:
    (tmp_path / "open").mkdir()
    (tmp_path / "closed").mkdir()
    (tmp_path / "open" / "permits.csv").write_bytes(CSV)
    (tmp_path / "closed" / "secret.csv").write_bytes(CSV)
    return Bench(tmp_path, file_roots=(str(tmp_path / "open"),))


def test_a_file_below_an_opened_folder_is_read_by_path_or_address(tmp_path: Path) -> None:
    bench = file_bench(tmp_path)
    fetched = asyncio.run(bench.fetch(f"file://{tmp_path}/open/permits.csv", kind="file"))
    assert fetched.name == "permits.csv"
    assert bench.bytes() == CSV


def test_a_file_outside_the_opened_folders_is_refused_also_through_links(tmp_path: Path) -> None:
    bench = file_bench(tmp_path)
    (tmp_path / "open" / "link.csv").symlink_to(tmp_path / "closed" / "secret.csv")
    (tmp_path / "open" / "folder").symlink_to(tmp_path / "closed")
    for path in (
        "closed/secret.csv",
        "open/link.csv",
        "open/folder/secret.csv",
        "open/../closed/x",
    ):
        with pytest.raises(SourceError, match="outside the folders"):
            asyncio.run(file_bench_fetch(tmp_path, path))
    assert bench.is_empty()


async def file_bench_fetch(tmp_path: Path, path: str) -> Fetched:
    bench = Bench(tmp_path, file_roots=(str(tmp_path / "open"),))
    return await bench.fetch(str(tmp_path / path), kind="file")


def test_without_opened_folders_no_file_is_read(tmp_path: Path) -> None:
    file_bench(tmp_path)
    with pytest.raises(SourceError, match="PLOTI_FILE_ROOTS opens nothing"):
        asyncio.run(Bench(tmp_path).fetch(str(tmp_path / "open/permits.csv"), kind="file"))


def test_what_is_no_file_is_a_clear_error(tmp_path: Path) -> None:
    file_bench(tmp_path)
    os.mkfifo(tmp_path / "open" / "pipe")
    (tmp_path / "open" / "loop").symlink_to(tmp_path / "open" / "loop")
    for path, reason in {
        "open/gone.csv": "cannot be read: No such file",
        "open/pipe": "is not a file",
        "open": "is not a file",
        "open/loop": "cannot be read",
    }.items():
        with pytest.raises(SourceError, match=reason):
            asyncio.run(file_bench_fetch(tmp_path, path))


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    file_bench(tmp_path)
    path = tmp_path / "open" / "grows.csv"
    path.write_bytes(b"a" * (3 << 20))

    async def read_and_grow() -> None:
        with ThreadPoolExecutor(1) as threads:
            folders = Folders([str(tmp_path / "open")], threads=threads)
            async for _ in folders.read(str(path)):
                with path.open("ab") as file:
                    file.write(b"b")

    with pytest.raises(SourceError, match="changed while it was read"):
        asyncio.run(read_and_grow())


def test_one_host_gets_a_few_requests_at_a_time(tmp_path: Path) -> None:
    under_way, most = 0, 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.05)
        under_way -= 1
        return web.Response(body=CSV)

    async def main() -> None:
        bench = Bench(tmp_path)
        async with serving(answer) as base:
            source = Source(kind="http", url=f"{base}/data.csv")
            fetched = [bench.fetcher.fetch(source, into=f"{BLOB}{n}") for n in range(12)]
            await asyncio.gather(*fetched)
        assert len(await bench.blobs.names("")) == 12
        bench.fetcher.close()

    asyncio.run(main())
    assert most == 4
