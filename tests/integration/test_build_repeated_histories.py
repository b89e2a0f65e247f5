"""Real histories whose keys repeat or are null, each under a declaration: the counts by row."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import shapely
from tests.building import HISTORIES, Dataset, check_fold, declare, history, rows_of

from ploti.model.schema import Level
from ploti.model.version import Counts
from ploti.server.build.candidate import Candidate, FileRole, Unchanged

pytestmark = pytest.mark.skipif(
    not HISTORIES.exists(), reason="the histories lie in ../shared/data, which is absent"
)

Cells = dict[str, object]


def cells_of(source: Path, *, nulls: Sequence[str] = ()) -> list[Cells]:
    """The rows of a source by plain Python, blanks and `nulls` as nothing."""
    nothing = {"", *nulls}
    with source.open(newline="", encoding="utf-8-sig") as file:
        header, *lines = csv.reader(file)
    names = [name.strip() for name in header]
    return [
        dict(zip(names, [None if text in nothing else text for text in line], strict=True))
        for line in lines
        if any(line)
    ]


def features_of(source: Path) -> list[Cells]:
    """The features of a source by plain Python, their geometry by its shape."""
    features = json.loads(source.read_text(encoding="utf-8"))["features"]
    return [
        {**feature["properties"], **_id(feature), "geometry": _shape(feature["geometry"])}
        for feature in features
    ]


def _id(feature: dict[str, Any]) -> Cells:
    return {"id": feature["id"]} if "id" in feature else {}


def _shape(geometry: dict[str, Any] | None) -> object:
    if geometry is None:
        return None
    return shapely.normalize(shapely.from_geojson(json.dumps(geometry))).wkt


def expected(before: list[Cells], after: list[Cells], key: str) -> Counts:
    """Within each key: rows that came and went by count, and of the others those not equal."""
    names = sorted(set().union(*before, *after))
    was, now = (_by_content(rows, key, names) for rows in (before, after))
    old, new = _by_key(was - now), _by_key(now - was)
    changed = (old & new).total()
    return Counts(added=new.total() - changed, changed=changed, removed=old.total() - changed)


def _by_content(rows: list[Cells], key: str, names: list[str]) -> Counter[tuple[object, ...]]:
    return Counter((row.get(key), *map(row.get, names)) for row in rows)


def _by_key(rows: Counter[tuple[object, ...]]) -> Counter[object]:
    by_key: Counter[object] = Counter()
    for (key, *_), count in rows.items():
        by_key[key] += count
    return by_key


@pytest.mark.parametrize(
    ("name", "key", "settings", "held"),
    [
        ("spearfish_permits", "permit_number", {"null_values": ["-"]}, set(range(2, 11))),
        ("gbfs_systems", "System ID", {}, set()),
    ],
)
def test_rows_that_share_a_key_are_counted_one_by_one(
    name: str, key: str, settings: dict[str, Any], held: set[int], tmp_path: Path
) -> None:
    """Of spearfish_permits one row has no key from the second state on, which is held."""
    declaration = declare(key=[key], repeated_keys="number", continuation="off", **settings)
    dataset = Dataset(tmp_path / "built", declaration)
    before: list[Cells] = []
    for number, source in enumerate(history(name, tmp_path), start=1):
        base = dataset.base
        built = dataset.release(source)
        rows = cells_of(source, nulls=settings.get("null_values", ()))
        assert built.row_count == len(rows)
        assert built.counts == expected(before, rows, key), source.name
        assert (built.key_fault is not None) == (number in held)
        change = built.schema_change
        if base and not (change and change.level is Level.MAJOR):
            paths = (dataset.path(built, role) for role in (FileRole.CHANGES, FileRole.SNAPSHOT))
            check_fold(Path(base.snapshot), *paths)
        before = rows


def test_austin_permits_go_on_through_a_renamed_column(tmp_path: Path) -> None:
    """v03 has `lon` and `lng`, v04 `lng` alone, which is read as `lon` then: one column goes."""
    declaration = declare(
        key=["permit_number"], repeated_keys="number", continuation="off", rename={"lng": "lon"}
    )
    dataset = Dataset(tmp_path / "built", declaration)
    before: list[Cells] = []
    for number, source in enumerate(history("austin_permits", tmp_path), start=1):
        rows = cells_of(source)
        if number >= 4:
            for row in rows:
                row["lon"] = row.pop("lng")
        built = dataset.release(source)
        assert built.counts == expected(before, rows, "permit_number"), source.name
        assert built.key_fault is None
        if number == 4:
            assert built.schema_change is not None
            assert [column.name for column in built.schema_change.removed] == ["lng"]
            assert not built.schema_change.added
        before = rows


def test_world_countries_change_by_shape_and_a_state_said_again_makes_no_version(
    tmp_path: Path,
) -> None:
    """Of the 9 features that v03 writes otherwise 8 have another shape."""
    declaration = declare(key=["id"], repeated_keys="number", continuation="off")
    dataset = Dataset(tmp_path / "built", declaration)
    before: list[Cells] = []
    for number, source in enumerate(history("world_countries_50m", tmp_path), start=1):
        rows = features_of(source)
        if number in {2, 7}:
            assert isinstance(dataset.build(source), Unchanged)
            continue
        built = dataset.release(source)
        assert built.counts == expected(before, rows, "id"), source.name
        assert (built.key_fault is not None) == (number in {5, 6})
        if number in {3, 4}:
            assert built.counts == Counts(added=0, changed=8, removed=0)
        before = rows


def test_runways_keep_their_ids_where_the_hidden_key_shows_that_they_go_on(tmp_path: Path) -> None:
    """v12 to v13 renames 3,384 airports; by the other key all of them seem to go and come."""
    *_, twelve, thirteen = [
        source for _, source in zip(range(13), history("runways", tmp_path), strict=False)
    ]
    key = ["airport_ident", "le_ident", "he_ident"]
    dataset = Dataset(
        tmp_path / "built", declare(key=key, repeated_keys="number", ignore_changes=["id"])
    )
    dataset.release(twelve)
    assert dataset.base is not None
    before = hidden(Path(dataset.base.snapshot))
    built = dataset.build(thirteen)
    assert isinstance(built, Candidate)
    after = hidden(dataset.path(built, FileRole.SNAPSHOT))
    went_on = before.keys() & after.keys()
    kept = sum(before[each] == after[each] for each in went_on)
    wrong = len(set(before.values()) & set(after.values())) - kept
    assert kept >= 0.995 * len(went_on)
    assert wrong <= 0.005 * 3384


def hidden(snapshot: Path) -> dict[object, object]:
    """The record ids by the source's own id, which the declared key leaves out."""
    return {row["id"]: row["_ploti_record_id"] for row in rows_of(snapshot)}
