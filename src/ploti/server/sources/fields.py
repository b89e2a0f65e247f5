"""Settings as somebody wrote them: each is read on its own, and every fault is kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from math import isfinite
from typing import TypeVar

from ploti.errors import Fault

D = TypeVar("D")
T = TypeVar("T")

PATH_FORM = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*(?:/[a-z0-9]+(?:[-_][a-z0-9]+)*)*")


class Wrong(ValueError):
    """A value that cannot be meant; its text says what is allowed."""


class Fields:
    """The settings of one mapping; faults go into a list that nested mappings share."""

    def __init__(self, raw: Mapping[str, object], *, faults: list[Fault], prefix: str = "") -> None:
        self._raw = raw
        self._faults = faults
        self._prefix = prefix

    def fault(self, name: str, message: str) -> None:
        """Keep what is wrong with a setting."""
        self._faults.append(Fault(self._prefix + name, message))

    def take(self, name: str, read: Callable[[object], T], *, default: D) -> T | D:
        """The setting as `read` gives it; the default where it is left out, null or faulty.

        `read` raises ValueError with a message that says what is allowed.
        """
        raw = self._raw.get(name)
        if raw is None:
            return default
        try:
            return read(raw)
        except ValueError as error:
            self.fault(name, str(error))
            return default

    def nested(self, name: str) -> Fields | None:
        """The mapping inside a setting; None where it is left out, or no mapping."""
        raw = self.take(name, mapping, default=None)
        if raw is None:
            return None
        return Fields(raw, faults=self._faults, prefix=f"{self._prefix}{name}.")

    def names(self) -> list[str]:
        """The names of the settings, as they stand."""
        return list(self._raw)

    def expect_together(self, one: str, other: str) -> None:
        """Keep a fault where one of the two stands without the other."""
        for missing, given in ((one, other), (other, one)):
            if self._raw.get(missing) is None and self._raw.get(given) is not None:
                self.fault(missing, f"is missing, beside {given}")

    def expect(
        self,
        known: Sequence[str],
        *,
        required: Sequence[str] = (),
    ) -> None:
        """Keep a fault for each required setting left out, and each that nothing here obeys."""
        for name in required:
            if self._raw.get(name) is None:
                self.fault(name, "is missing")
        for name in self._raw:
            if name not in known:
                self.fault(name, _unknown(name, known))


def _unknown(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"the settings here are {', '.join(known)}"
    return f"is not a setting: {hint}"


def mapping(raw: object) -> dict[str, object]:
    """A mapping whose names are texts."""
    if not isinstance(raw, Mapping):
        raise Wrong("must be a mapping of settings")
    for name in raw:
        if not isinstance(name, str):
            raise Wrong(f"has the name {name!r}, which must be a text: put it in quotes")
    return dict(raw)


def text(raw: object) -> str:
    """A text of one line, without outer blanks."""
    if not isinstance(raw, str):
        raise Wrong(f"must be a text, not {_shown(raw)}: put it in quotes")
    stripped = raw.strip()
    if not stripped:
        raise Wrong("must not be empty")
    if not stripped.isprintable():
        raise Wrong("must be one line without control characters")
    return stripped


LONGEST_PATH = 200


def path(raw: object) -> str:
    """Lower-case segments joined by slashes, such as `us/fl/orange`."""
    written = text(raw)
    if len(written) > LONGEST_PATH:
        raise Wrong(f"must be a path of {LONGEST_PATH} characters at most")
    if PATH_FORM.fullmatch(written) is None:
        raise Wrong(f"'{written}' must be lower-case words joined by slashes, such as us/fl/orange")
    return written


def texts(raw: object) -> list[str]:
    """A list of different texts."""
    if not isinstance(raw, list | tuple):
        raise Wrong("must be a list of texts, such as [permit_number]")
    found = [text(each) for each in raw]
    repeated = sorted({each for each in found if found.count(each) > 1})
    if repeated:
        raise Wrong(f"names {repeated[0]} twice")
    return found


def any_texts(raw: object) -> list[str]:
    """A list of texts as they stand, empty ones too."""
    if not isinstance(raw, list | tuple) or not all(isinstance(each, str) for each in raw):
        raise Wrong('must be a list of texts, such as ["", "-"]: put each in quotes')
    return list(dict.fromkeys(raw))


def is_off(raw: object) -> bool:
    """Whether somebody wrote `off`; YAML makes the bare word false."""
    return raw is False or raw == "off"


def switch(raw: object) -> bool:
    """True or false."""
    if not isinstance(raw, bool):
        raise Wrong(f"must be true or false, not {_shown(raw)}")
    return raw


def number(raw: object) -> float:
    """A finite number; YAML leaves `1e-9` a text, so a text that is a number is one."""
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        raise Wrong(f"must be a number, not {_shown(raw)}")
    try:
        found = float(raw)
    except (ValueError, OverflowError):
        raise Wrong(f"must be a number, not {_shown(raw)}") from None
    if not isfinite(found):
        raise Wrong(f"must be a finite number, not {_shown(raw)}")
    return found


def choice(*allowed: str, kind: str) -> Callable[[object], str]:
    """A reader of one of a few words; `kind` says what they are (`format`)."""
    listed = " or ".join(allowed)

    def read(raw: object) -> str:
        word = "off" if is_off(raw) else text(raw)
        if word not in allowed:
            raise Wrong(f"'{word}' is not a {kind}: {listed}")
        return word

    return read


def _shown(raw: object) -> str:
    shown = repr(raw)
    return shown if len(shown) <= 40 else f"{shown[:40]}…"
