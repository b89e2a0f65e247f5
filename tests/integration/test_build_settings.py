"""The settings for sources as they are in the field: what each does to the next version."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.builds import Builds, declare

from ploti.server.build.candidate import Broken, BuildResult, Candidate, Unchanged


def built(result: BuildResult) -> Candidate:
    assert isinstance(result, Candidate), result
    return result


def counts(result: BuildResult) -> tuple[int, int, int]:
    found = built(result).counts
    assert found is not None
    return found.added, found.changed, found.removed


def types(result: BuildResult) -> dict[str, str]:
    return {column.name: column.type for column in built(result).schema.columns}


def values(builds: Builds, result: BuildResult, name: str) -> list[Any]:
    return [row[name] for row in builds.rows(result)]


def test_a_renamed_column_goes_on_as_it_was(tmp_path: Path) -> None:
    builds = Builds(tmp_path, declare(key=["id"], rename={"lng": "lon"}))
    builds.build(b"id,lon\na,1.5\nb,2.5\n")
    assert isinstance(builds.build(b"id, lng\nb,2.5\na,1.5\n"), Unchanged)
    result = builds.build(b"id,lng\na,1.5\nb,3.5\n")
    assert counts(result) == (0, 1, 0)
    assert built(result).schema_change is None
    assert built(result).schema.column("lon").source_name == "lng"


@pytest.mark.parametrize(
    "name",
    ["base_pos", "new_pos", "c0", "f1", "g", "d0", "before_0", "ch", "b", "s", "file_row_number"],
)
def test_a_column_may_be_called_as_something_inside_a_build_is(tmp_path: Path, name: str) -> None:
    points = {"longitude": "x", "latitude": "y"}
    builds = Builds(tmp_path, declare(key=["id"], geometry=points))
    rows = [[str(n), "5", "6", str(n), f"t{n}"] for n in range(40)]

    def state(rows: list[list[str]]) -> bytes:
        return "\n".join(map(",".join, [["id", "x", "y", name, "t"], *rows])).encode()

    first = builds.build(state(rows))
    ids = values(builds, first, "_ploti_record_id")
    gone = builds.build(state(rows[1:]))
    assert counts(gone) == (0, 0, 1)
    moved = [[*row[:3], "7", row[4]] for row in rows]
    back = builds.build(state(moved), gone_since=0)
    assert counts(back) == (1, 38, 0)
    assert values(builds, back, "_ploti_record_id") == ids
    assert isinstance(builds.build(state(moved)), Unchanged)


@pytest.mark.parametrize(
    "name", ["base_pos", "new_pos", "base", "state", "id", "place", "kh", "told", "removed", "row"]
)
def test_rows_that_share_a_key_may_have_a_column_called_as_something_inside_is(
    tmp_path: Path, name: str
) -> None:
    builds = Builds(tmp_path, declare(key=["k"], repeated_keys="number", continuation="off"))
    rows = [f"{n // 2},t{n}" for n in range(40)]

    def state(rows: list[str]) -> bytes:
        return "\n".join([f"k,{name}", *rows]).encode()

    ids = values(builds, builds.build(state(rows)), "_ploti_record_id")
    assert counts(builds.build(state(rows[1:]))) == (0, 0, 1)
    back = builds.build(state([*rows[:-1], "19,other"]), gone_since=0)
    assert counts(back) == (1, 1, 0)
    assert values(builds, back, "_ploti_record_id") == ids


@pytest.mark.parametrize("later", ["b", "c"])
def test_records_keep_their_ids_where_a_geometry_comes_to_them(tmp_path: Path, later: str) -> None:
    builds = Builds(tmp_path, declare(key=["id"]))
    first = builds.build(b"id,n\n0,a\n1,b\n")
    ids = values(builds, first, "_ploti_record_id")
    feature = '{"type":"Feature","properties":{"id":%d,"n":"%s"},"geometry":%s}'
    point = '{"type":"Point","coordinates":[1,2]}'
    listed = ",".join([feature % (0, "a", point), feature % (1, later, "null")])
    collection = '{"type":"FeatureCollection","features":[' + listed + "]}"
    second = builds.build(collection.encode(), name="a.geojson")
    assert counts(second) == (0, 1 + (later != "b"), 0)
    assert values(builds, second, "_ploti_record_id") == ids
    assert values(builds, second, "n") == ["a", later]
    box = {"xmin": 1.0, "ymin": 2.0, "xmax": 1.0, "ymax": 2.0}
    assert values(builds, second, "_ploti_bbox") == [box, None]


def test_a_column_that_has_the_new_name_of_its_own_keeps_it(tmp_path: Path) -> None:
    builds = Builds(tmp_path, declare(key=["id"], rename={"lng": "lon"}))
    result = builds.build(b"id,lng,lon\na,1,2\n")
    assert types(result).keys() == {"id", "lng", "lon"}
    assert values(builds, result, "lon") == [2]


def test_texts_that_mean_null_keep_a_column_a_number(tmp_path: Path) -> None:
    builds = Builds(tmp_path, declare(key=["id"], null_values=["-", "n/a"]))
    result = builds.build(b"id,n,t\na,1,-x\nb,-,n/a\nc,,-\n")
    assert types(result) == {"id": "string", "n": "int64", "t": "string"}
    assert values(builds, result, "n") == [1, None, None]
    assert values(builds, result, "t") == ["-x", None, None]


def test_texts_that_mean_null_do_so_in_json_too(tmp_path: Path) -> None:
    builds = Builds(tmp_path, declare(key=["id"], null_values=["", "-"]))
    result = builds.build(
        b'[{"id": "a", "n": 1, "t": ""}, {"id": "b", "n": "-", "t": "x"}]', name="s.json"
    )
    assert values(builds, result, "t") == [None, "x"]
    assert values(builds, result, "n")[1] is None


def test_the_columns_of_a_key_in_another_order_are_the_same_key(tmp_path: Path) -> None:
    builds = Builds(tmp_path, declare(key=["id", "part"]))
    builds.build(b"id,part,n\na,1,5\nb,1,6\n")
    builds.declaration = declare(key=["part", "id"])
    assert isinstance(builds.build(b"id,part,n\na,1,5\nb,1,6\n"), Unchanged)
    result = built(builds.build(b"id,part,n\na,1,5\nb,1,7\n"))
    assert result.schema_change is None
    assert counts(result) == (0, 1, 0)


def test_values_are_trimmed_where_it_is_asked_for(tmp_path: Path) -> None:
    text = "id,n,t\n a , 1 ,\tx\xa0\nb,  ,\u3000 \n\u200bc\ufeff,2,y\u2003\n".encode()
    plain = Builds(tmp_path / "plain", declare(key=["id"]))
    plain.folder.mkdir()
    assert values(plain, plain.build(text), "t") == ["\tx\xa0", "\u3000 ", "y\u2003"]
    builds = Builds(tmp_path, declare(key=["id"], trim=True))
    result = builds.build(text)
    assert types(result)["n"] == "int64"
    assert values(builds, result, "id") == ["a", "b", "c"]
    assert values(builds, result, "t") == ["x", None, "y"]


def test_local_times_become_instants_of_the_zone(tmp_path: Path) -> None:
    builds = Builds(tmp_path, declare(key=["id"], timezone="America/New_York"))
    result = builds.build(b"id,at\na,2024-01-15T12:00:00\nb,2024-07-15 12:00:00\n")
    assert types(result)["at"] == "timestamp"
    winter, summer = (at.astimezone(UTC) for at in values(builds, result, "at"))
    assert winter == datetime(2024, 1, 15, 17, tzinfo=UTC)
    assert summer == datetime(2024, 7, 15, 16, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "text", "instant"),
    [
        ("America/New_York", "2024-11-03 01:30:00", datetime(2024, 11, 3, 5, 30, tzinfo=UTC)),
        ("America/New_York", "2024-11-03 01:00:00", datetime(2024, 11, 3, 5, tzinfo=UTC)),
        ("Australia/Lord_Howe", "2024-04-07 01:40:00", datetime(2024, 4, 6, 14, 40, tzinfo=UTC)),
    ],
)
def test_a_local_time_that_was_shown_twice_is_the_first_and_is_told(
    tmp_path: Path, zone: str, text: str, instant: datetime
) -> None:
    builds = Builds(tmp_path, declare(key=["id"], timezone=zone))
    result = builds.build(f"id,at\na,{text}\nb,2024-11-03 12:00:00\n".encode())
    assert values(builds, result, "at")[0].astimezone(UTC) == instant
    [finding] = built(result).findings
    assert (finding.kind, finding.subject, finding.reason) == ("repeated_times", "at", None)
    assert f"clocks of {zone} showed twice, read as the first: 1 of them" in finding.message
    assert finding.examples == [text]


def test_a_local_time_that_was_skipped_is_told(tmp_path: Path) -> None:
    builds = Builds(tmp_path, declare(key=["id"], timezone="America/New_York"))
    result = builds.build(
        b"id,at\na,2024-03-10T02:30:00\nb,2024-03-10T02:00:00\nc,2024-03-10T03:00:00\nd,\n"
    )
    at = [at and at.astimezone(UTC) for at in values(builds, result, "at")]
    assert at[0] == datetime(2024, 3, 10, 7, 30, tzinfo=UTC)
    [finding] = built(result).findings
    assert (finding.kind, finding.reason) == ("skipped_times", None)
    assert "clocks of America/New_York never showed: 2 of them" in finding.message
    assert finding.examples == ["2024-03-10T02:00:00"]


def test_local_times_that_are_clear_are_not_told(tmp_path: Path) -> None:
    builds = Builds(tmp_path, declare(key=["id"], timezone="America/New_York"))
    result = builds.build(
        b"id,at\na,2024-11-03T00:59:59\nb,2024-11-03T02:00:00\nc,2024-11-03T01:30:00-04:00\n"
        b"d,0001-01-01T00:00:00\ne,9999-12-31T23:00:00\nf,2024-03-10T03:00:00\n"
    )
    assert types(result)["at"] == "timestamp"
    assert not built(result).findings


def test_instants_keep_their_own_zone_and_texts_stay_texts(tmp_path: Path) -> None:
    builds = Builds(tmp_path, declare(key=["id"], timezone="America/New_York"))
    result = builds.build(b"id,at,t\na,2024-01-15T12:00:00Z,2024-01-15T12:00:00\nb,,unknown\n")
    assert values(builds, result, "at")[0].astimezone(UTC) == datetime(2024, 1, 15, 12, tzinfo=UTC)
    assert values(builds, result, "t") == ["2024-01-15T12:00:00", "unknown"]


def test_a_change_of_an_ignored_column_alone_is_none_and_comes_with_another(
    tmp_path: Path,
) -> None:
    builds = Builds(tmp_path, declare(key=["id"], ignore_changes=["seen"]))
    builds.build(b"id,n,seen\na,1,1\nb,2,1\n")
    assert isinstance(builds.build(b"id,n,seen\na,1,2\nb,2,2\n"), Unchanged)
    result = builds.build(b"id,n,seen\na,1,3\nb,5,3\n")
    assert counts(result) == (0, 1, 0)
    assert values(builds, result, "seen") == [1, 3]


def test_without_a_key_too_an_ignored_column_makes_no_other_record(tmp_path: Path) -> None:
    builds = Builds(tmp_path, declare(ignore_changes=["seen"]))
    builds.build(b"n,seen\n1,1\n2,1\n")
    assert isinstance(builds.build(b"n,seen\n2,2\n1,2\n"), Unchanged)


def test_small_differences_are_none_until_they_add_up(tmp_path: Path) -> None:
    """They are measured against the value held."""
    builds = Builds(tmp_path, declare(key=["id"], compare={"x": 0.1}))
    builds.build(b"id,x,n\na,1.0,1\nb,2.0,1\nc,,1\n")
    assert isinstance(builds.build(b"id,x,n\na,1.1,1\nb,1.95,1\nc,,1\n"), Unchanged)
    result = builds.build(b"id,x,n\na,1.11,1\nb,2.05,2\nc,,1\n")
    assert counts(result) == (0, 2, 0)
    assert values(builds, result, "x") == [1.11, 2.05, None]
    assert counts(builds.build(b"id,x,n\na,1.11,1\nb,,2\nc,0,1\n")) == (0, 2, 0)


def test_points_of_near_columns_are_near_too(tmp_path: Path) -> None:
    points = {"longitude": "x", "latitude": "y"}
    near = {"x": 1e-6, "y": 1e-6}
    builds = Builds(tmp_path, declare(key=["id"], geometry=points, compare=near))
    builds.build(b"id,x,y\na,28.5,10\n")
    assert isinstance(builds.build(b"id,x,y\na,28.500001,10\n"), Unchanged)
    assert counts(builds.build(b"id,x,y\na,28.500002,10\n")) == (0, 1, 0)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"compare": {"t": 1}}, "compare names t, which is string: only numbers are near"),
        ({"compare": {"z": 1}}, "the source has no column z, as declared; it has id, t"),
        ({"ignore_changes": ["z"]}, "the source has no column z, as declared; it has id, t"),
    ],
)
def test_a_setting_that_the_source_cannot_obey_is_a_failed_check(
    settings: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    result = Builds(tmp_path, declare(key=["id"], **settings)).build(b"id,t\na,x\n")
    assert isinstance(result, Broken)
    assert result.detail == reason


def test_repeated_keys_are_held_with_all_that_a_release_needs_r074_s05(tmp_path: Path) -> None:
    builds = Builds(tmp_path, declare(key=["id"]))
    result = built(builds.build(b"id,n\na,1\na,2\nb,3\n"))
    assert result.key_fault is not None
    assert len({row["_ploti_record_id"] for row in builds.rows(result)}) == 3
    assert counts(builds.build(b"id,n\nb,3\na,2\na,1\na,7\n")) == (1, 0, 0)


def test_numbered_keys_are_told_apart_and_none_is_held(tmp_path: Path) -> None:
    builds = Builds(tmp_path, declare(key=["id"], repeated_keys="number"))
    first = builds.build(b"id,n,t\na,1,x\na,2,y\nb,3,z\n")
    assert built(first).key_fault is None
    ids = {row["n"]: row["_ploti_record_id"] for row in builds.rows(first)}
    assert isinstance(builds.build(b"id,n,t\nb,3,z\na,2,y\na,1,x\n"), Unchanged)
    result = builds.build(b"id,n,t\na,5,y\na,1,x\nb,3,z\n")
    assert counts(result) == (0, 1, 0)
    assert {row["n"]: row["_ploti_record_id"] for row in builds.rows(result)}[5] == ids[2]
    alone = builds.build(b"id,n,t\na,5,y\nb,3,z\n")
    assert counts(alone) == (0, 0, 1)
    assert built(alone).key_fault is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (b'[{"id": "a", "n": 1}, {"id": "b", "n": 2}]', b"[]"),
        (
            (
                b'{"type": "FeatureCollection", "features": [{"type": "Feature", "properties":'
                b' {"id": "a"}, "geometry": {"type": "Point", "coordinates": [1, 2]}},'
                b' {"type": "Feature", "properties": {"id": "b"}, "geometry": null}]}'
            ),
            b'{"type": "FeatureCollection", "features": []}',
        ),
    ],
)
def test_a_state_without_rows_has_the_columns_of_the_version_before(
    first: bytes, second: bytes, tmp_path: Path
) -> None:
    builds = Builds(tmp_path, declare(key=["id"]))
    before = types(builds.build(first, name="s.json"))
    result = builds.build(second, name="s.json")
    assert counts(result) == (0, 0, 2)
    assert types(result) == before
    assert built(result).schema_change is None


def test_a_first_state_without_rows_and_columns_is_a_failed_check(tmp_path: Path) -> None:
    result = Builds(tmp_path, declare(key=["id"])).build(b"[]", name="s.json")
    assert isinstance(result, Broken)
    assert result.detail == "the source has no rows, and so no columns to begin with"


def test_rows_that_cannot_be_read_fail_the_check_unless_they_are_set_aside(tmp_path: Path) -> None:
    """Ragged rows, a stray byte, a quote never closed, one inside a value, the names again."""
    state = (
        b"id,n,t\na,1,x\nb,2\nc,3,y,z\nd,4,caf\xe9\n"
        b'e,5,"open\nf,6,"a\nb"\ng,7,5" pipe\nh,8,"q""q"\n\n\xef\xbb\xbfid,n,t\ni,9,z\n'
    )
    csv = {"format": "csv"}
    plain = Builds(tmp_path / "plain", declare(key=["id"], source=csv))
    plain.folder.mkdir()
    assert isinstance(plain.build(state), Broken)
    builds = Builds(tmp_path, declare(key=["id"], source=csv, bad_rows="set_aside"))
    result = builds.build(state)
    assert [(row["id"], row["t"]) for row in builds.rows(result)] == [
        ("a", "x"),
        ("f", "a\nb"),
        ("h", 'q"q'),
        ("i", "z"),
    ]
    (finding,) = built(result).findings
    assert (finding.kind, finding.measure) == ("rows_set_aside", 6)
    assert finding.examples == [
        "line 3: 2 values where the header has 3",
        "line 4: 4 values where the header has 3",
        "line 5: bytes that are not utf-8",
        "line 6: quotes that do not pair",
        "line 9: quotes that do not pair",
    ]


def test_what_is_set_aside_obeys_encoding_delimiter_and_header_row(tmp_path: Path) -> None:
    source = {"format": "csv", "encoding": "cp1252", "delimiter": ";", "header_row": 2}
    builds = Builds(tmp_path, declare(key=["id"], source=source, bad_rows="set_aside"))
    result = builds.build("Permits;2024\nid;t\na;é,x\nb\nc;ü\n".encode("cp1252"))
    assert values(builds, result, "t") == ["é,x", "ü"]
    (finding,) = built(result).findings
    assert finding.examples == ["line 4: 1 values where the header has 2"]


def test_names_that_cannot_be_read_are_a_failed_check_all_the_same(tmp_path: Path) -> None:
    source = {"format": "csv"}
    builds = Builds(tmp_path, declare(key=["id"], source=source, bad_rows="set_aside"))
    for state in (b'id,"t\na,1\n', b"", b"\n\n"):
        assert isinstance(builds.build(state), Broken)
