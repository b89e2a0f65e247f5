"""Reads JSON rows: a list of objects, an object with one such list, or an object a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from ploti.errors import SourceError
from ploti.server.adapters.readers.json_beside import TELLING, refuse_page
from ploti.server.adapters.readers.json_columns import Columns, Number, Parts, Row
from ploti.server.adapters.readers.json_mending import mend
from ploti.server.adapters.readers.json_repeats import find_repeated
from ploti.server.adapters.readers.json_sequence import sequence, texts
from ploti.server.adapters.readers.json_stream import JsonStream
from ploti.server.adapters.readers.remarks import Remark, Remarks
from ploti.server.sources.declaration import Declaration
from ploti.server.sources.raw import RawColumn, RawTable

_BATCH_ROWS = 20_000
_BATCH_BYTES = 16 << 20
_SHOWN = 80
_values = msgspec.json.Decoder(dict[str, object], float_hook=Number)


class JsonReader:
    """A list of objects, or an object that has one; of several, `layer` names the member.

    A field that a row has not is null, as one that is null there.
    """

    format = "json"

    def matches(self, name: str, head: bytes) -> bool:
        """Whether the name ends in `.json` and the head fits, or the head begins a list of rows."""
        text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        rows = text.startswith(b"[") and text[1:].lstrip().startswith(b"{")
        return rows or (name.lower().endswith(".json") and text.startswith((b"[", b"{")))

    def read(self, path: str, *, declaration: Declaration, folder: str) -> RawTable:
        """Read the rows, twice where a column turns out to hold strings and nested values."""
        declared = declaration.columns
        as_json = frozenset(name for name, kind in declared.items() if kind == "json")
        as_text = frozenset(declared) - as_json
        layer = declaration.source.layer
        reading = _Reading(folder, as_json=as_json, as_text=as_text)
        self._read_into(reading, path, layer)
        if unclear := reading.columns.unclear():
            reading = _Reading(folder, as_json=as_json | unclear, as_text=as_text)
            self._read_into(reading, path, layer)
        return reading.table()

    def stream(self, file: BinaryIO) -> JsonStream:
        """The text of a file."""
        return JsonStream(file)

    def rows(self, stream: JsonStream, layer: str | None) -> Iterator[bytes]:
        """The text of each row, as the stream passes it."""
        yield from _listed(stream, layer)
        stream.end()

    def _read_into(self, reading: _Reading, path: str, layer: str | None) -> None:
        with Path(path).open("rb") as file:
            stream = self.stream(file)
            reading.read(stream, self.rows(stream, layer))


class NdjsonReader(JsonReader):
    """Objects one after another, as a rule one a line."""

    format = "ndjson"

    def matches(self, name: str, head: bytes) -> bool:
        """Whether the name is one of the format's, or two objects follow one another."""
        text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        lines = text.startswith(b"{") and re.search(rb"\}[ \t\r]*\n[ \t\r\n]*\{", text)
        named = name.lower().endswith((".ndjson", ".jsonl", ".ldjson")) and text.startswith(b"{")
        return named or bool(lines)

    def stream(self, file: BinaryIO) -> JsonStream:
        """The texts of a file."""
        return sequence(file)

    def rows(self, stream: JsonStream, layer: str | None) -> Iterator[bytes]:
        """The text of each row."""
        del layer
        return texts(stream)


class _Reading:
    """One pass over a file."""

    def __init__(self, folder: str, *, as_json: frozenset[str], as_text: frozenset[str]) -> None:
        self.columns = Columns(as_json=as_json, as_text=as_text)
        self._parts = Parts(folder, name="rows")
        self._remarks = Remarks()
        self._count = 0
        self._rows: list[Row] = []
        self._bytes = 0

    def read(self, stream: JsonStream, rows: Iterator[bytes]) -> None:
        """Read the rows into parts; raises SourceError naming the row that cannot be read."""
        for text in rows:
            self._count += 1
            try:
                self._add(text)
            except (ValueError, msgspec.DecodeError, RecursionError) as error:
                raise stream.undecodable(error, text=text, what=f"row {self._count:,}") from None
        self._flush()
        self._parts.close()
        if self._count and not self.columns.names:
            raise SourceError(f"the source has {self._count} rows and no fields in them")

    def table(self) -> RawTable:
        """The table that was read."""
        return RawTable(
            relation=self._parts.relation(),
            columns=[
                RawColumn(source_name=name, kind=self.columns.kind(name), field=f"c{number}")
                for number, name in enumerate(self.columns.names)
            ],
            geometry=None,
            findings=self._remarks.findings(),
            rows=self._count,
        )

    def _add(self, text: bytes) -> None:
        if not text.startswith(b"{"):
            raise ValueError("it is no object")
        text, values = self._decode(text)
        if repeated := find_repeated(text, members=len(values)):
            self._remarks.add(
                Remark.MEMBER_REPEATED, place=f"row {self._count:,}: '{repeated[:_SHOWN]}'"
            )
        self._rows.append(Row(values, msgspec.Raw(text)))
        self._bytes += len(text)
        if len(self._rows) == _BATCH_ROWS or self._bytes >= _BATCH_BYTES:
            self._flush()

    def _decode(self, text: bytes) -> tuple[bytes, dict[str, object]]:
        if b"\\u0000" not in text:
            try:
                return text, _values.decode(text)
            except msgspec.DecodeError:
                pass  # below, with all that may be mended
        mended = mend(text, remark=self._remark)
        return mended, _values.decode(mended)

    def _flush(self) -> None:
        nowhere: list[bytes | None] = [None] * len(self._rows)
        self._parts.write(self.columns.arrays(self._rows), geometry=nowhere)
        self._rows, self._bytes = [], 0

    def _remark(self, remark: Remark) -> None:
        self._remarks.add(remark, place=f"row {self._count:,}")


def _listed(stream: JsonStream, layer: str | None) -> Iterator[bytes]:
    """The elements of the list of rows, or of the one member that is such a list."""
    if stream.peek() == b"[":
        yield from stream.elements()
        return
    if stream.peek() != b"{":
        raise stream.broken("a list of objects is expected")
    found: str | None = None
    rows = 0
    beside: dict[str, object] = {}
    for name in stream.members():
        if stream.peek() != b"[" or layer not in {None, name}:
            text = stream.value()
            if name in TELLING:
                beside[name] = _told(text)
            continue
        for number, element in enumerate(stream.elements()):
            if number == 0 and (element.startswith(b"{") or name == layer):
                _refuse_errors(name, element, layer)
                found = _only(found, name)
            if found == name:
                rows += 1
                yield element
    refuse_page(beside, rows=rows)
    if found is None:
        wanted = "list of objects" if layer is None else f"list '{layer}'"
        raise SourceError(f"the JSON text has no {wanted} with any in it")


def _refuse_errors(name: str, first: bytes, layer: str | None) -> None:
    """Raise SourceError for a list that says what went wrong, but where it is asked for."""
    if name == "errors" and layer is None:
        said = first[:_SHOWN].decode(errors="replace")
        raise SourceError(f"the source answers with errors: {said}")


def _told(text: bytes) -> object:
    """What a member beside the rows says; one that is broken says nothing that matters here."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _only(found: str | None, name: str) -> str:
    if found is not None:
        raise SourceError(f"'{found}' and '{name}' are lists of objects: declare source.layer")
    return name
