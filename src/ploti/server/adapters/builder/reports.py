"""What crosses the child's pipe: lines that tell how far it is, then its result."""

from __future__ import annotations

from ploti.model.admin import BuildProgress
from ploti.model.wire import decode, encode
from ploti.server.build.candidate import Result
from ploti.server.build.progress import Tell

_TOLD = b"-"
"""What a line of progress begins with; the result, which is an object, begins otherwise."""


def told(progress: BuildProgress) -> bytes:
    """A line that tells how far the child is."""
    return _TOLD + encode(progress) + b"\n"


def result(of: Result) -> bytes:
    """The result, which comes last."""
    return encode(of)


class Report:
    """The server's end: takes bytes as they come, of the result `limit` at most."""

    def __init__(self, tell: Tell, *, limit: int) -> None:
        self._tell = tell
        self._limit = limit
        self._kept = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Take what came; progress is handed on at once."""
        self._kept += chunk[: self._limit - len(self._kept)]
        while self._kept.startswith(_TOLD) and b"\n" in self._kept:
            line, _, rest = bytes(self._kept).partition(b"\n")
            self._kept = bytearray(rest)
            self._tell(decode(line[1:], BuildProgress))

    def result(self) -> Result:
        """What the child reported at its end."""
        return decode(bytes(self._kept), Result)  # type: ignore[arg-type]
