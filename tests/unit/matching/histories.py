"""Real histories with their key hidden, and a judge that knows it."""

from __future__ import annotations

import csv
import io
import random
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.unit.matching.tables import Matched, Record, matched

DATA = Path(__file__).parents[4] / "shared" / "data"
ABSENT = "the real histories are not there: ../shared/data"


@dataclass(frozen=True)
class State:
    """One version of a history: its columns and its rows of text, blank as null."""

    label: str
    columns: tuple[str, ...]
    rows: list[dict[str, str | None]]


def states(name: str, *labels: str) -> list[State]:
    """The versions of a history whose file begins with one of the labels, or all of them."""
    archive = DATA / f"{name}.tar.xz"
    if not archive.exists():
        pytest.skip(ABSENT)
    with tarfile.open(archive, "r:xz") as files:
        return [
            _state(label, text) for label, text in _texts(files) if not labels or label in labels
        ]


def _texts(files: tarfile.TarFile) -> Iterator[tuple[str, str]]:
    for member in sorted(files.getmembers(), key=lambda member: member.name):
        if member.isfile() and (content := files.extractfile(member)):
            yield Path(member.name).name[:3], content.read().decode("utf-8-sig")


def _state(label: str, text: str) -> State:
    lines = csv.reader(io.StringIO(text, newline=""))
    columns = tuple(name.strip() for name in next(lines))
    rows = [
        {name: value or None for name, value in zip(columns, line, strict=True)}
        for line in lines
        if line
    ]
    return State(label, columns, rows)


@dataclass(frozen=True)
class Judged:
    """How a matching did; scored links alone in `scored`, rows whose key tells nothing left out."""

    right: int
    wrong: int
    scored_right: int
    scored_wrong: int
    continuing: int
    found: Matched

    @property
    def recall(self) -> float:
        return self.right / self.continuing


def judge(
    before: State, after: State, *, truth: str, key: Sequence[str] = (), **settings: object
) -> Judged:
    """Match two versions with the column `truth` hidden, unless it is the key."""
    hidden = {truth} - set(key)
    columns = dict.fromkeys(c for c in (*before.columns, *after.columns) if c not in hidden)
    types = {name: _type(name, before, after) for name in columns}
    found = matched(
        [_typed(row, types) for row in before.rows],
        [_typed(row, types) for row in after.rows],
        types=types,
        key=key,
        old_only=[c for c in columns if c not in after.columns],
        new_only=[c for c in columns if c not in before.columns],
        **settings,
    )
    return _verdict(before, after, found, truth=truth, hidden=hidden)


def _verdict(
    before: State, after: State, found: Matched, *, truth: str, hidden: set[str]
) -> Judged:
    old, new = (_single(state.rows, truth) for state in (before, after))
    shared = [c for c in before.columns if c in after.columns and c not in hidden]

    def alike(a: int, b: int) -> bool:
        return all(after.rows[a][c] == after.rows[b][c] for c in shared)

    counts: Counter[tuple[bool, str]] = Counter()
    for place, record in found.links.items():
        true_place = new.get(before.rows[record][truth])
        proved = old.get(before.rows[record][truth]) == record and true_place is not None
        if proved:
            right = true_place == place or alike(true_place, place)
            counts[right, found.stages[place]] += 1
    return Judged(
        right=sum(n for (right, _), n in counts.items() if right),
        wrong=sum(n for (right, _), n in counts.items() if not right),
        scored_right=counts[True, "continuation"],
        scored_wrong=counts[False, "continuation"],
        continuing=len(old.keys() & new.keys()),
        found=found,
    )


def _single(rows: Sequence[Record], truth: str) -> dict[object, int]:
    counts = Counter(row[truth] for row in rows)
    return {
        row[truth]: place
        for place, row in enumerate(rows)
        if row[truth] is not None and counts[row[truth]] == 1
    }


def _type(name: str, *of: State) -> str:
    values = {row[name] for state in of if name in state.columns for row in state.rows} - {None}
    plain = [str(value) for value in values]
    if any(len(v) > 1 and v[0] == "0" and v[1].isdigit() for v in plain):
        return "string"
    kinds: list[tuple[str, Callable[[str], object]]] = [("int64", int), ("float64", float)]
    for kind, read in kinds:
        if plain and all(_reads(read, value) for value in plain):
            return kind
    return "string"


def _reads(read: Callable[[str], object], value: str) -> bool:
    try:
        read(value)
    except ValueError:
        return False
    return "_" not in value


def _typed(row: Record, types: dict[str, str]) -> Record:
    read = {"int64": int, "float64": float, "string": str}
    return {
        name: None if (value := row.get(name)) is None else read[kind](value)
        for name, kind in types.items()
    }


def halves(state: State, *, seed: int) -> tuple[State, State]:
    """A version cut into two at random: in the second nothing of the first continues."""
    rows = list(state.rows)
    random.Random(seed).shuffle(rows)
    middle = len(rows) // 2
    return (
        State("one half", state.columns, rows[:middle]),
        State("the other", state.columns, rows[middle:]),
    )
