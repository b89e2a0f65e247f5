"""Names that a destination cannot hold, and the names by which it has them instead."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

_DIGITS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the names of a destination's tables or columns may be.

    `longest` counts bytes of UTF-8; `reserved` are whole names and `prefixes` beginnings that it
    keeps to itself (both in small letters, and meant in any case); `forbidden` are characters that
    no name has; where `ignores_case`, names that differ in case alone are one.
    """

    longest: int = 255
    reserved: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    forbidden: str = "\0"
    ignores_case: bool = True

    def known_as(self, name: str) -> str:
        """What the destination tells names apart by."""
        return name.lower() if self.ignores_case else name


def fit(name: str, limits: Limits, *, taken: Collection[str] = ()) -> str:
    """The name itself where it can be had, else the one to have instead, always the same.

    `taken` are names as `known_as` gives them.
    """
    fitting = _made_safe(name, limits)
    number, found = 2, fitting
    while limits.known_as(found) in taken:
        suffix = f"_{number}"
        found, number = _cut(fitting, limits.longest - len(suffix)) + suffix, number + 1
    return found


def fit_columns(
    names: Iterable[str], limits: Limits, *, known: Mapping[str, str], own: Iterable[str]
) -> dict[str, str]:
    """The columns that a table has by another name, and that name.

    Those `known` stay as they are, so that a further column never renames one; `own` are the names
    of columns that are no dataset's.
    """
    taken = {limits.known_as(each) for each in (*own, *known.values())}
    others = dict(known)
    for name in names:
        if name in known:
            continue
        stored = fit(name, limits, taken=taken)
        taken.add(limits.known_as(stored))
        if stored != name:
            others[name] = stored
    return others


def _made_safe(name: str, limits: Limits) -> str:
    safe = "".join("_" if each in limits.forbidden else each for each in name) or "unnamed"
    if safe.lower().startswith(limits.prefixes):
        safe = f"t_{safe}"
    if safe.lower() in limits.reserved:
        safe = f"{safe}_"
    if len(safe.encode()) <= limits.longest:
        return safe
    digits = hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
    return f"{_cut(safe, limits.longest - _DIGITS - 1)}_{digits}"


def _cut(name: str, longest: int) -> str:
    return name.encode()[:longest].decode(errors="ignore")
