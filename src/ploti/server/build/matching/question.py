"""What the matching is asked, and what it reports."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from ploti.model.wire import Value
from ploti.server.build.limits import Limit

Row = tuple[object, ...]

LEAST_PAIRS = 20
"""Fewer pairs say nothing of a key."""


class Run(Protocol):
    """Executes one SQL statement and gives its rows; raises OverBudget past a limit of its own."""

    def __call__(self, sql: str, /) -> Sequence[Row]:
        """The statement's rows, none for one that has no result."""
        ...


class OverBudget(Exception):
    """The matching would take, or took, more than it may; or it failed, without a `limit` then."""

    def __init__(self, message: str, *, limit: Limit | None) -> None:
        super().__init__(message)
        self.limit = limit


class Stage(StrEnum):
    """What found a link, in the order in which the stages run."""

    KEY = "key"
    RETURNED = "returned"
    REPEATED_KEY = "repeated_key"
    KEY_FORM = "key_form"
    KEY_TEMPLATE = "key_template"
    CONTENT = "content"
    CONTINUATION = "continuation"


class Continuation(StrEnum):
    """The declaration's `continuation`: what a keyed version does beyond its keys."""

    REVIEW = "review"
    AUTO = "auto"
    OFF = "off"


class MatchColumn(Value, kw_only=True):
    """A column that both relations have, under this name and of this type of the schema.

    `compared` is false for one whose change alone does not make a record changed.
    """

    name: str
    type: str
    compared: bool = True


class Budget(Value, kw_only=True):
    """Limits of the scored stage: pairs in all (None for no limit), and of one block.

    A block's limit is halved until the pairs fit; where it falls below `least_block` the budget
    is broken.
    """

    pairs: int | None = 20_000_000
    block: int = 400
    least_block: int = 25


class Question(Value, kw_only=True):
    """One matching: relations are SQL text that stands behind FROM.

    `columns` are those that both relations have, `added` those of `new` alone (they only order
    rows that are equal in all others).
    `key_before` are the base's key columns (of `base`), `key_now` those declared now (of `new`);
    both empty where the dataset has no key. `gone` is a relation of records removed lately, as
    `base` has them, with null in all but the key where the key tells them apart; or None.
    """

    base: str
    new: str
    columns: tuple[MatchColumn, ...]
    added: tuple[str, ...] = ()
    key_before: tuple[str, ...] = ()
    key_now: tuple[str, ...] = ()
    gone: str | None = None
    continuation: Continuation = Continuation.REVIEW
    budget: Budget = Budget()

    @property
    def keyed_alike(self) -> bool:
        """Whether there is a key, and it is the base's."""
        return bool(self.key_now) and self.key_now == self.key_before

    @property
    def tie_break(self) -> tuple[str, ...]:
        """Every column of the new rows: what orders them, whatever order they came in."""
        return (*(column.name for column in self.columns), *self.added)

    @property
    def content(self) -> tuple[MatchColumn, ...]:
        """The compared columns, those of either key apart."""
        keys = {*self.key_before, *self.key_now}
        return tuple(c for c in self.columns if c.compared and c.name not in keys)


class Proof(Value, kw_only=True):
    """Whether pairs made by a key agree: of `pairs`, and of as many made at random, so many agree.

    A pair agrees where at least half of its informative columns (more than 20 values, before and
    now) are equal. `told` is whether half of the pairs are equal in a column that tells rows apart.
    Of the `changed` pairs so many `moved`: what the key has now was another record's alone.
    """

    columns: int = 0
    pairs: int = 0
    agreeing: int = 0
    random_pairs: int = 0
    random_agreeing: int = 0
    told: bool = False
    changed: int = 0
    moved: int = 0

    @property
    def dealt_anew(self) -> bool:
        """Most pairs agree no more than rows at random do, or most of the changed ones moved.

        The first is no sign where a column is `told`: the others changed. The second finds keys
        that count rows, where one came in the middle: half of them agree.
        """
        if self.moved >= LEAST_PAIRS and self.moved * 2 >= self.changed:
            return True
        if self.told or self.columns == 0 or self.pairs < LEAST_PAIRS:
            return False
        if self.agreeing * 2 >= self.pairs:
            return False
        by_chance = self.random_agreeing / max(self.random_pairs, 1)
        return self.agreeing / self.pairs <= by_chance + 0.05


class Template(Value, kw_only=True):
    """How the new keys are made of the old ones, in words, with three examples (old, new)."""

    form: str
    examples: tuple[tuple[str, str], ...]


class Gate(Value, kw_only=True):
    """The estimated share of false links among those found by score.

    `links` of `old` and `new` left-over rows in versions of `rows` rows; `sibling_share` is the
    share of pairs whose own sibling would have passed for them.
    """

    links: int
    old: int
    new: int
    rows: int
    sibling_share: float

    @property
    def estimate(self) -> float:
        """At most 0.2 is trusted; above, more of the links may be false than is worth a guess."""
        if self.links == 0:
            return 0.0
        missed = (self.old - self.links) * (self.new - self.links)
        return missed * self.sibling_share / (self.rows * self.links)

    @property
    def stands(self) -> bool:
        """Whether the links may stand."""
        return self.estimate <= 0.2


class Report(Value, kw_only=True):
    """How a matching went; `links` counts by stage, `keys` is the proof of the plain keys.

    `continued` are examples of what the scorer linked: old key, new key, the columns that differ.
    `null_keys` and `repeated_keys` are those of the new rows. `template` and `gate` are None
    where their stage found nothing to judge. With `over_budget` the matching is not finished, for
    the `limit` that it names, or because it failed.
    """

    base_rows: int
    new_rows: int
    null_keys: int
    repeated_keys: int
    keys: Proof | None
    links: dict[Stage, int]
    proposals: int
    template: Template | None
    gate: Gate | None
    block: int | None
    over_budget: str | None
    limit: Limit | None = None
    continued: tuple[tuple[str, str, str], ...] = ()
