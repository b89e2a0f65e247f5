"""What a real build measures, and what it says would end a review."""

import json
from pathlib import Path

from tests.fakes.builds import Builds, declare

from ploti.server.build.candidate import Broken, BuildResult, Candidate


def candidate(result: BuildResult) -> Candidate:
    assert isinstance(result, Candidate), result
    return result


def state(header: str, *rows: str) -> bytes:
    return "\n".join([header, *rows, ""]).encode()


def test_a_version_and_its_base_are_measured_alike(tmp_path: Path) -> None:
    builds = Builds(tmp_path, declare(key=["id"], geometry={"longitude": "x", "latitude": "y"}))
    first = candidate(builds.build(state("id,a,x,y", "1,,1.5,2", "2,u,3,4", "3,,,")))
    assert (first.before, first.after) == (None, None)
    second = candidate(builds.build(state("id,a,x,y", "1,,1.5,2", "2,,-30,40", "3,,,", "4,,,")))
    assert second.before is not None
    assert second.after is not None
    assert (second.before.rows, second.after.rows) == (3, 4)
    assert second.before.filled | {"_ploti_record_id": 3} == second.before.filled
    assert (second.before.filled["a"], second.after.filled["a"]) == (1, 0)
    assert (second.before.filled["geometry"], second.after.filled["geometry"]) == (2, 2)
    assert second.before.box == (1.5, 2.0, 3.0, 4.0)
    assert second.after.box == (-30.0, 2.0, 1.5, 40.0)


def test_an_empty_geometry_is_at_no_place_and_counts_as_none(tmp_path: Path) -> None:
    def layer(*places: list[float]) -> bytes:
        features = [
            {
                "type": "Feature",
                "properties": {"id": number},
                "geometry": {"type": "Point", "coordinates": place},
            }
            for number, place in enumerate(places)
        ]
        return json.dumps({"type": "FeatureCollection", "features": features}).encode()

    builds = Builds(tmp_path, declare(key=["id"], source={"format": "geojson"}))
    builds.build(layer([1, 2], [3, 4], [5, 6]))
    built = candidate(builds.build(layer([1, 2], [], [])))
    assert built.before is not None
    assert built.after is not None
    assert (built.before.filled["geometry"], built.after.filled["geometry"]) == (3, 1)


def test_a_column_that_came_with_the_values_of_one_that_left_is_a_likely_rename(
    tmp_path: Path,
) -> None:
    builds = Builds(tmp_path, declare(key=["id"]))
    builds.build(state("id,lng,kind", "1,1.5,a", "2,2.5,b", "3,3.5,c"))
    built = candidate(builds.build(state("id,lon,sort", "1,1.5,x", "2,2.5,y", "3,3.5,z")))
    (finding,) = [each for each in built.findings if each.kind == "likely_rename"]
    assert finding.reason is None
    assert "rename: {lon: lng}" in finding.message


def test_so_is_one_that_was_empty_where_the_other_had_values(tmp_path: Path) -> None:
    """As austin_permits v04, whose `lng` takes the values of `lon`, and keeps its own."""
    builds = Builds(tmp_path, declare(key=["id"]))
    builds.build(state("id,lon,lng,kind", "1,1.5,,a", "2,2.5,,b", "3,,7.5,c", "4,3.5,,d"))
    rows = ("1,1.5,a", "2,2.5,b", "3,7.5,c", "4,3.5,d", "5,9.5,e")
    built = candidate(builds.build(state("id,lng,kind", *rows)))
    (finding,) = [each for each in built.findings if each.kind == "likely_rename"]
    assert "rename: {lng: lon}" in finding.message


def test_a_text_that_alone_made_a_column_text_is_a_likely_null_value(tmp_path: Path) -> None:
    builds = Builds(tmp_path, declare(key=["id"]))
    builds.build(state("id,cost,size", "1,10,1", "2,20,2", "3,30,3"))
    built = candidate(builds.build(state("id,cost,size", "1,10,one", "2,N/A,two", "3,N/A,3")))
    found = [each.message for each in built.findings if each.kind == "likely_null_values"]
    told = "cost was int64 and is text because of 'N/A' alone: if that means null, declare"
    assert found == [f"{told} null_values: ['N/A']"]


def test_so_is_one_that_reads_as_no_number_though_a_database_takes_it(tmp_path: Path) -> None:
    builds = Builds(tmp_path, declare(key=["id"]))
    builds.build(state("id,cost", "1,1.5", "2,2.5"))
    built = candidate(builds.build(state("id,cost", "1,1.5", "2,NaN")))
    (finding,) = [each for each in built.findings if each.kind == "likely_null_values"]
    assert "null_values: ['NaN']" in finding.message


def test_names_that_are_only_written_otherwise_are_a_likely_rename_without_any_record_found(
    tmp_path: Path,
) -> None:
    """With the key's name other too, no record is known again by which values could be compared."""
    builds = Builds(tmp_path, declare(key=["permit_no"]))
    builds.build(state("permit_no,kind,cost", "1,a,5", "2,b,6"))
    built = candidate(builds.build(state("Permit No,KIND,cost_usd", "1,a,5", "2,b,6")))
    found = [each.message for each in built.findings if each.kind == "likely_rename"]
    assert len(found) == 1
    assert "rename: {Permit No: permit_no, KIND: kind}" in found[0]
    (missing,) = [each.message for each in built.findings if each.kind == "key_missing"]
    assert missing.endswith("did you mean Permit No?")


def test_a_text_of_one_column_that_is_strange_is_no_state_of_a_table(tmp_path: Path) -> None:
    builds = Builds(tmp_path, declare(key=["id"]))
    builds.build(state("id,kind,cost", "1,a,5"))
    for text in (b"Access denied\n", b"Error\nat line 5\n"):
        refused = builds.build(text)
        assert isinstance(refused, Broken)
        assert "none of the columns of the version before" in refused.detail
    assert isinstance(builds.build(state("id", "1")), Candidate)
