"""Where the records of a CSV file begin and end, proved byte by byte in large blocks.

DuckDB reads faster than it explains, and takes some faults for data (an empty extra cell, blanks
around a quoted one, blank lines). So the structure is proved here, and what fails is named by line.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ploti.errors import SourceError

_BLOCK = 4 << 20
_LONGEST_RECORD = 256 << 20
_COMMA, _LF, _CR, _QUOTE = b',\n\r"'
_BOM = b"\xef\xbb\xbf"

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]


class Block(NamedTuple):
    """Whole records of a file, without zero bytes, and which bytes lie outside quotes.

    `outside` is None where there are no quotes; of a pair, the closing quote lies outside.
    """

    data: bytes
    outside: Mask | None
    first_line: int
    zeros: int


class Structure(NamedTuple):
    """The bytes that separate: ends of records, fields in each, and carriage returns of CRLF."""

    ends: Positions
    fields: Positions
    lengths: Positions
    returns: Positions
    lone_returns: int
    quoted_breaks: bool

    @property
    def blank(self) -> Mask:
        """Which records are blank lines, which are none."""
        return self.lengths == 0


@dataclass(slots=True)
class Facts:
    """What a scan counts; a file that is `plain` needs no clean copy."""

    records: int = 0
    zeros: int = 0
    blanks: int = 0
    with_return: int = 0
    lone_returns: int = 0
    longest: int = 0
    quoted_breaks: bool = False

    def add(self, block: Block, found: Structure) -> None:
        """Take in a block."""
        self.zeros += block.zeros
        self.blanks += int(found.blank.sum())
        self.records += len(found.ends)
        self.with_return += len(found.returns)
        self.lone_returns += found.lone_returns
        self.longest = max(self.longest, int(found.lengths.max(initial=0)))
        self.quoted_breaks = self.quoted_breaks or found.quoted_breaks

    @property
    def plain(self) -> bool:
        """Whether DuckDB can read the file as it is."""
        one_end = self.with_return in {0, self.records}
        return one_end and not (self.zeros or self.blanks or self.lone_returns)


def blocks(path: Path) -> Iterator[Block]:
    """The file's records in blocks; raises SourceError for what is not UTF-8 or has no end."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    rest, line, zeros = b"", 1, 0
    with path.open("rb") as file:
        for chunk in iter(lambda: file.read(max(_BLOCK, len(rest))), b""):
            _decode(decoder, chunk, line=line, rest=rest)
            zeros += chunk.count(0)
            data = rest + chunk.replace(b"\0", b"")
            data = data.removeprefix(_BOM) if line == 1 else data
            outside = _outside(data)
            cut = _last_end(data, outside)
            if cut:
                yield _block(data[:cut], outside, line, zeros)
                line, zeros = line + count_lines(data[:cut]), 0
            elif len(data) > _LONGEST_RECORD:
                raise SourceError(f"line {line}: a record without an end; is a quote left open?")
            rest = data[cut:]
    _decode(decoder, b"", line=line, rest=rest, final=True)
    if rest or zeros:
        rest += b"" if rest.endswith((b"\n", b"\r")) or not rest else b"\n"
        yield _block(rest, _outside(rest), line, zeros)


def _block(data: bytes, outside: Mask | None, line: int, zeros: int) -> Block:
    within = None if outside is None else outside[: len(data)]
    return Block(data=data, outside=within, first_line=line, zeros=zeros)


def count_lines(data: bytes) -> int:
    """Line ends of any kind, also those inside values, as an editor counts them."""
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


def _decode(
    decoder: codecs.IncrementalDecoder, chunk: bytes, *, line: int, rest: bytes, final: bool = False
) -> None:
    pending = decoder.getstate()[0]
    if chunk.isascii() and not pending:
        return
    try:
        decoder.decode(chunk, final)
    except UnicodeDecodeError as error:
        at = error.start - len(pending)
        line += count_lines(rest + chunk[: max(at, 0)])
        byte = error.object[error.start]
        raise SourceError(f"line {line}: the byte 0x{byte:02x} there is not UTF-8") from None


