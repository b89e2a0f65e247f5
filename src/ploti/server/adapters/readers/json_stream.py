"""JSON text read piece by piece: where each value ends, in the memory of one value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from ploti.errors import SourceError

_BLOCK = 1 << 20
_BOM = b"\xef\xbb\xbf"
_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_BLANKS = re.compile(rb"[ \t\r\n]*+")
_WORD = re.compile(rb"[^ \t\r\n,\]}]*+")
_TEXT = re.compile(_STRING, re.DOTALL)
# All that may stand before the next bracket of the kind that is being closed. Brackets of the
# other kind need no count: a value that mixes them up is refused when it is decoded.
_IN_OBJECT = re.compile(rb'(?:[^"{}]++|' + _STRING + rb")*+", re.DOTALL)
_IN_ARRAY = re.compile(rb'(?:[^"\[\]]++|' + _STRING + rb")*+", re.DOTALL)
_BETWEEN_OBJECTS = re.compile(rb"\}[ \t\r\n]*,[ \t\r\n]*\{")
BETWEEN_LINES = re.compile(rb"\}[ \t\r]*\n[ \t\r\n]*\{")
"""What stands between objects of which each has a line."""
_GUESS_WITHIN = 1 << 16
_WRONG_GUESSES = 50
_LONGEST = 128 << 20
"""Bytes of one value, such as a feature: they are in memory at once."""


_BYTE = re.compile(r"\(byte (\d+)\)")


class JsonStream:
    """One JSON text in a file, taken from its front.

    Values come out as their bytes: that they are whole is known, that they are JSON only once
    somebody decodes them. Where the text is broken or ends too early, every method raises
    SourceError with the place.
    """

    def __init__(
        self,
        file: BinaryIO,
        *,
        block: int = _BLOCK,
        between: re.Pattern[bytes] = _BETWEEN_OBJECTS,
    ) -> None:
        self._file = file
        self._between = between
        self._block = block
        self._buffer = b""
        self._at = 0
        self._dropped = 0
        self._lines = 1
        self._wrong_guesses = 0
        while len(self._buffer) < len(_BOM) and self._fill():
            pass
        if self._buffer.startswith(_BOM):
            self._at = len(_BOM)

    def undecodable(self, error: Exception, *, text: bytes, what: str) -> SourceError:
        """Why `text`, the value taken last, cannot be decoded, with its place in the file."""
        line = self.line - text.count(b"\n")
        start = self.offset - len(text)
        if isinstance(error, RecursionError):
            reason = "it is nested too deep"
        else:
            reason = _BYTE.sub(lambda found: f"(byte {start + int(found[1]) + 1})", str(error))
        return SourceError(f"{what} (line {line}) cannot be read: {reason}")

    @property
    def offset(self) -> int:
        """The bytes taken so far."""
        return self._dropped + self._at

    @property
    def line(self) -> int:
        """The line of the next byte, from 1."""
        return self._lines + self._buffer.count(b"\n", 0, self._at)

    def peek(self) -> bytes:
        """The next byte that is no blank, which stays; empty at the end."""
        while True:
            self._at = _end(_BLANKS, self._buffer, self._at)
            if self._at < len(self._buffer):
                return self._buffer[self._at : self._at + 1]
            if not self._fill():
                return b""

    def members(self) -> Iterator[str]:
        """The names of an object's members; the caller takes each value before the next name."""
        self._expect(b"{")
        more = self.peek() != b"}"
        while more:
            if self.peek() != b'"':
                raise self.broken("a name in quotes is missing")
            yield self._name()
            more = self._skip(b",")
        self._expect(b"}")

    def elements(self) -> Iterator[bytes]:
        """The values of an array."""
        self._expect(b"[")
        more = self.peek() != b"]"
        while more:
            yield self.value()
            more = self._skip(b",")
        self._expect(b"]")

    def value(self) -> bytes:
        """The next value's bytes, without blanks around them."""
        match self.peek():
            case b"{":
                return self._guessed() or self._nested(_IN_OBJECT, ord("{"))
            case b"[":
                return self._nested(_IN_ARRAY, ord("["))
            case b'"':
                return self._token(_TEXT)
            case _:
                return self._token(_WORD)

    def end(self) -> None:
        """Nothing but blanks may follow."""
        if self.peek():
            raise self.broken("something follows after the end")

    def broken(self, reason: str) -> SourceError:
        """An error at the next byte."""
        if not self.peek():
            return self._cut_short()
        return SourceError(f"broken JSON in line {self.line} (byte {self.offset + 1}): {reason}")

    def _name(self) -> str:
        raw = self.value()
        try:
            name = msgspec.json.decode(raw, type=str)
        except msgspec.DecodeError as error:
            raise self.broken(f"the name before it cannot be read ({error})") from None
        self._expect(b":")
        return name

    def _guessed(self) -> bytes | None:
        """The object here if it ends where the next seems to begin, as in most lists of objects.

        The guess is proved: what is whole JSON by itself, with its first bracket here, ends where
        the value ends. It saves the walk over every string and bracket, half of all the work.
        """
        if self._wrong_guesses >= _WRONG_GUESSES:
            return None
        found = self._between.search(self._buffer, self._at, self._at + _GUESS_WITHIN)
        if found is None:
            return None
        guess = self._buffer[self._at : found.start() + 1]
        try:
            msgspec.json.decode(guess, type=msgspec.Raw)
        except msgspec.DecodeError:
            self._wrong_guesses += 1
            return None
        return self._take(found.start() + 1)

    def _nested(self, between: re.Pattern[bytes], opening: int) -> bytes:
        at, depth = self._at, 0
        while True:
            at = _end(between, self._buffer, at)
            if at == len(self._buffer) or self._buffer[at] == ord('"'):
                at -= self._at
                if not self._fill():
                    raise self._cut_short()
                continue
            depth += 1 if self._buffer[at] == opening else -1
            at += 1
            if depth == 0:
                return self._take(at)

    def _token(self, token: re.Pattern[bytes]) -> bytes:
        while True:
            found = token.match(self._buffer, self._at)
            if found and found.end() < len(self._buffer):
                break
            if not self._fill():
                break
        if not found:
            raise self._cut_short()
        if found.end() == self._at:
            raise self.broken("a value is missing")
        return self._take(found.end())

    def _take(self, end: int) -> bytes:
        taken = self._buffer[self._at : end]
        self._at = end
        return taken

    def _skip(self, byte: bytes) -> bool:
        if self.peek() != byte:
            return False
        self._at += 1
        return True

    def _expect(self, byte: bytes) -> None:
        if not self._skip(byte):
            raise self.broken(f"'{byte.decode()}' is missing")

    def _fill(self) -> bool:
        waiting = len(self._buffer) - self._at
        if waiting >= _LONGEST:
            raise SourceError(
                f"the value in line {self.line:,} (byte {self.offset + 1:,}) has more than"
                f" {_LONGEST:,} bytes: as much is not read at once"
            )
        # The more is waiting, the more is read: a long value is looked at a few times, not once
        # a block.
        chunk = self._file.read(max(self._block, waiting))
        if not chunk:
            return False
        self._lines += self._buffer.count(b"\n", 0, self._at)
        self._dropped += self._at
        self._buffer = self._buffer[self._at :] + chunk
        self._at = 0
        return True

    def _cut_short(self) -> SourceError:
        end = self._dropped + len(self._buffer)
        return SourceError(f"the JSON text ends too early, after {end:,} bytes: it is cut short")


def _end(pattern: re.Pattern[bytes], text: bytes, at: int) -> int:
    """Where a pattern that matches everywhere, if only nothing, stops."""
    found = pattern.match(text, at)
    return found.end() if found else at
