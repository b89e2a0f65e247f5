"""JSON texts that follow one another in a file, one a line or with separators between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, cast

from ploti.server.adapters.readers.json_stream import BETWEEN_LINES, JsonStream

SEPARATOR = b"\x1e"
"""What RFC 8142 sets before each text; it stands in no JSON text itself."""


def sequence(file: BinaryIO) -> JsonStream:
    """The texts of a file, separators taken for blanks."""
    return JsonStream(cast("BinaryIO", _WithoutSeparators(file)), between=BETWEEN_LINES)


def texts(stream: JsonStream) -> Iterator[bytes]:
    """Each text's bytes."""
    while stream.peek():
        yield stream.value()


class _WithoutSeparators:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        return self._file.read(size).replace(SEPARATOR, b" ")
