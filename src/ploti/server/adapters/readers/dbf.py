"""The attributes of a shapefile: dBase records, each value's text as it stands in the file."""

from __future__ import annotations

import codecs
import datetime as dt
import re
from collections.abc import Sequence
from struct import unpack_from
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ploti.errors import SourceError
from ploti.server.adapters.readers.raw_file import Stated
from ploti.server.sources.raw import RawKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LANGUAGES = {
    **dict.fromkeys((0x01, 0x09, 0x0B, 0x0D, 0x0F, 0x11, 0x15, 0x18, 0x19, 0x1B), "cp437"),
    **dict.fromkeys((0x02, 0x0A, 0x0E, 0x10, 0x12, 0x14, 0x16, 0x1A, 0x1D, 0x25, 0x37), "cp850"),
    **dict.fromkeys((0x03, 0x57, 0x58, 0x59), "cp1252"),
    **dict.fromkeys((0x1F, 0x22, 0x23, 0x40, 0x64, 0x87), "cp852"),
    **dict.fromkeys((0x08, 0x17, 0x66), "cp865"),
    **dict.fromkeys((0x26, 0x65), "cp866"),
    **dict.fromkeys((0x1C, 0x6C), "cp863"),
    **dict.fromkeys((0x13, 0x7B), "cp932"),
    **dict.fromkeys((0x4D, 0x7A), "cp936"),
    **dict.fromkeys((0x4E, 0x79), "cp949"),
    **dict.fromkeys((0x4F, 0x78), "cp950"),
    **dict.fromkeys((0x50, 0x7C), "cp874"),
    **dict.fromkeys((0x6A, 0x86), "cp737"),
    **dict.fromkeys((0x6B, 0x88), "cp857"),
    0x24: "cp860",
    0x67: "cp861",
    0xC8: "cp1250",
    0xC9: "cp1251",
    0xCA: "cp1254",
    0xCB: "cp1253",
    0xCC: "cp1257",
}
_CODE_PAGE = re.compile(r"(?:LDID[/ ]*|ANSI[ _]?|OEM[ _]?|CP|WINDOWS-?)?(\d+)")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TRUTH = (
    dict.fromkeys("TtYy", "true")
    | dict.fromkeys("FfNn", "false")
    | dict[str, str | None].fromkeys(("", "?"), None)
)


class _Field(NamedTuple):
    name: bytes
    type: str
    start: int
    length: int
    decimals: int


class _Kind(NamedTuple):
    kind: RawKind
    type: str | None = None


class Dbf:
    """An open table; `encoding` is the declared one, `code_page` the text of a `.cpg` file.

    Texts lose the blanks that fill them up behind, numbers those on either side. Blank values,
    stars (a number that did not fit) and dates of zeros are null: the format has no other null.
    """

    def __init__(self, path: str, *, encoding: str | None, code_page: str | None) -> None:
        """Read the head; raises SourceError where it is broken or has a type that is not read."""
        with open(path, "rb") as file:  # noqa: PTH123 - its size is asked next
            head = file.read(32)
            if len(head) < 32:
                raise SourceError("the .dbf file is cut short")
            self.rows, size, self._width = unpack_from("<IHH", head, 4)
            self._fields = _fields(file.read(max(size - 32, 0)))
        if not self._width or sum(field.length for field in self._fields) >= self._width:
            raise SourceError("the .dbf file is broken: its columns are wider than its records")
        data: NDArray[np.uint8] = np.memmap(path, np.uint8, "r")
        if len(data) < size + self.rows * self._width:
            raise SourceError(
                f"the .dbf file is cut short: it says that it has {self.rows:,} records"
            )
        self._records = data[size : size + self.rows * self._width].reshape(self.rows, self._width)
        self._encoding = _encoding(encoding, code_page, language=head[29])
        self.cut_texts = 0
        self._stated = {field: _stated(field) for field in self._fields}

    def values(self, numbers: Sequence[int]) -> list[list[str | None]]:
        """A column of texts for each field, of the records with these numbers (from 0).

        Raises SourceError naming the record where a text is in another encoding.
        """
        records = self._records[np.asarray(numbers, dtype=np.int64)]
        return [self._column(field, records, numbers) for field in self._fields]

    def columns(self) -> list[Stated]:
        """The columns, as far as the values that were read bear out what the table says of them."""
        return [
            Stated(self._decode(field.name, row=0), *stated)
            for field, stated in self._stated.items()
        ]

    def _column(
        self, field: _Field, records: NDArray[np.uint8], numbers: Sequence[int]
    ) -> list[str | None]:
        cells = np.ascontiguousarray(records[:, field.start : field.start + field.length])
        given: list[bytes] = cells.view(f"S{field.length}").ravel().tolist()
        if field.type == "C":
            rows = zip(given, numbers, strict=True)
            return [self._decode(each, row=row + 1).rstrip(" ") or None for each, row in rows]
        texts = [each.decode("latin-1").strip(" \0") for each in given]
        if field.type == "L":
            return [_truth(text, row=row + 1) for text, row in zip(texts, numbers, strict=True)]
        return self._checked(field, texts)

    def _checked(self, field: _Field, texts: list[str]) -> list[str | None]:
        found = [_date(text) if field.type == "D" else _number(text) for text in texts]
        while not all(text is None or _fits(text, self._stated[field]) for text in found):
            self._stated[field] = _weaker(self._stated[field])
        return found

    def _decode(self, text: bytes, *, row: int) -> str:
        try:
            return text.decode(self._encoding or "utf-8")
        except UnicodeDecodeError as error:
            # A character cut in two where the field ends: the rest of the text is whole.
            if error.reason == "unexpected end of data":
                self.cut_texts += 1
                return text[: error.start].decode(self._encoding or "utf-8")
        said = f"not {self._encoding}" if self._encoding else "neither ASCII nor UTF-8"
        raise SourceError(
            f"record {row:,}: the text {text[:40]!r} is {said}: declare source.encoding"
        )


