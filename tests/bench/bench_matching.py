"""How good the matching is where the true key is known and hidden, and what it costs.

Real histories step by step, tables made from them (3 % lost, 3 % added, a share edited in 1 to 3
columns), and halves in which nothing continues. One thread; CPU seconds of the matching alone.
`python -m tests.bench.bench_matching [history …]` prints the table.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterable, Iterator

from tests.unit.matching.histories import Judged, State, halves, judge, states

KEYS = {
    "runways": "id",
    "austin_permits": "permit_number",
    "gbfs_systems": "System ID",
    "spearfish_permits": "permit_number",
    "airportsdata": "icao",
}
MADE = {"runways": "v21", "airportsdata": "v08"}
HEAD = ("table", "scored: right", "wrong", "all: right", "wrong", "recall", "CPU s", "gate")


def steps(name: str) -> Iterator[Judged]:
    """A history's steps; a version without rows is passed over."""
    versions = [state for state in states(name) if state.rows]
    for before, after in itertools.pairwise(versions):
        yield judge(before, after, truth=KEYS[name])


def made(name: str, share: float) -> Judged:
    """A version against itself with rows lost, added and this share of them edited."""
    (state,) = states(name, MADE[name])
    draw = random.Random(5)
    before = [row for row in state.rows if draw.random() > 0.03]
    after = [row for row in state.rows if draw.random() > 0.03]
    edited = [
        _edited(row, state, draw, KEYS[name]) if draw.random() < share else row for row in after
    ]
    draw.shuffle(edited)
    old, new = (State(label, state.columns, rows) for label, rows in (("a", before), ("b", edited)))
    return judge(old, new, truth=KEYS[name])


def _edited(
    row: dict[str, str | None], state: State, draw: random.Random, key: str
) -> dict[str, str | None]:
    """One to three columns with the value of another row, or with one character another."""
    changed = dict(row)
    columns = [column for column in state.columns if column != key]
    for column in draw.sample(columns, draw.randint(1, 3)):
        value = row[column]
        if value is None or draw.random() < 0.5:
            changed[column] = draw.choice(state.rows)[column]
        else:
            place = draw.randrange(len(value))
            digit = value[place].isdigit()
            other = draw.choice("123456789" if digit else "abcdefghij")
            changed[column] = value[:place] + other + value[place + 1 :]
    return changed


def line(name: str, judged: Iterable[Judged]) -> str:
    """One line of the table; the gate's worst estimate, `shut` where it let nothing through."""
    all_steps = list(judged)
    gates = [gate for step in all_steps if (gate := step.found.report.gate)]
    right = sum(step.right for step in all_steps)
    continuing = sum(step.continuing for step in all_steps)
    cells = [
        name,
        sum(step.scored_right for step in all_steps),
        sum(step.scored_wrong for step in all_steps),
        right,
        sum(step.wrong for step in all_steps),
        f"{right / continuing:.4f}" if continuing else "–",
        f"{sum(step.found.cpu_seconds for step in all_steps):.1f}",
        f"{max(g.estimate for g in gates):.2f}{' shut' if not all(g.stands for g in gates) else ''}"
        if gates
        else "–",
    ]
    return f"| {' | '.join(map(str, cells))} |"


def main(names: list[str]) -> None:
    """Print the table for these histories, or for all."""
    chosen = names or list(KEYS)
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for name in chosen:
        print(line(name, steps(name)), flush=True)
        (state,) = states(name, "v08")
        print(
            line(f"{name}, halves", [judge(*halves(state, seed=5), truth=KEYS[name])]), flush=True
        )
        for share in (0.01, 0.1, 1.0) if name in MADE else ():
            print(line(f"{name}, {share:.0%} edited", [made(name, share)]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
