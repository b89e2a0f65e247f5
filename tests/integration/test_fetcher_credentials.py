"""Credentials of sources: where they go, how, and that nothing else ever gets or tells them."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web
from tests.cases.cases import case
from tests.fakes.fetched import fetched
from tests.fakes.layer_server import Layer
from tests.fakes.world import PERMITS, World, play

from ploti.errors import SourceError
from ploti.server.adapters.fetcher import SourceFetcher
from ploti.server.service.check_source import check_source
from ploti.server.sources.credentials import Credential

CSV = "permit_no,status\nE-1,open\n"
SECRET = "k3y-of-the-source"
Answering = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Asked:
    """A server that notes what it is asked with."""

    def __init__(self, then: Answering | None = None) -> None:
        self.headers: list[dict[str, str]] = []
        self._then = then

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.headers.append({"path": request.path, **request.headers})
        if self._then:
            return await self._then(request)
        return web.Response(text=CSV, content_type="text/csv")


@pytest.mark.parametrize(
    ("kind", "secret", "headers"),
    [
        ("http", SECRET, {"Authorization": f"Bearer {SECRET}"}),
        ("http", "X-Api-Key: abc", {"X-Api-Key": "abc"}),
        ("http", "Authorization: Basic dTpw", {"Authorization": "Basic dTpw"}),
        ("socrata", SECRET, {"X-App-Token": SECRET}),
        ("ckan", SECRET, {"Authorization": SECRET}),
        (
            "arcgis",
            SECRET,
            {
                "Authorization": f"Bearer {SECRET}",
                "X-Esri-Authorization": f"Bearer {SECRET}",
            },
        ),
    ],
)
def test_each_kind_of_source_gets_its_credential_in_its_own_header(
    kind: str, secret: str, headers: dict[str, str]
) -> None:
    credential = Credential(secret=secret, hosts=("a.org",))
    assert credential.headers(kind) == headers
    assert secret not in repr(credential)


def test_a_credential_goes_to_the_hosts_that_are_named_and_their_usual_ports() -> None:
    credential = Credential(secret=SECRET, hosts=("a.org", "b.org:8443"))
    assert credential.goes_to("https://A.org/x")
    assert credential.goes_to("https://a.org:443/x")
    assert credential.goes_to("https://b.org:8443/x")
    for other in ("https://a.org:8443/", "https://b.org/", "https://x.a.org/", "https://a.org.x/"):
        assert not credential.goes_to(other)


def test_a_file_is_asked_for_with_its_credential(tmp_path: Path) -> None:
    asked = Asked()
    fetched(tmp_path, asked.answer, kind="http", path="/a.csv", secret=SECRET, credential="OURS")
    assert [each["Authorization"] for each in asked.headers] == [f"Bearer {SECRET}"]


def test_a_source_without_a_credential_gets_none(tmp_path: Path) -> None:
    asked = Asked()
    fetched(tmp_path, asked.answer, kind="http", path="/a.csv", secret=SECRET)
    assert "Authorization" not in asked.headers[0]


def test_every_question_to_a_layer_has_the_credential(tmp_path: Path) -> None:
    layer = Layer(case("A01")["serve"])
    fetched(
        tmp_path, layer.answer, kind="arcgis", path=layer.path, secret=SECRET, credential="OURS"
    )
    assert {each["X-Esri-Authorization"] for each in layer.headers} == {f"Bearer {SECRET}"}
    assert SECRET not in str(layer.asked)


def test_a_redirect_to_another_server_leaves_the_credential_behind_for_good(
    tmp_path: Path,
) -> None:
    """127.0.0.2 is another host, which then sends back to the first."""

    async def moving(request: web.Request) -> web.StreamResponse:
        port = request.url.port
        if request.path == "/a.csv" and request.url.host == "127.0.0.1":
            raise web.HTTPFound(f"http://localhost:{port}/b.csv")
        if request.path == "/b.csv":
            raise web.HTTPFound(f"http://127.0.0.1:{port}/c.csv")
        return web.Response(text=CSV, content_type="text/csv")

    asked = Asked(moving)
    fetched(tmp_path, asked.answer, kind="http", path="/a.csv", secret=SECRET, credential="OURS")
    assert [each["path"] for each in asked.headers] == ["/a.csv", "/b.csv", "/c.csv"]
    assert ["Authorization" in each for each in asked.headers] == [True, False, False]


def test_a_redirect_on_the_same_server_keeps_it(tmp_path: Path) -> None:
    async def moving(request: web.Request) -> web.StreamResponse:
        if request.path == "/a.csv":
            raise web.HTTPFound("/b.csv")
        return web.Response(text=CSV, content_type="text/csv")

    asked = Asked(moving)
    fetched(tmp_path, asked.answer, kind="http", path="/a.csv", secret=SECRET, credential="OURS")
    assert ["Authorization" in each for each in asked.headers] == [True, True]


def test_a_server_that_sends_the_credential_back_does_not_get_it_into_the_reason(
    tmp_path: Path,
) -> None:
    async def echoing(request: web.Request) -> web.StreamResponse:
        said = request.headers["Authorization"]
        return web.json_response({"success": False, "error": {"message": f"{said} is unknown"}})

    with pytest.raises(SourceError, match="is unknown") as caught:
        fetched(
            tmp_path,
            Asked(echoing).answer,
            kind="ckan",
            path="/api/3/action/datastore_search?resource_id=1",
            secret=SECRET,
            credential="OURS",
        )
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value.__cause__)


def test_a_credential_that_is_not_set_is_told_by_its_variable(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="PLOTI_SOURCE_THEIRS"):
        fetched(
            tmp_path,
            Asked().answer,
            kind="http",
            path="/a.csv",
            secret=SECRET,
            credential="THEIRS",
        )


def test_a_credential_for_other_hosts_is_not_sent_and_the_check_fails(tmp_path: Path) -> None:
    asked = Asked()
    with pytest.raises(SourceError, match=r"may not go to 127\.0\.0\.1: PLOTI_SOURCE_OURS_HOSTS"):
        fetched(
            tmp_path,
            asked.answer,
            kind="http",
            path="/a.csv",
            secret=SECRET,
            hosts=("a.org",),
            credential="OURS",
        )
    assert not asked.headers


def test_nothing_that_is_stored_or_said_of_a_check_has_the_credential_in_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The server sends it back in its reason, and as the address that it redirects to."""
    asked = 0

    async def echoing(request: web.Request) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        said = request.headers["Authorization"]
        if asked == 1:
            return web.json_response({"success": False, "error": said})
        raise web.HTTPFound(f"gopher://{said.removeprefix('Bearer ')}/")

    async def story(world: World) -> None:
        app = web.Application()
        app.router.add_get("/{path:.*}", echoing)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        place = f"127.0.0.1:{runner.addresses[0][1]}"
        fetcher = SourceFetcher(
            world.blobs,
            file_roots=(),
            allow_networks=("127.0.0.0/8",),
            max_source=1000,
            user_agent="ploti/test",
            credentials={"OURS": Credential(secret=SECRET, hosts=(place,))},
        )
        parts = replace(world.parts, fetcher=fetcher)
        url = f"http://{place}/api/3/action/datastore_search?resource_id=1"
        source = {"kind": "ckan", "url": url, "credential": "OURS"}
        await world.declare(source=source, check_every="24h")
        outcomes = [await check_source(parts, PERMITS) for _ in range(2)]
        fetcher.close()
        await runner.cleanup()
        assert "answered that it failed" in outcomes[0].detail
        assert "moved to an address that is not read" in outcomes[1].detail
        assert SECRET not in str(outcomes)

    play(tmp_path, story)
    assert SECRET not in "".join(capfd.readouterr())
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file.name
