"""The cells of a sheet, row by row, with the text and the kind of each."""

from __future__ import annotations

import re
from enum import Enum
from math import isfinite
from typing import NamedTuple

from ploti.errors import SourceError
from ploti.server.adapters.readers.xlsx_book import Book, unescaped
from ploti.server.adapters.readers.xlsx_formats import Shown, day_text
from ploti.server.adapters.readers.xml_stream import local_name

_INTEGER = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_REFERENCE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(rf"{_DAY.pattern}T[0-9:.]+")
_TRUTH = {"0": "false", "1": "true", "false": "false", "true": "true"}
_ASIDE = {"rPh", "extLst"}
"""Elements in a cell that are beside its value: reading aids, what programs of a maker add."""

_UNRECKONED = "the formula has no value: save the workbook in a program that reckons it"


class Kind(Enum):
    """What a cell holds."""

    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    TEXT = "text"
    DATE = "date"
    TIME = "time"
    DATE_TIME = "datetime"


class Cell(NamedTuple):
    """A value: its text, exactly, and its kind."""

    text: str
    kind: Kind


class Row(NamedTuple):
    """A row that is not empty: its number in the sheet from 1, and its cells by column from 0."""

    number: int
    cells: dict[int, Cell]


_SHOWN = {
    Shown.NUMBER: Kind.NUMBER,
    Shown.DATE: Kind.DATE,
    Shown.TIME: Kind.TIME,
    Shown.BOTH: Kind.DATE_TIME,
}


class Cells:
    """A handler of a sheet's elements that gathers the rows which have ended.

    A formula is the value that was kept with it, and is refused without one; `errors` counts cells
    that hold an error, which are null. An empty text is no value, as nobody can tell it from an
    empty cell.
    """

    def __init__(self, book: Book) -> None:
        self.errors: list[str] = []
        self.error_count = 0
        self._book = book
        self._done: list[Row] = []
        self._cells: dict[int, Cell] = {}
        self._columns: dict[str, int] = {}
        self._row = 0
        self._column = -1
        self._type = "n"
        self._style = 0
        self._formula = False
        self._value: list[str] = []
        self._inside = ""
        self._aside = False
        self._failed = False

    def take(self) -> list[Row]:
        """The rows that ended since it was asked last."""
        done, self._done = self._done, []
        return done

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        local = local_name(name)
        if local == "c":
            self._start_cell(attributes)
        elif local in {"v", "t"} and not self._aside:
            self._inside = local
        elif local == "f":
            self._formula = True
        elif local in _ASIDE:
            self._aside = True
        elif local == "row":
            self._row = _whole(attributes.get("r"), default=self._row + 1)
            self._column = -1
            self._cells = {}
            self._failed = False

    def text(self, text: str) -> None:
        """Text of the element that began last."""
        if self._inside and not self._aside:
            self._value.append(text)

    def end(self, name: str) -> None:
        """An element ends."""
        local = local_name(name)
        if local == "c":
            if cell := self._cell():
                if self._column in self._cells:
                    raise self._broken("the cell stands there twice")
                self._cells[self._column] = cell
        elif local in {"v", "t"}:
            self._inside = ""
        elif local in _ASIDE:
            self._aside = False
        elif local == "row" and (self._cells or self._failed):
            self._done.append(Row(self._row, self._cells))

    def _start_cell(self, attributes: dict[str, str]) -> None:
        reference = attributes.get("r")
        self._column = self._number(reference) if reference else self._column + 1
        self._type = attributes.get("t", "n")
        self._style = _whole(attributes.get("s"), default=0)
        self._formula = False
        self._value = []

    def _number(self, reference: str) -> int:
        found = _REFERENCE.fullmatch(reference)
        if not found:
            raise SourceError(f"row {self._row:,}: '{reference}' is no cell")
        letters = found[1]
        if letters not in self._columns:
            number = 0
            for letter in letters:
                number = number * 26 + ord(letter) - 64
            self._columns[letters] = number - 1
        return self._columns[letters]

    def _cell(self) -> Cell | None:
        """The cell that ends; None for one without a value."""
        text = "".join(self._value)
        if self._type in {"s", "str", "inlineStr"}:
            text = self._shared(text) if self._type == "s" and text else unescaped(text)
            return Cell(text, Kind.TEXT) if text else None
        text = text.strip()
        match self._type:
            case _ if not text:
                if self._formula:
                    raise self._broken(_UNRECKONED)
                return None
            case "b" if text in _TRUTH:
                return Cell(_TRUTH[text], Kind.BOOLEAN)
            case "d":
                return Cell(text, _kind_of_day(text))
            case "e":
                self._note_error(text)
                return None
            case "n":
                return self._numeric(text)
            case _:
                raise self._broken(f"'{text}' is no value of the kind '{self._type}'")

    def _note_error(self, text: str) -> None:
        self.error_count += 1
        self._failed = True
        if len(self.errors) < 5:
            self.errors.append(f"{text} in row {self._row:,}")

    def _shared(self, text: str) -> str:
        try:
            return self._book.texts[int(text)]
        except (ValueError, IndexError):
            raise self._broken(f"there is no shared text '{text}'") from None

    def _numeric(self, text: str) -> Cell:
        if not _NUMBER.fullmatch(text):
            raise self._broken(f"'{text}' is no number")
        formats = self._book.formats
        shown = formats[self._style] if self._style < len(formats) else Shown.NUMBER
        if shown is not Shown.NUMBER:
            text, shown = day_text(text, shown, from_1904=self._book.from_1904)
        if shown is not Shown.NUMBER:
            return Cell(text, _SHOWN[shown])
        if _INTEGER.fullmatch(text):
            return Cell(text, Kind.INTEGER)
        # workbooks write doubles with 17 digits, where fewer often say the same
        number = float(text)
        return Cell(repr(number) if isfinite(number) else text, Kind.NUMBER)

    def _broken(self, reason: str) -> SourceError:
        return SourceError(f"row {self._row:,}, column {self._column + 1}: {reason}")


def _kind_of_day(text: str) -> Kind:
    """What a day is that is written as one; with a zone it is a text in which one is found."""
    if _DAY.fullmatch(text):
        return Kind.DATE
    return Kind.DATE_TIME if _MOMENT.fullmatch(text) else Kind.TEXT


def _whole(text: str | None, *, default: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 10 else default
