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

_BLOCK = 2 << 20
_LONGEST_RECORD = 256 << 20
_COMMA, _LF, _CR, _QUOTE = b',\n\r"'
_BOM = b"\xef\xbb\xbf"
NAMES_AGAIN = "the names of the columns again, as where files were put one after another"

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]


class Marks(NamedTuple):
    """Positions of commas and ends of records outside quotes, of the CRs in CRLF, and of quotes.

    Quotes come in turn: the first opens, the second closes, and so on.
    """

    places: Positions
    returns: Positions
    quotes: Positions


class Block(NamedTuple):
    """Whole records of a file, without zero bytes, with what separates them."""

    data: Bytes
    marks: Marks
    first_line: int
    lines: int
    zeros: int


class Structure(NamedTuple):
    """The records of a block: where each ends, its fields, its bytes without the line's end."""

    ends: Positions
    fields: Positions
    lengths: Positions
    lone_returns: int

    @property
    def blank(self) -> Mask:
        """Which records are blank lines, which are none."""
        blank: Mask = self.lengths == 0
        return blank


@dataclass(slots=True)
class Facts:
    """What a scan counts; a file that is `plain` needs no clean copy."""

    records: int = 0
    lines: int = 0
    zeros: int = 0
    blanks: int = 0
    with_return: int = 0
    lone_returns: int = 0
    longest: int = 0

    def add(self, block: Block, found: Structure) -> None:
        """Take in a block."""
        self.records += len(found.ends)
        self.lines += block.lines
        self.zeros += block.zeros
        self.blanks += int(np.count_nonzero(found.blank))
        self.with_return += len(block.marks.returns)
        self.lone_returns += found.lone_returns
        self.longest = max(self.longest, int(found.lengths.max(initial=0)))

    @property
    def plain(self) -> bool:
        """Whether DuckDB can read the file as it is."""
        one_end = self.with_return in {0, self.records}
        return one_end and not (self.zeros or self.blanks or self.lone_returns)

    @property
    def quoted_breaks(self) -> bool:
        """Whether values have line breaks in them."""
        return self.lines > self.records


