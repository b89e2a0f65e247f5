"""Members that stand twice in a JSON object: decoders keep the last without a word."""

from __future__ import annotations

import json
import re

_COLON = re.compile(rb'"[ \t\r\n]*:')


def find_repeated(text: bytes, *, members: int) -> str | None:
    """The name of a member that an object in this JSON text has twice, of whatever depth.

    `members` is how many different ones the outermost object has. Where there are no more colons
    after quotes than these, nothing is nested and nothing repeated: so it is for most rows.
    """
    if len(_COLON.findall(text)) == members:
        return None
    repeated: list[str] = []

    def look(pairs: list[tuple[str, object]]) -> None:
        names: set[str] = set()
        for name, _ in pairs:
            if name in names:
                repeated.append(name)
            names.add(name)

    try:
        json.loads(text, object_pairs_hook=look, parse_int=str, parse_float=str, strict=False)
    except (RecursionError, ValueError):
        return None  # what cannot be taken at all is said where it is decoded
    return repeated[0] if repeated else None
