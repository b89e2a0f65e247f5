"""Cases A18 and A40 to A46: web sources that answer late, short, packed or with a page."""

import asyncio
import hashlib
from pathlib import Path

import pytest
from tests.cases.cases import case
from tests.cases.serving import Script, serving
from tests.fakes.builds import Builds, declare

from ploti.errors import SourceError
from ploti.model.wire import Instant
from ploti.server.adapters.blobs import FolderBlobs, LinkSigner
from ploti.server.adapters.fetcher import SourceFetcher, fetcher
from ploti.server.build.candidate import Candidate
from ploti.server.sources.declaration import Source

BLOB = "states/ds_a/att_1"


class Fetching:
    """A case's server, and one look at it."""

    def __init__(self, number: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.case = case(number)
        self.script = Script(self.case["serve"])
        self.pauses: list[float] = []
        self._folder = folder
        monkeypatch.setattr(fetcher, "sleep", self._sleep)

    def state(self, path: str | None = None) -> bytes:
        asyncio.run(self._fetch(path or self.case["serve"]["routes"][0]["path"]))
        return (self._folder / "blobs" / BLOB).read_bytes()

    def refused(self) -> str:
        with pytest.raises(SourceError) as caught:
            self.state()
        assert not list((self._folder / "blobs").rglob("att_*"))
        return caught.value.detail

    def rows(self, state: bytes) -> int:
        builds = Builds(self._folder, declare(key=self.case["given"]["key"]))
        result = builds.build(state)
        assert isinstance(result, Candidate), result
        return result.row_count

    async def _fetch(self, path: str) -> None:
        moment = Instant.parse("2026-01-01T00:00:00Z")
        signer = LinkSigner(b"s" * 32, base="http://x/", now=lambda: moment)
        source_fetcher = SourceFetcher(
            FolderBlobs(self._folder / "blobs", signer=signer),
            file_roots=(),
            allow_networks=("127.0.0.0/8",),
            max_source=1 << 20,
            user_agent="ploti/test",
        )
        async with serving(self.script) as base:
            await source_fetcher.fetch(Source(kind="http", url=base + path), into=BLOB)

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


def test_a18_a_source_that_throttles_is_given_the_time_that_it_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetching = Fetching("A18", tmp_path, monkeypatch)
    assert fetching.rows(fetching.state()) == fetching.case["expect"]["row_count"]
    assert len(fetching.script.asked) == fetching.case["expect"]["requests"]
    assert min(fetching.pauses) >= fetching.case["expect"]["min_wait_seconds_between"]


@pytest.mark.parametrize("number", ["A40", "A41", "A42"])
def test_what_is_no_whole_table_is_a_failed_read(
    number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A40 a page in place of a table, A41 an empty body, A42 700 of 1,457 bytes."""
    fetching = Fetching(number, tmp_path, monkeypatch)
    assert str(fetching.case["expect"].get("reason_has", "empty")) in fetching.refused()


def test_a42_a_short_body_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetching = Fetching("A42", tmp_path, monkeypatch)
    fetching.refused()
    assert len(fetching.script.asked) == 3


@pytest.mark.parametrize("path", ["/plain.csv", "/packed.csv"])
def test_a44_the_first_bytes_tell_whether_a_body_is_packed(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetching = Fetching("A44", tmp_path, monkeypatch)
    expected = fetching.case["expect"]["row_count_per_path"][path]
    assert fetching.rows(fetching.state(path)) == expected


def test_a46_what_came_before_a_break_is_dropped_and_the_whole_is_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetching = Fetching("A46", tmp_path, monkeypatch)
    state = fetching.state()
    assert hashlib.sha256(state).hexdigest() == fetching.case["expect"]["bytes_sha256"]
    assert fetching.rows(state) == fetching.case["expect"]["row_count"]
