"""Text tables of other separators and encodings, written again as the CSV that is read."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from msgspec.structs import replace

from ploti.errors import SourceError
from ploti.server.adapters.readers.csv import CsvReader
from ploti.server.adapters.readers.csv_records import NAMES_AGAIN, names_below
from ploti.server.adapters.readers.set_aside import (
    is_again,
    values_of_any_length,
    write_readable,
)
from ploti.server.sources.declaration import Declaration
from ploti.server.sources.raw import RawTable

_MARKS = {  # the longer first: one begins as another does
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF8: "utf-8",
}
_TAB = "\t"


class DelimitedReader:
    """CSV, with `encoding`, `delimiter` and `header_row` obeyed; a mark tells Unicode."""

    format = "csv"
    _delimiter = ","

    def __init__(self) -> None:
        self._plain = CsvReader()

    def matches(self, name: str, head: bytes) -> bool:
        """Whether a file is called `.csv`, or may be one."""
        return self._plain.matches(name, head)

    def read(self, path: str, *, declaration: Declaration, folder: str) -> RawTable:
        """Read the table, after it was written again where it is not plain."""
        if declaration.bad_rows == "set_aside":
            return self._read_what_can_be(path, declaration, folder)
        source = declaration.source
        encoding, delimiter = _encoding(path, source.encoding), source.delimiter or self._delimiter
        if encoding or delimiter != "," or (source.header_row or 1) > 1:
            plain = Path(folder) / "plain.csv"
            _rewrite(Path(path), plain, encoding, delimiter, header_row=source.header_row or 1)
            path = str(plain)
        return self._plain.read(path, declaration=declaration, folder=folder)

    def _read_what_can_be(self, path: str, declaration: Declaration, folder: str) -> RawTable:
        """Read the table without the rows that cannot be read, which are told as a finding."""
        source, kept = declaration.source, Path(folder) / "kept.csv"
        aside = write_readable(
            Path(path),
            kept,
            encoding=_encoding(path, source.encoding) or "utf-8-sig",
            delimiter=source.delimiter or self._delimiter,
            header_row=source.header_row or 1,
        )
        table = self._plain.read(str(kept), declaration=declaration, folder=folder)
        return replace(table, findings=[*table.findings, *aside])


class TsvReader(DelimitedReader):
    """The same, separated by tabs."""

    format = "tsv"
    _delimiter = _TAB

    def matches(self, name: str, head: bytes) -> bool:
        """Whether a file is called `.tsv` or `.tab`, or its first line has tabs and no commas."""
        if name.lower().endswith((".tsv", ".tab")):
            return True
        first = head.split(b"\n")[0]
        return "." not in name and b"\t" in first and b"," not in first


def _encoding(path: str, declared: str | None) -> str | None:
    """The encoding of a file that is not in UTF-8: by its mark, or else the declared one."""
    with Path(path).open("rb") as file:
        head = file.read(4)
    marked = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)
    try:
        name = codecs.lookup(marked or declared or "utf-8").name
    except LookupError:
        raise SourceError(f"source.encoding '{declared}' is not known") from None
    return None if name == "utf-8" else name


def _rewrite(
    path: Path, plain: Path, encoding: str | None, delimiter: str, *, header_row: int
) -> None:
    """Write the rows from the one with the names on; every value stays as it is.

    Raises SourceError naming the line where the text is in another encoding, quotes are broken, or
    a row has another number of values than there are names.
    """
    with (
        values_of_any_length(),
        path.open(encoding=encoding or "utf-8-sig", newline="") as text,
        plain.open("w", encoding="utf-8", newline="") as file,
    ):
        write = csv.writer(file, lineterminator="\r\n").writerow
        for row in _rows(text, delimiter, header_row):
            write(row)


def _rows(text: TextIO, delimiter: str, header_row: int) -> Iterator[list[str]]:
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    names: list[str] = []
    ended = 0
    try:
        for number, row in enumerate(reader, 1):
            ended = reader.line_num
            if number < header_row or not row:
                continue
            width = len(names or row)
            if is_again(row, names):
                raise SourceError(f"line {reader.line_num}: {NAMES_AGAIN}")
            if len(row) != width:
                hint = names_below(number) if 2 * width <= len(row) else ""
                raise SourceError(
                    f"line {reader.line_num}: {len(row)} values, and there are {width} names{hint}"
                )
            names = names or row
            yield row
    except csv.Error as error:
        raise SourceError(f"line {ended + 1}: {_said_of_quotes(error)}") from None
    except UnicodeError as error:
        raise SourceError(
            f"after line {reader.line_num}: the text is in another encoding than"
            f" {text.encoding}: declare source.encoding ({error})"
        ) from None
    if not names:
        raise SourceError(f"the source has no names in row {header_row}")


def _said_of_quotes(error: csv.Error) -> str:
    """What is wrong with the row that begins in a line, in the words of plain CSV."""
    said = str(error)
    if said == "unexpected end of data":
        return "a quote there is never closed"
    return "text after the quotes around a value" if " expected after " in said else said
