"""The matching inside a build: over the shaped table and the snapshot, to the differences."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from tests.fakes.builds import MEMORY, Builds, declare
from tests.unit.matching.tables import permits

from ploti.server.adapters.engine.duck import DuckEngine
from ploti.server.adapters.readers import READERS
from ploti.server.build import diff
from ploti.server.build.candidate import Base, BuildOrder, Candidate
from ploti.server.build.matching.differences import differences_sql, link_keys_sql, question_of
from ploti.server.build.matching.links import begin
from ploti.server.build.matching.match import match_beyond
from ploti.server.build.matching.question import Continuation, Report, Stage
from ploti.server.service.build_version import find_key_fault
from ploti.server.service.match_state import Sides, match_state
from ploti.server.service.shape_state import State, shape_state

POINTS = {"longitude": "lon", "latitude": "lat"}


def csv(rows: list[dict[str, Any]]) -> bytes:
    lines = [rows[0].keys(), *(row.values() for row in rows)]
    return "".join(",".join(map(str, line)) + "\n" for line in lines).encode()


@pytest.fixture
def first(tmp_path: Path) -> Builds:
    builds = Builds(tmp_path, declare(key=["permit"], geometry=POINTS))
    assert isinstance(builds.build(csv(permits(60))), Candidate)
    return builds


@contextmanager
def shaped_next(builds: Builds, state: bytes) -> Iterator[tuple[DuckEngine, State, Base]]:
    """A second version's engine, with its shaped state and the base."""
    base = builds.base
    assert base is not None
    folder = builds.folder / "next"
    folder.mkdir()
    (folder / "state.csv").write_bytes(state)
    order = BuildOrder(
        dataset_id=builds.declaration.id,
        declaration=builds.declaration,
        version=2,
        base=base,
        source=str(folder / "state.csv"),
        source_name="state.csv",
        folder=str(folder),
    )
    reads = [order.source, base.snapshot]
    with DuckEngine(str(folder), reads=reads, memory_limit=MEMORY, threads=1) as engine:
        yield engine, shape_state(order, readers=READERS, engine=engine), base


def match_next(builds: Builds, state: bytes) -> tuple[Report, tuple[int, ...], list[str]]:
    """The report, records added, changed and removed, and the ids of those that changed."""
    with shaped_next(builds, state) as (engine, shaped, base):
        tables = (shaped.kept.relation, diff.snapshot_relation(base.snapshot), shaped.shape)
        begin(engine.rows)
        engine.run(link_keys_sql(*tables, base=base.schema))
        report = match_beyond(engine.rows, question_of(*tables, base=base.schema))
        engine.run(differences_sql(*tables, base=base.schema))
        counts = cast("tuple[int, ...]", engine.rows(diff.COUNTS_SQL)[0])
        changed = engine.rows(
            f"SELECT _ploti_record_id FROM {tables[1]} AS b JOIN {diff.DIFF} AS d "
            "ON b.file_row_number = d.base_pos WHERE d.new_pos IS NOT NULL ORDER BY 1"
        )
        return report, counts, [str(row[0]) for row in changed]


def test_b07_renumbered_permits_are_changed_not_added_and_removed(first: Builds) -> None:
    renumbered = [{**row, "permit": f"N{i * 17 % 61}"} for i, row in enumerate(permits(60))]
    report, counts, changed = match_next(first, csv(renumbered[::-1]))
    assert counts == (0, 60, 0)
    assert len(set(changed)) == 60
    assert report.links == {Stage.CONTENT: 60}


def test_by_keys_alone_the_differences_are_those_of_the_plain_diff(first: Builds) -> None:
    rows = permits(62)
    new = [{**row, "value": 1} if i < 4 else row for i, row in enumerate(rows) if i != 9]
    report, counts, changed = match_next(first, csv(new))
    assert counts == (2, 4, 1)
    assert len(changed) == 4
    assert report.links == {Stage.KEY: 59}
    result = first.build(csv(new))
    assert isinstance(result, Candidate)
    assert result.counts is not None
    assert (result.counts.added, result.counts.changed, result.counts.removed) == counts


