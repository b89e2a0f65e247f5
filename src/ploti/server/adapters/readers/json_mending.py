"""JSON as it is in the field: NULs, half surrogates and NaN set right in the text, and counted."""

from __future__ import annotations

import re
from collections.abc import Callable

from ploti.server.adapters.readers.remarks import Remark
from ploti.server.sources.json_tokens import replaced

_ESCAPE = re.compile(
    rb"\\(?:(u[dD][89abAB]..\\u[dD][c-fC-F]..)|(u[dD][89a-fA-F]..)|(u0000)|.)", re.DOTALL
)


def mend(text: bytes, *, remark: Callable[[Remark], None]) -> bytes:
    r"""The same JSON text with what strict JSON or a database refuses set right.

    `\u0000` goes, half of a surrogate pair becomes U+FFFD, and a bare NaN or Infinity null; each
    is remarked. All else stays as it is, byte for byte.
    """

    def escape(found: re.Match[bytes]) -> bytes:
        if found[2]:
            remark(Remark.SURROGATE_REPLACED)
            return rb"\ufffd"
        if found[3]:
            remark(Remark.NUL_REMOVED)
            return b""
        return found[0]

    def number(bare: bytes) -> bytes:
        del bare
        remark(Remark.NOT_A_NUMBER)
        return b"null"

    return replaced(text, number=number, string=lambda found: _ESCAPE.sub(escape, found))
