"""What must come of a CSV state by the rules of the domain, in plain Python: types, counts, holds.

A state is its names and its rows of texts; the column `id` is the key. None stands for no value.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import date
from typing import NamedTuple

Texts = dict[str, str | None]
Row = dict[str, object]

_FLOAT = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")
_WHOLE = re.compile(r"-?(0|[1-9]\d*)")
_WHOLE_OTHERWISE = re.compile(rf"{_WHOLE.pattern}(\.0+)?")
_ENOUGH = 20


class Sort(NamedTuple):
    """A type: what is found to be one, what is kept as one, and the value of a text."""

    found: Callable[[str], bool]
    kept: Callable[[str], bool]
    value: Callable[[str], object]
    wider: tuple[str, ...]


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


SORTS = {
    "boolean": Sort(
        lambda text: text in {"true", "false"},
        lambda text: text.lower() in {"true", "false"},
        lambda text: text.lower() == "true",
        ("string",),
    ),
    "int64": Sort(
        lambda text: bool(_WHOLE.fullmatch(text)),
        lambda text: bool(_WHOLE_OTHERWISE.fullmatch(text)),
        lambda text: int(float(text)),
        ("float64", "string"),
    ),
    "float64": Sort(
        lambda text: bool(_FLOAT.fullmatch(text)),
        lambda text: bool(_FLOAT.fullmatch(text)),
        float,
        ("string",),
    ),
    "date": Sort(_is_date, _is_date, date.fromisoformat, ("string",)),
    "string": Sort(lambda _: True, lambda _: True, str, ()),
}


class Typed(NamedTuple):
    """A state in its types: the columns in their order, those that may be null, and the rows."""

    types: dict[str, str]
    nullable: frozenset[str]
    rows: list[Row]


class Expected(NamedTuple):
    """What a state comes to: rows added, changed and removed, its schema's change, its reasons."""

    counts: tuple[int, int, int]
    level: str | None
    reasons: list[str]


def typed(names: list[str], rows: list[Texts], base: Typed | None) -> Typed:
    """The state in the base's types as far as they hold it; new columns are of the narrowest."""
    before = base.types if base else {}
    order = [*(name for name in before if name in names), *(n for n in names if n not in before)]
    types = {name: _type(name, [row[name] for row in rows], before.get(name)) for name in order}
    values: list[Row] = [{name: _value(types[name], row[name]) for name in order} for row in rows]
    null = {name for name in order if any(row[name] is None for row in values)}
    null |= {name for name in order if base and name in base.nullable}
    return Typed(types, frozenset(null), values)


def _type(name: str, texts: list[str | None], before: str | None) -> str:
    there = [text for text in texts if text is not None]
    if before is None:
        if name == "id" or not there:
            return "string"
        return next(type_ for type_, sort in SORTS.items() if all(map(sort.found, there)))
    tried = (before, *SORTS[before].wider)
    return next(type_ for type_ in tried if all(map(SORTS[type_].kept, there)))


def _value(type_: str, text: str | None) -> object:
    return None if text is None else SORTS[type_].value(text)


def expected(now: Typed, base: Typed) -> Expected:
    """What a state comes to on its base, by the thresholds that a declaration has by itself."""
    left, retyped = base.types.keys() - now.types.keys(), _retyped(now, base)
    came = now.types.keys() - base.types.keys()
    level = None
    if left or retyped:
        level = "MAJOR"
    elif came or (now.nullable - base.nullable) & base.types.keys():
        level = "MINOR"
    counts = _counts(now, base, left)
    reasons = ["schema_review"] if level == "MAJOR" else []
    reasons += ["data_check"] if _looks_broken(now, base, removed=counts[2]) else []
    return Expected(counts, level, reasons)


def _retyped(now: Typed, base: Typed) -> set[str]:
    return {name for name, type_ in now.types.items() if base.types.get(name, type_) != type_}


def _counts(now: Typed, base: Typed, left: set[str]) -> tuple[int, int, int]:
    """Within a key rows that are equal are one record, then as many as there are on both sides."""
    new, old = (
        defaultdict[object, Counter[str]](Counter),
        defaultdict[object, Counter[str]](Counter),
    )
    for row in now.rows:
        new[row["id"]][repr(list(row.items()))] += 1
    for row in base.rows:
        values = [
            (name, _cast(row.get(name), base.types.get(name), t)) for name, t in now.types.items()
        ]
        lost = [row[name] for name in left if row[name] is not None]
        old[row["id"]][repr([*values, *lost])] += 1
    pairs = [(new[key], old[key]) for key in new.keys() | old.keys()]
    both = [min(n.total(), o.total()) for n, o in pairs]
    equal = [(n & o).total() for n, o in pairs]
    return len(now.rows) - sum(both), sum(both) - sum(equal), len(base.rows) - sum(both)


def _cast(value: object, before: str | None, type_: str) -> object:
    if value is None or before == type_:
        return value
    if type_ == "float64":
        return float(str(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _looks_broken(now: Typed, base: Typed, *, removed: int) -> bool:
    rows, before = len(now.rows), len(base.rows)
    few = before >= _ENOUGH and (rows < 0.7 * before or removed > 0.5 * before)
    emptied = any(
        _filled(base, name) >= _ENOUGH
        and _filled(now, name) / rows <= 0.5 * _filled(base, name) / before
        for name in now.types.keys() & base.types.keys()
    )
    return few or emptied


def _filled(state: Typed, name: str) -> int:
    return sum(row[name] is not None for row in state.rows)
