"""Histories of a table whose types matter, through the use cases, against plain Python.

What is added, changed and removed, which version is held and why, and every cell of a snapshot
are known beforehand: values are written otherwise, misfit, come and go, and so do columns.
"""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.fakes.child_builder import ChildBuilder
from tests.fakes.typed_oracle import Expected, Texts, Typed, expected, typed
from tests.fakes.world import PERMITS, World, play
from tests.property.test_version_laws import History

from ploti.model.admin import Outcome
from ploti.server.build.candidate import FileRole
from ploti.server.service.rebuild_version import rebuild_version
from ploti.server.service.restore_version import restore_version

KEYS = [f"K{number:02}" for number in range(60)]
STEPS = ("push",) * 6 + ("decide", "decide", "rebuild", "restore")
VALUES = {
    "n": lambda random: str(random.randrange(50)),
    "f": lambda random: f"{random.randrange(1000) / 8}",
    "t": lambda random: random.choice(["a", "Größe", ' x "y"', "l1\nl2", "007", "1e5"]),
    "b": lambda random: random.choice(["true", "false"]),
    "d": lambda random: f"20{random.randrange(10, 30)}-0{random.randrange(1, 10)}-15",
    "e": lambda _: None,
}
"""What a column holds, by the first letter of its name."""


class Table:
    """A source that is edited: its columns, and its rows by their keys."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.names = ["id", *random.sample(sorted(VALUES), 4)]
        self.rows: dict[str, Texts] = {}
        self.repeated: list[str] = []
        self._columns = 0
        self.add(random.choice([5, 19, 25, 40]))

    def state(self) -> list[Texts]:
        again = [dict(self.rows[key]) for key in self.repeated if key in self.rows]
        rows = [*self.rows.values(), *again]
        self.random.shuffle(rows)
        return rows

    def edit(self) -> None:
        self.repeated = []
        edits = (self.change,) * 3 + (self.drop, self.add, self.write_otherwise, self.reorder)
        edits += (self.widen, self.narrow, self.misfit, self.empty, self.lose, self.repeat)
        for edit in self.random.choices(edits, k=self.random.randrange(1, 4)):
            edit()

    def change(self) -> None:
        for row in self._some(5):
            name = self._column()
            row[name] = VALUES[name[0]](self.random)

    def drop(self) -> None:
        for row in self._some(4):
            del self.rows[str(row["id"])]

    def add(self, count: int = 4) -> None:
        for key in self.random.sample(KEYS, count):
            values = {name: VALUES[name[0]](self.random) for name in self.names[1:]}
            self.rows.setdefault(key, {"id": key} | values)

    def write_otherwise(self) -> None:
        for row in self.rows.values():
            row.update({name: _otherwise(name[0], text) for name, text in row.items()})

    def reorder(self) -> None:
        self.names[1:] = self.random.sample(self.names[1:], len(self.names) - 1)

    def widen(self) -> None:
        self._columns += 1
        name = f"{self.random.choice(sorted(VALUES))}{self._columns}"
        self.names.append(name)
        for row in self.rows.values():
            row[name] = VALUES[name[0]](self.random)

    def narrow(self) -> None:
        if len(self.names) > 3:
            self.names.remove(self._column())

    def misfit(self) -> None:
        for row in self._some(1):
            row[self._column()] = self.random.choice(["zzz", "1.5", "7", "-", "true"])

    def empty(self) -> None:
        name = self._column()
        for row in self._some(self.random.choice([1, len(KEYS)])):
            row[name] = None

    def lose(self) -> None:
        for row in self._some(len(self.rows) // 2):
            del self.rows[str(row["id"])]

    def repeat(self) -> None:
        self.repeated = [str(row["id"]) for row in self._some(2)]

    def _some(self, most: int) -> list[Texts]:
        return self.random.sample(list(self.rows.values()), min(most, len(self.rows)))

    def _column(self) -> str:
        return self.random.choice(self.names[1:])


def _otherwise(sort: str, text: str | None) -> str | None:
    """The same value as another program writes it."""
    if text is None or sort not in "nfb":
        return text
    if sort == "b":
        return text.capitalize()
    if not text.replace(".", "").isdecimal():
        return text
    return f"{text}0" if "." in text else f"{text}.0"


class TypedHistory(History):
    """A dataset of such a source, and what is known of it beforehand."""

    def __init__(self, world: World, subscription: Any, random: Random, *, numbered: bool) -> None:
        super().__init__(world, subscription)
        self.random = random
        self.source = Table(random)
        self.numbered = numbered
        self.accepted = False
        self.ordered = False
        self.built: dict[int, Typed] = {}
        self.base: Typed | None = None

    async def push(self, _: Any) -> None:
        if self.base:
            self.source.edit()
        names, rows = self.source.names, self.source.state()
        if not rows:
            return
        base, now = self.base, typed(names, rows, self.base)
        outcome = await self.world.push(_csv(names, rows))
        self.note(outcome, now)
        if base and (self.numbered or not (_repeats(now) or _repeats(base))):
            self.judge(outcome, expected(now, base))

    def judge(self, outcome: Outcome, meant: Expected) -> None:
        """An outcome against what must come of the state; what was accepted may hold no more."""
        if meant.counts == (0, 0, 0) and meant.level is None:
            assert outcome.outcome == "unchanged" or self.ordered, outcome
        elif outcome.outcome == "unchanged":
            assert "waits for review" in outcome.detail or "discarded last" in outcome.detail
        else:
            assert outcome.counts is not None
            counts = outcome.counts.added, outcome.counts.changed, outcome.counts.removed
            reason = str(outcome.hold.reason) if outcome.hold else None
            assert counts == meant.counts, outcome
            assert reason in (
                [None, *meant.reasons] if self.accepted else [*meant.reasons, None][:1]
            )

    async def decide(self, how: Any) -> None:
        how = self.random.choice(["release", "release", "discard"])
        self.accepted |= how == "release"
        await super().decide(how)

    async def rebuild(self, _: Any) -> None:
        if self.base:
            outcome = await rebuild_version(self.world.parts, PERMITS)
            self.order(outcome, self.base)

    async def restore(self, _: Any) -> None:
        if self.seen:
            number = self.random.choice(sorted(self.built.keys() & await self.numbers()))
            self.order(await restore_version(self.world.parts, PERMITS, number), self.built[number])

    def order(self, outcome: Outcome, content: Typed) -> None:
        """A version was ordered: it is one even where nothing differs."""
        assert outcome.outcome in {"released", "held"}
        self.ordered = True
        self.note(outcome, content)

    def note(self, outcome: Outcome, state: Typed) -> None:
        if outcome.outcome in {"released", "held"} and outcome.version is not None:
            self.built[outcome.version] = state

    async def numbers(self) -> set[int]:
        return {version.version for version in await self.released()}

    async def check(self) -> None:
        """Every cell of a version that was released since, and the laws of its ids and fold."""
        for number in sorted(await self.numbers()):
            if number > self.seen:
                self.base, self.ordered = self.built[number], False
                rows = await self.rows(number, FileRole.SNAPSHOT)
                found = [{name: row[name] for name in self.base.types} for row in rows]
                assert sorted(map(repr, found)) == sorted(map(repr, self.base.rows))
        await super().check()


def _csv(names: list[str], rows: list[Texts]) -> str:
    out = io.StringIO()
    lines = csv.writer(out)
    lines.writerow(names)
    lines.writerows(["" if row[name] is None else row[name] for name in names] for row in rows)
    return out.getvalue()


def _repeats(state: Typed) -> bool:
    return len({row["id"] for row in state.rows}) < len(state.rows)


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1_000_000))
@example(25)
@example(44)
def test_what_comes_of_a_table_is_what_plain_python_finds(seed: int) -> None:
    random = Random(seed)
    numbered = seed % 2 == 0

    async def story(world: World) -> None:
        repeated = "number" if numbered else "hold"
        await world.declare(continuation="off", repeated_keys=repeated)
        history = TypedHistory(world, await world.subscribe(), random, numbered=numbered)
        for step in ("push", *random.choices(STEPS, k=9)):
            await history.do(step, None)
        await history.follow(None)
        assert history.held == await history.current()

    with tempfile.TemporaryDirectory() as folder:
        play(Path(folder), story, builder=ChildBuilder())