def test_repeated_keys_are_told_apart_by_the_rest(first: Builds) -> None:
    rows: list[dict[str, Any]] = list(permits(60))
    rows.append({**rows[0], "value": 7, "work": "sign"})
    report, counts, changed = match_next(first, csv(rows[::-1]))
    assert report.repeated_keys == 1
    assert counts == (1, 0, 0)
    assert changed == []


def sharing(count: int, *, seed: int) -> list[dict[str, Any]]:
    """Permits of which some share a key, and some of these all that they have."""
    draw = random.Random(seed)
    named = {"state": "TX", "base": "", "id": 1, "place": 2}
    rows = [{**row, **named} for row in permits(count, seed=seed)]
    for row in draw.sample(rows, count // 2):
        twin = {**draw.choice(rows), "work": draw.choice(["sign", "pool"])}
        row.update(twin if draw.random() < 0.5 else {"permit": twin["permit"]})
    return rows


def edited(rows: list[dict[str, Any]], *, seed: int) -> list[dict[str, Any]]:
    """The rows in another order, a few of them changed, gone, new or twice."""
    draw = random.Random(seed)
    now = [dict(row) for row in rows]
    for row in draw.sample(now, 25):
        row[draw.choice(["work", "value", "lat"])] = draw.choice([7, 8])
    now = (
        now[4:]
        + draw.choices(now, k=4)
        + [{**row, "work": "new"} for row in draw.choices(now, k=4)]
    )
    return draw.sample(now, len(now))


def differences(engine: DuckEngine, shaped: State, base: Base) -> list[tuple[object, ...]]:
    """What differs: ids with what their records become; rows that are equal are one another's."""
    return engine.rows(
        f"SELECT _ploti_record_id, ch, kh FROM {diff.DIFF} LEFT JOIN"
        f" {diff.snapshot_relation(base.snapshot)} AS b ON b.file_row_number = base_pos"
        f" LEFT JOIN {shaped.kept.relation} AS s ON s.file_row_number = new_pos ORDER BY ALL"
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("settings", "column"),
    [
        ({}, None),
        ({"ignore_changes": ["value"]}, None),
        ({"compare": {"lat": 0.1}}, None),
        ({}, "x"),
    ],
)
def test_rows_of_shared_keys_are_matched_alike_with_all_others_beside_them_or_without(
    tmp_path: Path, settings: dict[str, Any], column: str | None, seed: int
) -> None:
    """The rows that single keys leave are the whole question, with tolerances or a new column."""
    declared = declare(key=["permit"], repeated_keys="number", continuation="off", **settings)
    builds = Builds(tmp_path, declared)
    before = sharing(120, seed=seed)
    assert isinstance(builds.build(csv(before)), Candidate)
    now = edited(before, seed=seed)
    if column:
        now = [{**row, column: "" if number % 4 else 1} for number, row in enumerate(now)]
    with shaped_next(builds, csv(now)) as (engine, shaped, base):
        sides = Sides(
            state=shaped, base=base, gone=None, continuation=Continuation.OFF, lifted=None
        )
        fault = find_key_fault(shaped, engine)
        assert fault is not None
        assert match_state(sides, engine, fault=fault).same_keys is False
        assert engine.rows("SELECT DISTINCT stage FROM match_links") == [("repeated_key",)]
        alone = differences(engine, shaped, base)
        tables = (shaped.kept.relation, diff.snapshot_relation(base.snapshot), shaped.shape)
        begin(engine.rows)
        engine.run(link_keys_sql(*tables, base=base.schema))
        match_beyond(engine.rows, sides.question)
        engine.run(differences_sql(*tables, base=base.schema))
        assert alone == differences(engine, shaped, base)
        assert len(alone) > 25
