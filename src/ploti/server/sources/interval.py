"""How often a source is due a check: `24h`, as a declaration writes it."""

from __future__ import annotations

import re

from ploti.server.sources.fields import Wrong, text

_UNITS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
_WRITTEN = re.compile(r"([1-9][0-9]{0,5})([dhms])")
_LONGEST = 366 * _UNITS["d"]


def interval(raw: object) -> int:
    """Seconds, from a number and its unit; raises Wrong for anything else, or over a year."""
    written = text(raw)
    found = _WRITTEN.fullmatch(written)
    if found is None:
        raise Wrong(f"'{written}' must be a whole number with d, h, m or s, such as 24h")
    seconds = int(found[1]) * _UNITS[found[2]]
    if seconds > _LONGEST:
        raise Wrong(f"'{written}' is over a year: 366d at the most")
    return seconds


def written_interval(seconds: int) -> str:
    """The shortest text that `interval` reads as so many seconds; a day is 24h."""
    for unit in ("h", "m"):
        if seconds % _UNITS[unit] == 0:
            return f"{seconds // _UNITS[unit]}{unit}"
    return f"{seconds}s"