def _outside(data: bytes) -> Mask | None:
    if b'"' not in data:
        return None
    quotes = np.frombuffer(data, np.uint8) == _QUOTE
    outside: Mask = (np.cumsum(quotes, dtype=np.uint8) & 1) == 0
    return outside


def _last_end(data: bytes, outside: Mask | None) -> int:
    """Where the last whole record ends; a CR at the very end may be half of a CRLF."""
    for end, place in ((b"\n", len(data)), (b"\r", len(data) - 1)):
        while (place := data.rfind(end, 0, max(place, 0))) >= 0:
            if outside is None or outside[place]:
                return place + 1
    return 0


def analyse(block: Block) -> Structure:
    """The structure of a block; raises SourceError for quotes where none may be."""
    data = np.frombuffer(block.data, np.uint8)
    places, returns = _separators(block, data)
    numbers = np.flatnonzero(data[places] != _COMMA)
    ends = places[numbers]
    lengths = np.diff(ends, prepend=-1) - 1
    if len(returns):
        lengths -= (data[ends - 1] == _CR) & (data[ends] == _LF) & (ends > 0)
    return Structure(
        ends=ends,
        fields=np.diff(numbers, prepend=-1),
        lengths=lengths,
        returns=returns,
        lone_returns=int((data[ends] == _CR).sum()),
        quoted_breaks=count_lines(block.data) > len(ends),
    )


def _separators(block: Block, data: Bytes) -> tuple[Positions, Positions]:
    """Commas and ends of records; and the carriage returns that belong to a line feed."""
    found = (data == _COMMA) | (data == _LF)
    has_returns = b"\r" in block.data
    if has_returns:
        found |= data == _CR
    if block.outside is not None:
        _check_quotes(block, data, block.outside)
        found &= block.outside
    places = np.flatnonzero(found)
    if not has_returns:
        return places, places[:0]
    after = np.minimum(places + 1, len(data) - 1)
    paired = (data[places] == _CR) & (data[after] == _LF)
    return places[~paired], places[paired]


def _check_quotes(block: Block, data: Bytes, outside: Mask) -> None:
    """A quote opens at a field's start and closes at its end, or stands doubled between."""
    quotes = np.flatnonzero(data == _QUOTE)
    closes = outside[quotes]
    opening, closing = quotes[~closes], quotes[closes]
    beside = np.zeros(256, np.bool_)
    beside[[_COMMA, _LF, _CR, _QUOTE]] = True
    early = opening[~beside[data[opening - 1]] & (opening > 0)]
    late = closing[~beside[data[np.minimum(closing + 1, len(data) - 1)]]]
    if len(early) and not (len(late) and late[0] < early[0]):
        line = _line(block, int(early[0]))
        raise SourceError(f"line {line}: a quote inside a value that is not quoted")
    if len(late):
        begun = int(opening[np.searchsorted(opening, late[0]) - 1])
        raise SourceError(f"line {_line(block, begun)}: text after the quotes around a value")
    if len(opening) > len(closing):
        raise SourceError(f"line {_line(block, int(opening[-1]))}: a quote there is never closed")


def _line(block: Block, place: int) -> int:
    return block.first_line + count_lines(block.data[:place])


def check_fields(block: Block, found: Structure, *, columns: int) -> None:
    """Every record has as many fields as the header; raises SourceError naming the first line."""
    wrong = np.flatnonzero((found.fields != columns) & ~found.blank)
    if len(wrong):
        record = int(wrong[0])
        start = int(found.ends[record - 1]) + 1 if record else 0
        raise SourceError(
            f"line {_line(block, start)}: {found.fields[record]} values where the header has"
            f" {columns}"
        )


def cleaned(block: Block, found: Structure) -> bytes:
    """The block without blank lines, its records ended by a line feed each."""
    data = np.frombuffer(block.data, np.uint8).copy()
    data[found.ends] = _LF
    dropped = np.concatenate([found.returns, found.ends[found.blank]])
    return np.delete(data, dropped).tobytes()
