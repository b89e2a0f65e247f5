"""A key that is declared and in no column: told, and held, wherever it is not refused."""

from pathlib import Path

from tests.fakes.builds import Builds, declare
from tests.fakes.world import World, play

from ploti.model.admin import OutcomeKind
from ploti.model.event import HoldReason
from ploti.server.adapters.builder.limits import Limits
from ploti.server.adapters.builder.process import ProcessBuilder
from ploti.server.build.candidate import Broken, Candidate
from ploti.server.release.decide import review
from ploti.server.sources.declaration import Holds

STATE = b"permit_no,status\n1,open\n2,closed\n"


def build(builds: Builds, state: bytes) -> Candidate:
    result = builds.build(state)
    assert isinstance(result, Candidate), result
    return result


def test_a_first_version_is_refused(tmp_path: Path) -> None:
    result = Builds(tmp_path, declare(key=["permit_nr"])).build(STATE)
    assert isinstance(result, Broken)
    assert "no column permit_nr, which is the key" in result.detail


def test_a_key_that_takes_the_place_of_another_and_is_not_there_is_refused(
    tmp_path: Path,
) -> None:
    builds = Builds(tmp_path, declare(key=["permit_no"]))
    build(builds, STATE)
    builds.declaration = declare(key=["permit_nr"])
    result = builds.build(STATE + b"3,open\n")
    assert isinstance(result, Broken)
    assert "no column permit_nr, which is the key" in result.detail


def test_a_version_after_one_without_a_key_is_held_and_the_column_that_may_be_meant_is_named(
    tmp_path: Path,
) -> None:
    builds = Builds(tmp_path, declare())
    build(builds, STATE)
    builds.declaration = declare(key=["permit_nr"])
    found = build(builds, STATE + b"3,open\n")
    verdict = review(found, base=builds.base, holds=Holds())
    assert verdict.reason is HoldReason.DATA_CHECK
    (finding,) = [each for each in verdict.findings if each.reason]
    assert (finding.kind, finding.subject) == ("key_missing", "permit_nr")
    assert finding.message.endswith("did you mean permit_no?")


def test_where_nothing_else_differs_the_check_says_it(tmp_path: Path) -> None:
    entry = ["-m", "ploti.server.app.child"]
    limits = Limits(memory=1 << 30, seconds=120, file_size=1 << 30)

    async def story(world: World) -> None:
        await world.declare(key=[])
        await world.push(STATE.decode())
        await world.declare(key=["permit_nr"])
        told = await world.push(STATE.decode())
        assert told.outcome is OutcomeKind.UNCHANGED
        assert "no column permit_nr" in told.detail
        assert "did you mean permit_no?" in told.detail
        await world.declare(key=["permit_no"])
        assert "permit_nr" not in (await world.push(STATE.decode())).detail

    builder = ProcessBuilder(tmp_path / "work", entry=entry, limits=limits)
    try:
        play(tmp_path, story, builder=builder)
    finally:
        builder.close()


def test_a_key_that_left_its_source_and_was_released_so_holds_no_later_version(
    tmp_path: Path,
) -> None:
    builds = Builds(tmp_path, declare(key=["permit_no"]))
    build(builds, STATE)
    lost = build(builds, b"status\nopen\nclosed\n")
    held = review(lost, base=builds.base, holds=Holds())
    assert held.reason is HoldReason.SCHEMA_REVIEW
    assert "key_missing" in {each.kind for each in held.findings if each.reason}
