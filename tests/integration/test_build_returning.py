"""Records that left and return: they have their ids again, in the base's order (law 4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from tests.building import check_fold
from tests.fakes.builds import Builds, declare

from ploti.model.digest import Buckets, digest_sql
from ploti.model.sql import literal
from ploti.server.adapters.engine import walk
from ploti.server.build.candidate import BuildResult, Candidate, FileRole

POINTS = {"longitude": "lon", "latitude": "lat"}


def csv(keys: list[int], **changed: str) -> bytes:
    lines = [f"{key},{changed.get(f'k{key}', 'deck')},{key / 100},1" for key in keys]
    return "\n".join(["id,kind,lon,lat", *lines, ""]).encode()


def ids(builds: Builds, result: BuildResult) -> dict[str, str]:
    return {row["id"]: row["_ploti_record_id"] for row in builds.rows(result)}


@pytest.fixture
def builds(tmp_path: Path) -> Builds:
    return Builds(tmp_path, declare(key=["id"], geometry=POINTS))


def checked(builds: Builds, state: bytes, **options: Any) -> Candidate:
    """Build a state, and require the laws of fold and digest, and the order of ids."""
    before = builds.base
    built = builds.build(state, **options)
    assert isinstance(built, Candidate), built
    snapshot = builds.file(built, FileRole.SNAPSHOT)
    found = pq.read_table(snapshot).column("_ploti_record_id").to_pylist()
    assert found == sorted(set(found))
    if before and any(file.role is FileRole.CHANGES for file in built.files):
        changes = builds.file(built, FileRole.CHANGES)
        check_fold(Path(before.snapshot), Path(changes), Path(snapshot))
        listed = builds.rows(built, FileRole.CHANGES)
        order = [(row["_ploti_op"], row["_ploti_record_id"]) for row in listed]
        assert order == sorted(order)
        assert built.counts is not None
        assert len(listed) == built.counts.total
    assert Buckets.from_wire(built.buckets) == full_digest(built, snapshot)
    return built


def full_digest(built: Candidate, path: str) -> Buckets:
    with duckdb.connect() as connection:
        connection.execute("SET enable_geoparquet_conversion = false")
        sql = digest_sql(built.schema, f"read_parquet({literal(path)})")
        return Buckets.from_sql(connection.execute(sql).fetchall())


def test_a_key_that_comes_back_has_its_record_id_again_law4(builds: Builds) -> None:
    first = ids(builds, checked(builds, csv([*range(9)])))
    checked(builds, csv([0, 2, 3, 5, 6, 8]))
    built = checked(builds, csv([*range(1, 12)], k2="pool", k4="barn"))
    assert built.counts is not None
    assert (built.counts.added, built.counts.changed, built.counts.removed) == (6, 1, 1)
    back = ids(builds, built)
    assert {key: back[key] for key in ("1", "4", "7")} == {k: first[k] for k in ("1", "4", "7")}
    assert {back["9"][:12], back["10"][:12], back["11"][:12]} == {"rec_00000003"}
    listed = {row["id"]: row for row in builds.rows(built, FileRole.CHANGES) if row["id"]}
    assert (listed["4"]["_ploti_change"], listed["4"]["kind"]) == ("added", "barn")


def test_it_is_remembered_over_versions_in_between_and_after_the_last_record(
    builds: Builds,
) -> None:
    first = ids(builds, checked(builds, csv([0, 1, 2, 3])))
    for state in (csv([0, 1]), csv([0, 1], k0="pool"), csv([0, 4])):
        checked(builds, state)
    built = checked(builds, csv([0, 1, 2, 3, 4]))
    now = ids(builds, built)
    assert {key: now[key] for key in first} == first
    assert builds.base is not None
    assert builds.base.gone is None


def test_after_the_time_that_is_kept_it_is_a_new_record(builds: Builds) -> None:
    first = ids(builds, checked(builds, csv([0, 1, 2])))
    checked(builds, csv([0, 1]))
    checked(builds, csv([0]))
    now = ids(builds, checked(builds, csv([0, 1, 2]), gone_since=3))
    assert now["1"] == first["1"]
    assert now["2"] == "rec_000000040000000000"


def test_of_a_key_that_was_removed_twice_the_last_record_returns(tmp_path: Path) -> None:
    builds = Builds(tmp_path, declare(key=["id"], continuation="off"))
    checked(builds, csv([0, 1]))
    checked(builds, csv([0]))
    again = ids(builds, checked(builds, csv([0, 1]), gone_since=9))
    checked(builds, csv([0]))
    assert ids(builds, checked(builds, csv([0, 1]))) == again


def shared(*rows: str) -> bytes:
    """Rows of a key, a text, a number and an instant, after one that stays."""
    return "\n".join(["id,kind,n,at", "0,stays,0,2024-01-01T00:00:00Z", *rows, ""]).encode()


def by_kind(builds: Builds, built: Candidate) -> dict[str, str]:
    return {row["kind"]: row["_ploti_record_id"] for row in builds.rows(built)}


DECK, POOL, BARN = (
    f"1,{kind},{n}.5,2024-05-0{n}T07:08:09.123Z"
    for n, kind in enumerate(("deck", "pool", "barn"), start=1)
)


def test_records_that_shared_a_key_return_as_those_that_are_most_alike(tmp_path: Path) -> None:
    """Equal rows first, then the most alike, one to one; whether they left together or not."""
    builds = Builds(tmp_path, declare(key=["id"], repeated_keys="number"))
    first = by_kind(builds, checked(builds, shared(DECK, POOL, BARN)))
    checked(builds, shared())
    now = by_kind(builds, checked(builds, shared("1,barrn,3.5,2024-05-03T07:08:09.123Z", POOL)))
    assert (now["pool"], now["barrn"]) == (first["pool"], first["barn"])
    checked(builds, shared(POOL))
    checked(builds, shared())
    one = by_kind(builds, checked(builds, shared(DECK)))
    assert one["deck"] == first["deck"]
    now = by_kind(builds, checked(builds, shared(BARN, DECK, POOL)))
    assert now == first


def test_a_key_that_was_shared_once_tells_no_record_though_others_are_shared_now(
    tmp_path: Path,
) -> None:
    """What a record had that goes is kept for a key of its own too, where one of this key went."""
    builds = Builds(tmp_path, declare(key=["id"], repeated_keys="number"))
    deck, pool, *pairs = (
        f"{key},{kind},{key}.5,2024-01-01T00:00:00Z"
        for key, kinds in (("1", ("deck", "pool")), ("2", "pq"), ("3", "pq"))
        for kind in kinds
    )
    first = by_kind(builds, checked(builds, shared(deck, pool)))
    checked(builds, shared(deck, *pairs[:2]))
    checked(builds, shared(*pairs[2:]))
    now = by_kind(builds, checked(builds, shared(deck, *pairs[2:])))
    assert now["deck"] == first["deck"]


def test_a_place_tells_them_apart_too(tmp_path: Path) -> None:
    builds = Builds(tmp_path, declare(key=["id"], repeated_keys="number", geometry=POINTS))
    rows = [b"id,lon,lat", b"0,0,0", b"1,5.5,6.5", b"1,7.5,8.5", b""]
    first = checked(builds, b"\n".join(rows))
    before = {row["lon"]: row["_ploti_record_id"] for row in builds.rows(first)}
    checked(builds, b"\n".join([*rows[:2], b""]))
    built = checked(builds, b"\n".join([*rows[:2], rows[3], b""]))
    assert {row["lon"]: row["_ploti_record_id"] for row in builds.rows(built)} == {
        lon: before[lon] for lon in (0, 7.5)
    }


def test_an_emptied_dataset_has_all_its_ids_again(builds: Builds) -> None:
    first = ids(builds, checked(builds, csv([*range(5)])))
    checked(builds, csv([]))
    assert ids(builds, checked(builds, csv([*range(5)]))) == first


def test_where_the_matcher_runs_they_return_too(tmp_path: Path) -> None:
    builds = Builds(tmp_path, declare(key=["id"], continuation="auto"))
    first = ids(builds, checked(builds, csv([*range(100)])))
    checked(builds, csv([*range(60)]))
    built = checked(builds, csv([*range(30, 100), *range(200, 230)]))
    now = ids(builds, built)
    assert {key: now[key] for key in map(str, range(30, 100))} == {
        key: first[key] for key in map(str, range(30, 100))
    }


def test_many_that_return_leave_row_groups_of_a_good_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds = Builds(tmp_path, declare(key=["id"]))
    monkeypatch.setattr(walk, "BATCH", 7)
    first = ids(builds, checked(builds, csv([*range(50)])))
    checked(builds, csv([*range(0, 50, 3)]))
    built = checked(builds, csv([*range(60)]))
    now = ids(builds, built)
    assert {key: now[key] for key in first} == first


def test_a_state_matched_to_another_version_follows_the_base_by_its_ids_s21(
    builds: Builds,
) -> None:
    checked(builds, csv([0, 1, 2]))
    older = builds.base
    checked(builds, csv([1, 2, 3], k1="pool"))
    current = builds.base
    assert older is not None
    assert current is not None
    built = checked(builds, csv([0, 1, 2, 3]), matched_to=older)
    assert [file.role for file in built.files if file.role is FileRole.CHANGES] == []
    assert built.counts is not None
    assert (built.counts.added, built.counts.changed, built.counts.removed) == (1, 1, 0)
    found = ids(builds, built)
    assert found["0"] == "rec_000000010000000000"
    assert found["3"] == "rec_000000020000000000"
