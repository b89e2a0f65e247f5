"""JSON values: one that never ends is bounded, and the end of a line tells that of an object."""

import io
import re
from typing import cast

import pytest

from ploti.errors import SourceError
from ploti.server.adapters.readers import json_stream
from ploti.server.adapters.readers.json_sequence import sequence, texts
from ploti.server.adapters.readers.json_stream import JsonStream


class Endless(io.RawIOBase):
    """A beginning, and then the same byte for ever."""

    def __init__(self, beginning: bytes, byte: bytes) -> None:
        super().__init__()
        self._beginning = beginning
        self._byte = byte
        self.given = 0

    def read(self, size: int = -1) -> bytes:
        self.given += size
        head, self._beginning = self._beginning[:size], self._beginning[size:]
        return head + self._byte * (size - len(head))


@pytest.mark.parametrize(
    ("beginning", "byte"), [(b'{"a": 1}\n{"a": "', b"x"), (b'{"a": 1}\n', b"{"), (b"[", b"1")]
)
def test_a_value_without_an_end_is_refused_after_what_is_read_at_once(
    beginning: bytes, byte: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "_LONGEST", 1 << 20)
    endless = Endless(beginning, byte)
    file = cast("io.BufferedReader", endless)
    with pytest.raises(SourceError, match="has more than 1,048,576 bytes"):
        [*texts(sequence(file))] if beginning != b"[" else [*JsonStream(file).elements()]
    assert endless.given < 8 << 20


def test_where_each_object_has_a_line_its_end_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Walking over every string and bracket takes many times as long."""
    walked: list[int] = []
    walk = JsonStream._nested

    def counting(self: JsonStream, between: re.Pattern[bytes], opening: int) -> bytes:
        walked.append(opening)
        return walk(self, between, opening)

    monkeypatch.setattr(JsonStream, "_nested", counting)
    lines = b"".join(b'{"a": "} {", "n": %d}\n' % number for number in range(1000))
    assert len([*texts(sequence(io.BytesIO(lines)))]) == 1000
    assert len(walked) == 1
