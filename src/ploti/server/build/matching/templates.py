"""The template by which new keys are made of old ones, learned from pairs of the two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TypeVar

from ploti.model.sql import literal
from ploti.model.wire import Value

LEARNED = 2_000
PROVED = 1_000
LEAST = 30
HOLDS = 0.98
MOST_RUNS = 12
MOST_DIGITS = 17

T = TypeVar("T")
Runs = tuple[str, ...]
Pair = tuple[Runs, Runs]


class Alignment(StrEnum):
    """From which end the runs of keys are counted: where some have more, one end fits."""

    LEFT = "left"
    RIGHT = "right"


class Rule(Value, kw_only=True):
    """How one run of the new key is made: of the old run at `place` plus `shift`, or `constant`."""

    place: int | None = None
    shift: int = 0
    constant: str = ""

    def make(self, old: Runs) -> str | None:
        """The run, of old runs in order of the alignment; None where the old key has none."""
        if self.place is None:
            return self.constant
        run = _at(old, self.place)
        if not self.shift:
            return run
        return None if (value := _number(run)) is None else str(value + self.shift)

    def sql(self, old: str) -> str:
        """The same, over a list of old runs in SQL."""
        if self.place is None:
            return literal(self.constant)
        run = f"list_extract({old}, {self.place + 1})"
        if not self.shift:
            return run
        number = f"CASE WHEN length({run}) <= {MOST_DIGITS} THEN TRY_CAST({run} AS BIGINT) END"
        return f"(({number}) + {self.shift})::VARCHAR"

    @property
    def words(self) -> str:
        """`2`, `2+100` or `'bp'`: an old run by its number, or a constant."""
        if self.place is None:
            return f"'{self.constant}'"
        return f"{self.place + 1}{self.shift:+d}" if self.shift else f"{self.place + 1}"


class Form(Value, kw_only=True):
    """A template: one rule for each run of the new key, counted from one end."""

    alignment: Alignment
    rules: tuple[Rule, ...]

    def make(self, old: Runs) -> Runs:
        """The new key's runs, counted from the form's end as the old ones are."""
        return tuple(run for rule in self.rules if (run := rule.make(old)) is not None)

    def sql(self, old: str) -> str:
        """The new key's runs as one text, over a list of old runs in SQL."""
        made = ", ".join(rule.sql(old) for rule in self.rules)
        return f"array_to_string([{made}], '|')"

    @property
    def words(self) -> str:
        """The rules as staff read them: `'bp' 1 2+100, counted from the left`."""
        return f"{' '.join(rule.words for rule in self.rules)}, counted from the {self.alignment}"


def learn(pairs: Sequence[Pair]) -> Form | None:
    """The form that holds for 98 % of the first pairs, and of as many as 1,000 others.

    None where there is none, or where there are fewer than 30 pairs to learn from and to prove.
    """
    if len(pairs) < LEAST:
        return None
    learned = min(LEARNED, len(pairs) * 2 // 3)
    first, others = pairs[:learned], pairs[learned : learned + PROVED]
    for alignment in Alignment:
        form = _form(first, alignment)
        if form and _holds(form, first) and _holds(form, others):
            return form
    return None


def aligned(key: Runs, alignment: Alignment) -> Runs:
    """The runs counted from the alignment's end."""
    return key if alignment is Alignment.LEFT else key[::-1]


def _form(pairs: Sequence[Pair], alignment: Alignment) -> Form | None:
    sample = [(aligned(old, alignment), aligned(new, alignment)) for old, new in pairs]
    length = max(len(new) for _, new in sample)
    if length > MOST_RUNS:
        return None
    rules = []
    for place in range(length):
        rule = _rule(sample, place)
        if rule is None:
            return None
        rules.append(rule)
    return Form(alignment=alignment, rules=tuple(rules))


def _rule(sample: Sequence[Pair], place: int) -> Rule | None:
    def fits(rule: Rule) -> bool:
        hits = sum(rule.make(old) == _at(new, place) for old, new in sample)
        return hits >= HOLDS * len(sample)

    old_runs = min(max(len(old) for old, _ in sample), MOST_RUNS)
    return next(filter(fits, _tries(sample, place, old_runs)), None)


def _tries(sample: Sequence[Pair], place: int, old_runs: int) -> list[Rule]:
    copies = [Rule(place=i) for i in range(old_runs)]
    shifts = [
        Rule(place=i, shift=shift)
        for i in range(old_runs)
        if (shift := _most_common(_difference(old, new, i, place) for old, new in sample))
    ]
    constant = _most_common(_at(new, place) for _, new in sample)
    return [*copies, *shifts, *([Rule(constant=constant)] if constant else [])]


def _most_common(values: Iterable[T | None]) -> T | None:
    counted = Counter(value for value in values if value is not None)
    return counted.most_common(1)[0][0] if counted else None


def _difference(old: Runs, new: Runs, old_place: int, new_place: int) -> int | None:
    before, after = _number(_at(old, old_place)), _number(_at(new, new_place))
    return None if before is None or after is None else after - before


def _number(run: str | None) -> int | None:
    if run is None or not run.isascii() or not run.isdigit() or len(run) > MOST_DIGITS:
        return None
    return int(run)


def _at(key: Runs, place: int) -> str | None:
    return key[place] if place < len(key) else None


def _holds(form: Form, pairs: Sequence[Pair]) -> bool:
    hits = sum(
        form.make(aligned(old, form.alignment)) == aligned(new, form.alignment)
        for old, new in pairs
    )
    return hits >= HOLDS * len(pairs)
