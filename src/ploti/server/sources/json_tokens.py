"""JSON text token by token: what is a string, and what is a number that JSON has not."""

from __future__ import annotations

import re
from collections.abc import Callable

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|-?\b(?:NaN|Infinity)\b', re.DOTALL)


def replaced(
    text: bytes, *, number: Callable[[bytes], bytes], string: Callable[[bytes], bytes] | None = None
) -> bytes:
    """The text with each bare NaN or Infinity as `number` gives it, and each string as `string`."""

    def token(found: re.Match[bytes]) -> bytes:
        if not found[0].startswith(b'"'):
            return number(found[0])
        return found[0] if string is None else string(found[0])

    return _TOKEN.sub(token, text)
