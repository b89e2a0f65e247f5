"""Reads one sheet of an XLSX workbook, in the memory of its shared texts and one batch of rows."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ploti.errors import SourceError
from ploti.model.admin import Finding
from ploti.server.adapters.readers.archive import MAGIC, Archive, open_archive
from ploti.server.adapters.readers.raw_file import RawFile, RawRows, Stated
from ploti.server.adapters.readers.xlsx_book import open_book
from ploti.server.adapters.readers.xlsx_cells import Cells, Kind, Row
from ploti.server.adapters.readers.xml_stream import stream
from ploti.server.sources.declaration import Declaration
from ploti.server.sources.raw import RawKind, RawTable

_STATED = {
    frozenset({Kind.INTEGER}): (RawKind.INTEGER, None),
    frozenset({Kind.NUMBER}): (RawKind.NUMBER, "float64"),
    frozenset({Kind.INTEGER, Kind.NUMBER}): (RawKind.NUMBER, None),
    frozenset({Kind.BOOLEAN}): (RawKind.BOOLEAN, None),
    frozenset({Kind.TEXT}): (RawKind.STRING, None),
    frozenset({Kind.DATE}): (RawKind.STRING, "date"),
    frozenset({Kind.TIME}): (RawKind.STRING, "string"),
    frozenset({Kind.DATE_TIME}): (RawKind.STRING, "datetime"),
    frozenset({Kind.DATE, Kind.DATE_TIME}): (RawKind.STRING, "datetime"),
}
_DAYS = {Kind.DATE, Kind.DATE_TIME}


class XlsxReader:
    """XLSX; `sheet` names one of several, `header_row` the row that has the names.

    Without it that is the first row which is not empty. Empty rows are passed over.
    """

    format = "xlsx"

    def matches(self, name: str, head: bytes) -> bool:
        """Whether the head is an archive's, and the name or its first member a workbook's."""
        first = head[30:].split(b"PK")[0]
        known = first.startswith((b"[Content_Types].xml", b"xl/", b"_rels/.rels", b"docProps/"))
        return head.startswith(MAGIC) and (name.lower().endswith((".xlsx", ".xlsm")) or known)

    def read(self, path: str, *, declaration: Declaration, folder: str) -> RawTable:
        """Read the sheet into `folder`."""
        with open_archive(path) as archive:
            return _Sheet(archive, declaration).read(folder)


class _Sheet:
    """One sheet, and what its columns turned out to hold."""

    def __init__(self, archive: Archive, declaration: Declaration) -> None:
        self._archive = archive
        self._book = open_book(archive, sheet=declaration.source.sheet)
        self._header_row = declaration.source.header_row
        self._cells = Cells(self._book)
        self._names: dict[int, str] = {}
        self._kinds: dict[int, set[Kind]] = {}

    def read(self, folder: str) -> RawTable:
        rows = self._rows()
        self._take_header(rows)
        width = len(self._names)
        with RawFile(folder, width=width, spatial=False) as raw:
            written = RawRows(raw, width=width, spatial=False)
            for row in rows:
                written.add(self._values(row))
            written.flush()
        columns = [self._stated(column) for column in self._names]
        return self._with_whole_times(raw.table(columns, findings=self._findings()))

    def _rows(self) -> Iterator[Row]:
        with self._archive.open(self._book.sheet) as file:
            for _ in stream(file, self._cells):
                yield from self._cells.take()

    def _take_header(self, rows: Iterator[Row]) -> None:
        for row in rows:
            if self._header_row is None or row.number >= self._header_row:
                break
        else:
            row = Row(self._header_row or 1, {})
        if self._header_row not in {None, row.number} or not row.cells:
            raise SourceError(f"the sheet has no names in row {self._header_row or 1}")
        last = max(row.cells)
        texts = {column: cell.text for column, cell in row.cells.items()}
        self._names = {column: texts.get(column, "") for column in range(min(texts), last + 1)}
        self._kinds = {column: set() for column in self._names}

    def _values(self, row: Row) -> list[str | None]:
        for column, cell in row.cells.items():
            if column not in self._names:
                raise SourceError(
                    f"row {row.number:,} has a value in column {column + 1}, which has no name:"
                    " declare source.header_row where the names stand lower down"
                )
            self._kinds[column].add(cell.kind)
        return [row.cells[column].text if column in row.cells else None for column in self._names]

    def _stated(self, column: int) -> Stated:
        kinds = frozenset(self._kinds[column])
        kind, type_ = _STATED.get(kinds, (RawKind.TEXT, None))
        return Stated(self._names[column], kind, type_)

    def _with_whole_times(self, table: RawTable) -> RawTable:
        """Days among date-times as the midnights that they are."""
        mixed = [
            column.field
            for column, kinds in zip(table.columns, self._kinds.values(), strict=True)
            if kinds == _DAYS
        ]
        if not mixed:
            return table
        midnight = "CASE WHEN length({0}) = 10 THEN {0} || 'T00:00:00' ELSE {0} END AS {0}"
        replaced = ", ".join(midnight.format(field) for field in mixed)
        relation = f"(SELECT * REPLACE ({replaced}) FROM {table.relation})"  # noqa: S608 - ours
        return msgspec.structs.replace(table, relation=relation)

    def _findings(self) -> list[Finding]:
        if not self._cells.error_count:
            return []
        message = f"{self._cells.error_count:,} cells held an error and became null"
        examples = self._cells.errors
        return [Finding(reason=None, kind="cell_error", message=message, examples=examples)]
