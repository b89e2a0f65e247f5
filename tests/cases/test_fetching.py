"""Cases A18, A40 to A47 and A87: web sources that answer late, short, packed or with a page."""

import asyncio
import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cases.cases import FOLDER, case
from tests.cases.serving import Script, serving
from tests.fakes.builds import Builds, declare
from tests.fakes.world import World, play, stream

from ploti.errors import SourceError
from ploti.model.admin import OutcomeKind
from ploti.model.ids import DatasetId
from ploti.model.wire import Instant, plain
from ploti.server.adapters.blobs import FolderBlobs, LinkSigner
from ploti.server.adapters.fetcher import SourceFetcher, fetcher
from ploti.server.build.candidate import Candidate
from ploti.server.service.check_source import check_source, push_state
from ploti.server.service.plan_check import READ_WHOLE_EVERY
from ploti.server.sources.source import Source

BLOB = "states/ds_a/att_1"


def loopback_fetcher(blobs: FolderBlobs) -> SourceFetcher:
    return SourceFetcher(
        blobs,
        file_roots=(),
        allow_networks=("127.0.0.0/8",),
        max_source=1 << 20,
        user_agent="ploti/test",
    )


class Fetching:
    """A case's server, and one look at it."""

    def __init__(self, number: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.case = case(number)
        self.script = Script(self.case["serve"])
        self.pauses: list[float] = []
        self._folder = folder
        monkeypatch.setattr(fetcher, "sleep", self._sleep)

    def state(self, path: str | None = None, *, length_check: bool = True) -> bytes:
        path = path or self.case["serve"]["routes"][0]["path"]
        asyncio.run(self._fetch(path, length_check=length_check))
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

    async def _fetch(self, path: str, *, length_check: bool) -> None:
        moment = Instant.parse("2026-01-01T00:00:00Z")
        signer = LinkSigner(b"s" * 32, base="http://x/", now=lambda: moment)
        source_fetcher = loopback_fetcher(FolderBlobs(self._folder / "blobs", signer=signer))
        async with serving(self.script) as base:
            source = Source(kind="http", url=base + path, length_check=length_check)
            await source_fetcher.fetch(source, into=BLOB)

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


def test_a18_a_source_that_throttles_is_given_the_time_that_it_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetching = Fetching("A18", tmp_path, monkeypatch)
    assert fetching.rows(fetching.state()) == fetching.case["expect"]["row_count"]
    assert len(fetching.script.asked) == fetching.case["expect"]["requests"]
    assert min(fetching.pauses) >= fetching.case["expect"]["min_wait_seconds_between"]


@pytest.mark.parametrize("number", ["A40", "A41", "A42", "A87"])
def test_what_is_no_whole_table_is_a_failed_read(
    number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A40 a page in place of a table, A41 an empty body, A42 700 of 1,457 bytes, A87 too few."""
    fetching = Fetching(number, tmp_path, monkeypatch)
    refused = fetching.refused().replace(",", "")
    assert str(fetching.case["expect"].get("reason_has", "empty")) in refused


def test_a87_a_length_that_is_known_to_be_wrong_may_be_declared_no_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetching = Fetching("A87", tmp_path, monkeypatch)
    assert fetching.rows(fetching.state(length_check=False)) == 120
    assert len(fetching.script.asked) == 1


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


def test_a45_a_tag_that_lies_delays_a_version_and_cannot_hide_it_for_ever(tmp_path: Path) -> None:
    expected = case("A45")["expect"]["after_unconditional_read"]

    async def story(world: World) -> None:
        parts = replace(world.parts, fetcher=loopback_fetcher(world.blobs), max_source=1 << 20)
        permits = DatasetId("ds_permits")
        async with serving(Script(case("A45")["serve"])) as base:
            source = {"kind": "http", "url": base + "/data.csv"}
            await world.declare(source=source, key=case("A45")["given"]["key"])
            assert (await check_source(parts, permits)).outcome is OutcomeKind.RELEASED
            assert (await check_source(parts, permits)).outcome is OutcomeKind.UNCHANGED
            world.clock.moment = Instant.of(world.clock.moment + READ_WHOLE_EVERY)
            outcome = await check_source(parts, permits)
        assert outcome.outcome is OutcomeKind.RELEASED
        assert outcome.counts is not None
        assert plain(outcome.counts) == expected["counts"]

    play(tmp_path, story)


def test_a47_a_source_that_loses_its_rows_for_one_check_is_held_and_mends_itself(
    tmp_path: Path,
) -> None:
    """A47: held for data_check, one delayed event; the next whole read discards what is held."""
    given = case("A47")

    async def story(world: World) -> None:
        parts = replace(world.parts, fetcher=loopback_fetcher(world.blobs), max_source=1 << 20)
        permits = DatasetId("ds_permits")
        full = (FOLDER / given["serve"]["routes"][0]["sequence"][1]["body_file"]).read_text()
        async with serving(Script(given["serve"])) as base:
            source = {"kind": "http", "url": base + "/data.csv"}
            await world.declare(source=source, key=given["given"]["key"])
            subscription = await world.subscribe()
            chunks = stream(full.encode())
            await push_state(parts, permits, name="a.csv", chunks=chunks, dry_run=False)
            outcomes = [
                await check_source(parts, permits) for _ in range(given["expect"]["checks"])
            ]
        assert [outcome.outcome for outcome in outcomes] == ["held", "unchanged"]
        assert outcomes[0].hold is not None
        assert outcomes[0].hold.reason == "data_check"
        assert await world.told(subscription.id) == [
            ("added", None),
            ("resync_required", 1, "first_version"),
            ("delayed", 1, "data_check"),
        ]
        assert [hold.state for hold in await world.holds()] == ["discarded"]

    play(tmp_path, story)
