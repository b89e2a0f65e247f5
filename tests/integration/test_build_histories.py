"""Real histories, state by state: the true counts, the source's cells, fold and digest."""

import json
from pathlib import Path

import pytest
from tests.building import (
    HISTORIES,
    Dataset,
    check_fold,
    check_snapshot,
    declare,
    full_digest,
    history,
)

from ploti.model.digest import Buckets
from ploti.model.schema import Level
from ploti.model.version import Counts
from ploti.server.build.candidate import Candidate, FileRole, Unchanged

pytestmark = pytest.mark.skipif(
    not HISTORIES.exists(), reason="the histories lie in ../shared/data, which is absent"
)


def true_counts(name: str) -> list[Counts]:
    """Added, changed and removed of each step, an absent column read as blank."""
    facts = json.loads((HISTORIES / f"{name}.facts.json").read_text(encoding="utf-8"))
    return [
        Counts(
            added=step["added"],
            changed=step["changed_absent_column_as_blank"],
            removed=step["removed"],
        )
        for step in facts["diffs"]
    ]


def check_step(dataset: Dataset, before: Path, built: Candidate, *, major: bool = False) -> None:
    after = dataset.path(built, FileRole.SNAPSHOT)
    assert Buckets.from_wire(built.buckets) == full_digest(after, built)
    assert built.content_digest == Buckets.from_wire(built.buckets).content_digest
    if not major:
        check_fold(before, dataset.path(built, FileRole.CHANGES), after)


def test_airports_give_the_true_counts_and_every_snapshot_is_its_source(tmp_path: Path) -> None:
    """The third state retypes elevation and adds a column: a MAJOR change, loaded (S-15)."""
    dataset = Dataset(
        tmp_path / "built",
        declare(key=["icao"], geometry={"longitude": "lon", "latitude": "lat"}, continuation="off"),
    )
    counts = true_counts("airportsdata")
    for number, source in enumerate(history("airportsdata", tmp_path)):
        before = Path(dataset.base.snapshot) if dataset.base else None
        built = dataset.release(source)
        check_snapshot(dataset.path(built, FileRole.SNAPSHOT), source, key="icao")
        if before is None:
            assert built.counts == Counts(added=28867, changed=0, removed=0)
            continue
        assert built.counts == counts[number - 1]
        major = number == 2
        assert (
            built.schema_change is not None and built.schema_change.level is Level.MAJOR
        ) == major
        assert any(file.role is FileRole.CHANGES for file in built.files) != major
        check_step(dataset, before, built, major=major)
    assert isinstance(dataset.build(source), Unchanged)


def test_runways_give_the_true_counts_and_the_emptied_state_changes_nothing_after_it(
    tmp_path: Path,
) -> None:
    dataset = Dataset(
        tmp_path / "built",
        declare(
            key=["id"],
            geometry={"longitude": "le_longitude_deg", "latitude": "le_latitude_deg"},
        ),
    )
    counts = true_counts("runways")
    looked_at = {1, 3, 11, 13, 17, 21}
    for number, source in enumerate(history("runways", tmp_path), start=1):
        before = Path(dataset.base.snapshot) if dataset.base else None
        if number == 10:
            emptied = dataset.build(source)
            assert isinstance(emptied, Candidate)
            assert emptied.counts == counts[8] == Counts(added=0, changed=0, removed=46604)
            continue
        built = dataset.release(source)
        if before:
            one = Counts(added=0, changed=1, removed=0)
            assert built.counts == (one if number == 11 else counts[number - 2])
        if number in looked_at:
            check_snapshot(dataset.path(built, FileRole.SNAPSHOT), source, key="id")
            if before:
                check_step(dataset, before, built)
