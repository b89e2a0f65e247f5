"""What the sheets of a workbook share: their names, texts and formats."""

from __future__ import annotations

import re
from posixpath import join, normpath
from typing import NamedTuple

from ploti.errors import SourceError
from ploti.server.adapters.readers.archive import Archive
from ploti.server.adapters.readers.xlsx_formats import Shown, shown_by
from ploti.server.adapters.readers.xml_stream import Handler, local_name, stream

_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_WORKSHEET = "/worksheet"
_TRUE = {"1", "true", "on"}


class Book(NamedTuple):
    """The member of the chosen sheet, the shared texts, and how each cell format shows numbers."""

    sheet: str
    texts: list[str]
    formats: list[Shown]
    from_1904: bool


def open_book(archive: Archive, *, sheet: str | None) -> Book:
    """The workbook with the sheet of this name, or its only one that is not hidden.

    Raises SourceError that lists the sheets where there is none, or more than one.
    """
    if "xl/workbook.xml" not in archive.names:
        raise SourceError("the archive is no XLSX workbook")
    targets = _Targets()
    _read(archive, "xl/_rels/workbook.xml.rels", targets)
    sheets = _Sheets(others=targets.others)
    _read(archive, "xl/workbook.xml", sheets)
    member = normpath(join("xl", targets.found.get(sheets.choose(sheet), ""))).lstrip("/")
    if member not in archive.names:
        raise SourceError("the workbook does not hold the sheet that it lists")
    texts, formats = _Texts(), _Formats()
    if "xl/sharedStrings.xml" in archive.names:
        _read(archive, "xl/sharedStrings.xml", texts)
    if "xl/styles.xml" in archive.names:
        _read(archive, "xl/styles.xml", formats)
    return Book(member, texts.found, formats.shown(), sheets.from_1904)


def unescaped(text: str) -> str:
    """A text whose `_x000D_` are the characters that XML or its writer could not hold."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text


def _read(archive: Archive, member: str, handler: Handler) -> None:
    with archive.open(member) as file:
        for _ in stream(file, handler):
            pass


class _Elements:
    """A handler that looks at nothing; its kinds look at how elements begin."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Nothing begins here."""

    def end(self, name: str) -> None:
        """Nothing ends here."""

    def text(self, text: str) -> None:
        """Nothing is said here."""


class _Sheets(_Elements):
    """The sheets of cells; those that are no more than a chart are left out."""

    def __init__(self, *, others: set[str]) -> None:
        self.from_1904 = False
        self._others = others
        self._all: dict[str, str] = {}
        self._visible: dict[str, str] = {}

    def start(self, name: str, attributes: dict[str, str]) -> None:
        match local_name(name):
            case "workbookPr":
                self.from_1904 = attributes.get("date1904", "").lower() in _TRUE
            case "sheet":
                found = {local_name(key): value for key, value in attributes.items()}
                if found.get("id", "") not in self._others:
                    self._add(found)

    def _add(self, sheet: dict[str, str]) -> None:
        name, target = sheet.get("name", ""), sheet.get("id", "")
        self._all[name] = target
        if sheet.get("state", "visible") == "visible":
            self._visible[name] = target

    def choose(self, declared: str | None) -> str:
        if declared is not None and declared in self._all:
            return self._all[declared]
        if declared is None and len(self._visible) == 1:
            return next(iter(self._visible.values()))
        listed = ", ".join(self._all) or "none"
        if declared is None:
            raise SourceError(f"the workbook's sheets are {listed}: declare source.sheet")
        raise SourceError(f"the workbook has no sheet '{declared}': its sheets are {listed}")


class _Targets(_Elements):
    """Where the parts of the workbook are, and which of them are said to be no sheets of cells."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self.others: set[str] = set()

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if local_name(name) == "Relationship":
            self.found[attributes.get("Id", "")] = attributes.get("Target", "")
            if not attributes.get("Type", _WORKSHEET).endswith(_WORKSHEET):
                self.others.add(attributes.get("Id", ""))


class _Formats(_Elements):
    def __init__(self) -> None:
        self._codes: dict[int, str] = {}
        self._used: list[int] = []
        self._inside = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        match local_name(name):
            case "numFmt":
                number = _format_number(attributes)
                self._codes[number] = attributes.get("formatCode", "")
            case "cellXfs":
                self._inside = True
            case "xf" if self._inside:
                self._used.append(_format_number(attributes))

    def end(self, name: str) -> None:
        if local_name(name) == "cellXfs":
            self._inside = False

    def shown(self) -> list[Shown]:
        return [shown_by(number, self._codes.get(number)) for number in self._used]


def _format_number(attributes: dict[str, str]) -> int:
    text = attributes.get("numFmtId", "")
    return int(text) if text.isdecimal() and len(text) < 10 else 0


class _Texts:
    """The shared texts; of a rich text its runs, not the reading aids above them."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._parts: list[str] = []
        self._path: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        del attributes
        self._path.append(local_name(name))
        if self._path[-1] == "si":
            self._parts.clear()

    def text(self, text: str) -> None:
        if self._path[-1] == "t" and "rPh" not in self._path:
            self._parts.append(text)

    def end(self, name: str) -> None:
        del name
        if self._path.pop() == "si":
            self.found.append(unescaped("".join(self._parts)))