def blocks(path: Path) -> Iterator[Block]:
    """The file's records in blocks; raises SourceError for what is not UTF-8 or has no end."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    rest, line, zeros = b"", 1, 0
    with path.open("rb") as file:
        while chunk := file.read(max(_BLOCK, len(rest))):
            _decode(decoder, chunk, line=line, rest=rest)
            if b"\0" in chunk:
                zeros += chunk.count(0)
                chunk = chunk.replace(b"\0", b"")
            rest += chunk
            while line == 1 and rest.startswith(_BOM):
                rest = rest.removeprefix(_BOM)
            data = np.frombuffer(rest, np.uint8)
            marks = _mark(data)
            cut = _last_end(data, marks)
            if cut:
                lines = count_lines(data[:cut])
                yield Block(data[:cut], _until(cut, marks), line, lines, zeros)
                line, zeros, rest = line + lines, 0, rest[cut:]
            elif len(rest) + zeros > _LONGEST_RECORD:
                raise SourceError(f"line {line}: a record without an end; is a quote left open?")
    _decode(decoder, b"", line=line, rest=rest, final=True)
    if rest or zeros:
        data = np.frombuffer(rest if rest.endswith((b"\n", b"\r")) else rest + b"\n", np.uint8)
        yield Block(data, _mark(data), line, count_lines(data), zeros)


def count_lines(data: Bytes) -> int:
    """Line ends of any kind, also those inside values, as an editor counts them."""
    feeds = data == _LF
    is_return = data == _CR
    if not is_return.any():
        return int(np.count_nonzero(feeds))
    returns = np.flatnonzero(is_return)
    paired = np.count_nonzero(feeds[np.minimum(returns + 1, len(data) - 1)])
    return int(np.count_nonzero(feeds)) + len(returns) - int(paired)


def _decode(
    decoder: codecs.IncrementalDecoder, chunk: bytes, *, line: int, rest: bytes, final: bool = False
) -> None:
    pending = decoder.getstate()[0]
    if chunk.isascii() and not (pending or final):
        return
    try:
        decoder.decode(chunk, final)
    except UnicodeDecodeError as error:
        before = rest + chunk[: max(error.start - len(pending), 0)]
        line += count_lines(np.frombuffer(before, np.uint8))
        byte = error.object[error.start]
        raise SourceError(
            f"line {line}: the byte 0x{byte:02x} there is not UTF-8: declare its encoding,"
            " such as source: {format: csv, encoding: cp1252}"
        ) from None


def _mark(data: Bytes) -> Marks:
    """What separates; the data begins with a record."""
    # The comma is the greatest of the four: one comparison leaves few bytes to look at again.
    few = np.flatnonzero(data <= _COMMA)
    kinds = data[few]
    quotes, returns = few[kinds == _QUOTE], few[kinds == _CR]
    separates = (kinds == _COMMA) | (kinds == _LF) | (kinds == _CR)
    places = _outside(few[separates], quotes)
    if len(returns):
        after = np.minimum(places + 1, len(data) - 1)
        paired = (data[places] == _CR) & (data[after] == _LF)
        places, returns = places[~paired], places[paired]
    return Marks(places=places, returns=returns, quotes=quotes)


def _outside(places: Positions, quotes: Positions) -> Positions:
    """The places that have an even number of quotes before them."""
    if not len(quotes):
        return places
    borders = np.searchsorted(places, quotes)
    runs = np.diff(borders, prepend=0, append=len(places))
    outside: Positions = places[np.repeat(np.arange(len(runs)) % 2 == 0, runs)]
    return outside


def _last_end(data: Bytes, marks: Marks) -> int:
    """Where the last whole record ends; a CR at the very end may be half of a CRLF."""
    ends = np.flatnonzero(data[marks.places] != _COMMA)[-2:]
    for place in marks.places[ends][::-1]:
        if data[place] == _LF or place < len(data) - 1:
            return int(place) + 1
    return 0


def _until(cut: int, marks: Marks) -> Marks:
    return Marks(*(positions[: np.searchsorted(positions, cut)] for positions in marks))


def analyse(block: Block) -> Structure:
    """The records of a block; raises SourceError for quotes where none may be."""
    _check_quotes(block)
    numbers = np.flatnonzero(block.data[block.marks.places] != _COMMA)
    ends = block.marks.places[numbers]
    kinds = block.data[ends]
    lengths = np.diff(ends, prepend=-1) - 1
    if len(block.marks.returns):
        lengths -= (block.data[ends - 1] == _CR) & (kinds == _LF) & (ends > 0)
    return Structure(
        ends=ends,
        fields=np.diff(numbers, prepend=-1),
        lengths=lengths,
        lone_returns=int(np.count_nonzero(kinds == _CR)),
    )


def _check_quotes(block: Block) -> None:
    """A quote opens at a field's start and closes at its end, or stands doubled between."""
    data, quotes = block.data, block.marks.quotes
    opening, closing = quotes[::2], quotes[1::2]
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
        values, line = int(found.fields[record]), _line(block, start)
        hint = names_below(record + 1) if line <= record + 1 and 2 * columns <= values else ""
        raise SourceError(f"line {line}: {values} values where the header has {columns}{hint}")


def names_below(row: int) -> str:
    """What to say where a first row is far narrower than those from a later one on."""
    return f"; if the names stand in row {row}, declare source: {{format: csv, header_row: {row}}}"


def check_names_again(block: Block, found: Structure, names: bytes, *, after: int) -> None:
    """No record past the one numbered `after` is the header again, as it stands or marked.

    Raises SourceError naming the line: two files put together have it so.
    """
    starts = np.append(0, found.ends[:-1] + 1)
    for written in (names, _BOM + names):
        at = starts[found.lengths == len(written)]
        at = at[at > (starts[after] if after >= 0 else -1)]
        for place, byte in enumerate(written):
            if not len(at):
                break
            at = at[block.data[at + place] == byte]
        if len(at):
            raise SourceError(f"line {_line(block, int(at[0]))}: {NAMES_AGAIN}")


def cleaned(block: Block, found: Structure) -> bytes:
    """The block without blank lines, its records ended by a line feed each."""
    data = block.data.copy()
    data[found.ends] = _LF
    dropped = np.concatenate([block.marks.returns, found.ends[found.blank]])
    return np.delete(data, dropped).tobytes()
