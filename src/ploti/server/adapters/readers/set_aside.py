"""Text tables with rows that cannot be read: the others are written again, those are told."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from ploti.errors import SourceError
from ploti.model.admin import Finding
from ploti.server.adapters.readers.csv_records import NAMES_AGAIN

_MOST_LINES = 1_000
"""Lines of one record; a quote that is open for longer was meant otherwise."""

_LONGEST_LINE = 256 << 20
_EXAMPLES = 5
_MARK = "\ufeff"
_STRAY = re.compile("[\udc80-\udcff]")


@contextmanager
def values_of_any_length() -> Iterator[None]:
    """Python's own limit of a value's length, which is the process's, lifted for a while."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def write_readable(
    path: Path, kept: Path, *, encoding: str, delimiter: str, header_row: int
) -> list[Finding]:
    """Write the readable rows as CSV; a finding says which lines were set aside, if any.

    A row is set aside that has another number of values than there are names, that is the names
    again, or has quotes that do not pair, or bytes that are none of the encoding. Raises
    SourceError where the names cannot be read.
    """
    aside: list[str] = []
    count = 0
    with (
        values_of_any_length(),
        path.open(encoding=encoding, errors="surrogateescape", newline="") as text,
        kept.open("w", encoding="utf-8", newline="") as file,
    ):
        write = csv.writer(file, lineterminator="\r\n").writerow
        for line, found in _Rows(text, delimiter, header_row).read():
            if isinstance(found, list):
                write(found)
                continue
            count += 1
            if len(aside) < _EXAMPLES:
                aside.append(f"line {line}: {found}")
    return [_finding(count, aside)] if count else []


def is_again(row: list[str] | str, names: list[str]) -> bool:
    """Whether a row is that of the names, maybe behind the mark of another file's encoding."""
    if isinstance(row, str) or len(row) < 2 or not any(row):
        return False
    return [row[0].removeprefix(_MARK), *row[1:]] == names


def _finding(count: int, examples: list[str]) -> Finding:
    return Finding(
        reason=None,
        kind="rows_set_aside",
        message=f"{count} rows could not be read and were set aside",
        examples=examples,
        measure=count,
    )


class _Rows:
    """The rows of a text from the one with the names on."""

    def __init__(self, text: TextIO, delimiter: str, header_row: int) -> None:
        self._text = text
        self._delimiter = delimiter
        self._header_row = header_row
        self._given_back: deque[str] = deque()
        self._line = 0
        between = re.escape(delimiter)
        self._quoted = re.compile(rf'(^|{between})"(?:[^"]|"")*"(?=$|[\r\n]|{between})')

    def read(self) -> Iterator[tuple[int, list[str] | str]]:
        """Each row with the number of its line, or what is wrong with it; blank lines are none."""
        names: list[str] = []
        number = 0
        while lines := self._record():
            line, number = self._line - len(lines) + 1, number + 1
            found = self._parsed(lines, len(names))
            if found == [] or number < self._header_row:
                continue
            if not names and isinstance(found, str):
                raise SourceError(f"line {line}: the names cannot be read: {found}")
            yield line, NAMES_AGAIN if is_again(found, names) else found
            names = names or [*found]
        if not names:
            raise SourceError(f"the source has no names in row {self._header_row}")

    def _parsed(self, lines: list[str], width: int) -> list[str] | str:
        """A record's values, or what is wrong with it; lines that are not its own go back."""
        record = "".join(lines)
        if '"' in self._quoted.sub(r"\1", record):
            self._give_back(lines[1:])
            return "quotes that do not pair"
        if _STRAY.search(record):
            return f"bytes that are not {self._text.encoding.removesuffix('-sig')}"
        row = next(csv.reader(io.StringIO(record, newline=""), delimiter=self._delimiter), [])
        if width and row and len(row) != width:
            return f"{len(row)} values where the header has {width}"
        return row

    def _record(self) -> list[str]:
        """The lines until all quotes are closed, or the first where they never are."""
        lines: list[str] = []
        quotes = 0
        while line := self._next_line():
            lines.append(line)
            quotes += line.count('"')
            if quotes % 2 == 0:
                return lines
            if len(lines) > _MOST_LINES:
                break
        return lines

    def _next_line(self) -> str:
        line = (
            self._given_back.popleft() if self._given_back else self._text.readline(_LONGEST_LINE)
        )
        if len(line) >= _LONGEST_LINE:
            raise SourceError(f"line {self._line + 1}: a line without an end")
        self._line += bool(line)
        return line

    def _give_back(self, lines: list[str]) -> None:
        self._given_back.extendleft(reversed(lines))
        self._line -= len(lines)
