"""Columns of points that a source lost: held and told, wherever they are not a slip of the pen."""

from pathlib import Path

from tests.fakes.builds import Builds, declare

from ploti.model.event import HoldReason
from ploti.server.build.candidate import Broken, Candidate
from ploti.server.release.decide import review
from ploti.server.sources.declaration import Holds

POINTS = {"longitude": "lon", "latitude": "lat"}
BEFORE = b"id,lon,lat\n1,-81.5,28.5\n2,-81.25,28.25\n"
AFTER = BEFORE.replace(b"lon", b"lng")


def build(builds: Builds, state: bytes) -> Candidate:
    result = builds.build(state)
    assert isinstance(result, Candidate), result
    return result


def test_a_version_whose_points_lost_a_column_is_held(tmp_path: Path) -> None:
    """R-073; after its release the next state is read as well."""
    builds = Builds(tmp_path, declare(key=["id"], geometry=POINTS))
    build(builds, BEFORE)
    base = builds.base
    verdict = review(build(builds, AFTER), base=base, holds=Holds())
    assert verdict.reason is HoldReason.SCHEMA_REVIEW
    told = {each.kind: each.message for each in verdict.findings}
    assert "no column lon, of which points are made" in told["points_missing"]
    assert "rename: {lng: lon}" in told["likely_rename"]
    following = build(builds, AFTER + b"3,-81,28\n")
    assert [each.subject for each in following.findings if each.reason] == ["lon"]


def test_a_name_that_never_was_a_column_is_refused(tmp_path: Path) -> None:
    builds = Builds(tmp_path, declare(key=["id"], geometry=POINTS))
    assert isinstance(builds.build(AFTER), Broken)
    build(builds, BEFORE)
    builds.declaration = declare(key=["id"], geometry=POINTS | {"longitude": "longitude"})
    refused = builds.build(BEFORE + b"3,-81,28\n")
    assert isinstance(refused, Broken)
    assert "no column longitude" in refused.detail
