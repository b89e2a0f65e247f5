"""Reads CSV: UTF-8, commas, a header; every value as text, nothing guessed."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import NamedTuple

from ploti.errors import SourceError
from ploti.model.admin import Finding
from ploti.model.sql import identifier, literal
from ploti.server.adapters.readers.csv_records import (
    Block,
    Facts,
    Structure,
    analyse,
    blocks,
    check_fields,
    check_names_again,
    cleaned,
)
from ploti.server.adapters.readers.raw_file import check_width
from ploti.server.ports.building import RawColumn, RawKind, RawTable
from ploti.server.sources.declaration import Declaration

_SMALLEST_LIMIT = 2 << 20
"""Bytes of a record for which DuckDB is always prepared."""

_LINES = 4
"""The longest records that a buffer of DuckDB holds: sixteen, unless told, took 200 MB more."""

_SAMPLE = 32 << 10
"""Bytes of each block of a large file that go into its sample."""

_OTHER_SEPARATORS = {";": ("semicolons", "';'"), "\t": ("tabs", r'"\t"'), "|": ("bars", "'|'")}


class _Header(NamedTuple):
    names: list[str]
    written: bytes
    record: int


class _Scan(NamedTuple):
    header: list[str]
    facts: Facts
    parts: list[bytes]


class CsvReader:
    """Implements `Reader` for CSV."""

    format = "csv"

    def matches(self, name: str, head: bytes) -> bool:
        """Files called `.csv`; others where the first line has a comma and begins as no JSON."""
        if name.lower().endswith(".csv"):
            return True
        text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        return (
            "." not in name and b"," in text.split(b"\n")[0] and not text.startswith((b"{", b"["))
        )

    def read(self, path: str, *, declaration: Declaration, folder: str) -> RawTable:
        """Prove the file's structure, clean it into `folder` where it must be, and describe it."""
        del declaration
        scan = _scan(Path(path))
        if not scan.facts.plain:
            path = _clean(Path(path), Path(folder, "clean.csv"))
        names = [name.replace("\0", "") for name in scan.header]
        fields = [f"f{number}" for number in range(len(names))]
        sample = _sample(scan, Path(folder, "sample.csv"))
        return RawTable(
            relation=_relation(path, fields, scan.facts),
            columns=[
                RawColumn(source_name=name, kind=RawKind.TEXT, field=field)
                for name, field in zip(names, fields, strict=True)
            ],
            geometry=None,
            sample=sample and _relation(sample, fields, scan.facts),
            rows=scan.facts.records - scan.facts.blanks - 1,
            findings=_findings(scan.facts),
        )


def _scan(path: Path) -> _Scan:
    facts, header, parts = Facts(), None, list[bytes]()
    for block in blocks(path):
        found = analyse(block)
        first, header = header is None, header or _header(block, found)
        if header:
            check_fields(block, found, columns=len(header.names))
        if header and len(header.names) > 1 and any(header.names):
            after = header.record if first else -1
            check_names_again(block, found, header.written, after=after)
        facts.add(block, found)
        parts.append(_first_records(block, found))
    if not header:
        raise SourceError("the source is empty: it has no header")
    return _Scan(header=header.names, facts=facts, parts=parts)


def _first_records(block: Block, found: Structure) -> bytes:
    """Whole records from a block's beginning, one at least."""
    last = max(1, int(found.ends.searchsorted(_SAMPLE)))
    return block.data[: int(found.ends[last - 1]) + 1].tobytes()


def _sample(scan: _Scan, path: Path) -> str | None:
    """A file of records from every block; none of a file that has only one, or is not plain."""
    if len(scan.parts) == 1 or not scan.facts.plain:
        return None
    path.write_bytes(b"".join(scan.parts))
    return str(path)


def _header(block: Block, found: Structure) -> _Header | None:
    """The names in the first record that is not blank; none where there is no such record."""
    filled = (~found.blank).nonzero()[0]
    if not len(filled):
        return None
    first = int(filled[0])
    start = int(found.ends[first - 1]) + 1 if first else 0
    written = block.data[start : start + int(found.lengths[first])].tobytes()
    try:
        names = next(csv.reader(io.StringIO(written.decode(), newline="")))
    except csv.Error as error:
        raise SourceError(f"the header cannot be names of columns: {error}") from None
    check_width(len(names))
    if names[0].lower().startswith("sep=") and len("".join(names)) <= len("sep=") + 1:
        raise SourceError(
            "line 1 names the separator, as for Excel, and no columns: declare"
            " source: {format: csv, header_row: 2}"
        )
    for separator, (kind, sign) in _OTHER_SEPARATORS.items():
        if len(names) == 1 and separator in names[0]:
            raise SourceError(
                f"line 1: values are separated by {kind}: declare"
                f" source: {{format: csv, delimiter: {sign}}}"
            )
    return _Header(names=names, written=written, record=first)


def _clean(path: Path, clean: Path) -> str:
    with clean.open("wb") as file:
        for block in blocks(path):
            file.write(cleaned(block, analyse(block)))
    return str(clean)


def _relation(path: str, fields: list[str], facts: Facts) -> str:
    columns = ", ".join(f"{identifier(field)}: 'VARCHAR'" for field in fields)
    limit = max(_SMALLEST_LIMIT, facts.longest + 2)
    options = [
        "auto_detect=false, header=true, delim=',', quote='\"', escape='\"', comment=''",
        "nullstr='', allow_quoted_nulls=true, strict_mode=true",
        f"columns={{{columns}}}, max_line_size={limit}",
        f"buffer_size={_LINES * limit}",
    ]
    if facts.quoted_breaks:
        # Threads that begin in the middle of the file would have to guess where a record begins.
        options.append("parallel=false")
    return f"read_csv({literal(path)}, {', '.join(options)})"


def _findings(facts: Facts) -> list[Finding]:
    if not facts.zeros:
        return []
    message = f"{facts.zeros} zero bytes were taken out of the source"
    return [Finding(reason=None, kind="zero_bytes", message=message)]