def _fields(head: bytes) -> list[_Field]:
    fields: list[_Field] = []
    start = 1
    for at in range(0, len(head), 32):
        if head[at] == 0x0D:
            break
        if len(head) < at + 32:
            raise SourceError("the .dbf file is broken: its list of columns has no end")
        name, kind = head[at : at + 11].split(b"\0")[0], chr(head[at + 11])
        length, decimals = head[at + 16], head[at + 17]
        if kind not in "CNFDL":
            shown = name.decode("latin-1")
            raise SourceError(f"column '{shown}' has the dBase type '{kind}', which is not read")
        if kind == "C":
            length, decimals = length + (decimals << 8), 0
        fields.append(_Field(name, kind, start, length, decimals))
        start += length
    return fields


def _stated(field: _Field) -> _Kind:
    match field.type:
        case "C":
            return _Kind(RawKind.STRING)
        case "D":
            return _Kind(RawKind.STRING, "date")
        case "L":
            return _Kind(RawKind.BOOLEAN)
        case _:
            return _Kind(RawKind.NUMBER if field.decimals else RawKind.INTEGER)


def _fits(text: str, kind: _Kind) -> bool:
    match kind:
        case _Kind(RawKind.INTEGER):
            return _INTEGER.fullmatch(text) is not None
        case _Kind(RawKind.NUMBER):
            return _NUMBER.fullmatch(text) is not None
        case _Kind(RawKind.STRING, "date"):
            return _is_date(text)
        case _:
            return True


def _weaker(kind: _Kind) -> _Kind:
    return _Kind(RawKind.NUMBER if kind.kind is RawKind.INTEGER else RawKind.TEXT)


def _number(text: str) -> str | None:
    return None if not text or text.startswith("*") else text


def _truth(text: str, *, row: int) -> str | None:
    if text not in _TRUTH:
        raise SourceError(f"record {row:,}: '{text}' is neither true nor false")
    return _TRUTH[text]


def _is_date(text: str) -> bool:
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _date(text: str) -> str | None:
    if not text or not text.strip("0"):
        return None
    return f"{text[:4]}-{text[4:6]}-{text[6:]}" if len(text) == 8 and text.isdecimal() else text


def _encoding(declared: str | None, code_page: str | None, *, language: int) -> str | None:
    """What is said of the encoding, the declared one first; None is strict UTF-8."""
    if declared:
        return _known(declared)
    if code_page and code_page.strip():
        return _known(code_page.strip())
    return _LANGUAGES.get(language)


def _known(name: str) -> str:
    if (found := _CODE_PAGE.fullmatch(name.upper())) is not None:
        number = int(found[1])
        if name.upper().startswith("LDID"):
            name = _LANGUAGES.get(number, name)
        else:
            name = {65001: "utf-8", 88591: "iso8859-1", 885915: "iso8859-15"}.get(
                number, f"cp{number}"
            )
    spelled = name.replace("ISO 8859", "ISO8859-").replace("ISO 8859-", "ISO8859-")
    try:
        return codecs.lookup(spelled).name
    except (LookupError, ValueError):
        raise SourceError(
            f"the encoding '{name}' is not known: declare source.encoding, such as utf-8 or cp1252"
        ) from None
