"""Laws of a build over made-up histories: fold, digest, ids that stay, order that is nothing."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.building import Dataset, check_fold, declare, full_digest, rows_of

from ploti.model.digest import Buckets
from ploti.model.schema import Level
from ploti.server.build.candidate import Candidate, FileRole, Unchanged

KEYS = [f"k{number}" for number in range(12)]
TEXTS = st.sampled_from(["", "x", "Größe", 'a"b', "two\nlines", " y ", "007"])
NUMBERS = st.sampled_from(["", "0", "1", "12", "-3"])
DEGREES = st.sampled_from(["", "0", "10.5", "-20.25", "10.500000001"])
COLUMNS = {"text": TEXTS, "number": NUMBERS, "x": DEGREES, "y": DEGREES}
RECORD = st.fixed_dictionaries(COLUMNS)
STATE = st.dictionaries(st.sampled_from(KEYS), RECORD, max_size=len(KEYS))

State = dict[str, dict[str, str]]


def write(state: State, keys: list[str]) -> str:
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(["id", *COLUMNS])
    rows.writerows([key, *(state[key][name] for name in COLUMNS)] for key in keys)
    return out.getvalue()


def ids_of(dataset: Dataset, built: Candidate) -> dict[object, object]:
    rows = rows_of(dataset.path(built, FileRole.SNAPSHOT))
    ids = {row["id"]: row["_ploti_record_id"] for row in rows}
    assert len(set(ids.values())) == len(rows)
    return ids


@settings(max_examples=15, deadline=None)
@given(st.lists(STATE, min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_a_snapshot_with_the_changes_is_the_next_and_ids_stay(
    states: list[State], random: Random
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        dataset = Dataset(
            Path(folder), declare(key=["id"], geometry={"longitude": "x", "latitude": "y"})
        )
        held: State = {}
        ids: dict[object, object] = {}
        gone: dict[object, object] = {}
        for number, state in enumerate(states):
            keys = sorted(state)
            random.shuffle(keys)
            before = dataset.base
            built = dataset.build(dataset.write(write(state, keys)))
            if isinstance(built, Unchanged):
                assert state == held or not number
                continue
            built = dataset.accept(built)
            assert built.counts is not None
            now = ids_of(dataset, built)
            assert now.keys() == state.keys()
            assert all(now[key] == ids[key] for key in state.keys() & ids.keys())
            returned = {key: id_ for key, id_ in now.items() if id_ in set(gone.values())}
            assert returned == {key: gone[key] for key in now.keys() & gone.keys()}
            assert built.counts.added == len(state.keys() - held.keys())
            assert built.counts.removed == len(held.keys() - state.keys())
            after = dataset.path(built, FileRole.SNAPSHOT)
            assert Buckets.from_wire(built.buckets) == full_digest(after, built)
            if before and (built.schema_change is None or built.schema_change.level is Level.MINOR):
                changes = dataset.path(built, FileRole.CHANGES)
                check_fold(Path(before.snapshot), changes, after)
                assert len(rows_of(changes)) == built.counts.total
            gone = {key: id_ for key, id_ in (gone | ids).items() if key not in now}
            held, ids = state, now


@settings(max_examples=10, deadline=None)
@given(st.lists(RECORD, max_size=10), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_neither_ids_nor_files(
    rows: list[dict[str, str]], random: Random
) -> None:
    state = {f"k{number}": row for number, row in enumerate(rows)}
    found = []
    for _ in range(2):
        keys = sorted(state)
        random.shuffle(keys)
        with tempfile.TemporaryDirectory() as folder:
            dataset = Dataset(
                Path(folder), declare(key=["id"], geometry={"longitude": "x", "latitude": "y"})
            )
            built = dataset.release_text(write(state, keys))
            found.append([file.sha256 for file in built.files])
    assert found[0] == found[1]
