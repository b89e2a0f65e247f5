"""Reads what is packed: the one data file of a ZIP archive, or of a gzip file."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from ploti.errors import SourceError
from ploti.server.adapters.readers.archive import MAGIC, Archive, choose_member, open_archive
from ploti.server.ports.building import Reader
from ploti.server.sources import formats
from ploti.server.sources.declaration import Declaration, check_format
from ploti.server.sources.raw import RawTable

_NAMED = {
    "xlsx": (".xlsx",),
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "json": (".json",),
    "ndjson": (".ndjson", ".jsonl"),
    "geojson": (".geojson",),
    "geojsonseq": (".geojsonl", ".geojsons", ".geojsonseq"),
    "parquet": (".parquet",),
    "geoparquet": (".geoparquet", ".parquet"),
    "gpkg": (".gpkg",),
    "flatgeobuf": (".fgb",),
    "kml": (".kml",),
}
_DATA = tuple({suffix for suffixes in _NAMED.values() for suffix in suffixes})
_TEXT = (".txt",)
_WHOLE = {".shp": "shapefile", ".gdbtable": "filegdb"}
_WORKBOOK = "xl/workbook.xml"
_BLOCK = 1 << 20
_HIGHEST_RATIO = 100
_ALWAYS_ALLOWED = 1 << 30


class PackedReader:
    """Unpacks, tells the format of what is inside as of any file, and has its reader read it.

    Of several data files `member` names the one. An archive in an archive is refused, but for a
    workbook, or a dataset that is one archive.
    """

    format = formats.PACKED

    def __init__(self, readers: Sequence[Reader]) -> None:
        self._readers = readers

    def matches(self, name: str, head: bytes) -> bool:
        """Whether the head is that of an archive or of a gzip file."""
        del name
        return formats.is_packed(head)

    def read(self, path: str, *, declaration: Declaration, folder: str) -> RawTable:
        """Read the data file inside."""
        with Path(path).open("rb") as file:
            zipped = not file.read(2).startswith(formats.GZIP)
        if zipped:
            with open_archive(path) as archive:
                whole = _whole(archive, declaration)
                inside = None if whole else _unpack(archive, declaration, folder)
        else:
            whole, inside = None, _gunzip(path, folder)
        if inside is None:
            return self._read_whole(whole, path, declaration=declaration, folder=folder)
        return self._read_inside(inside, declaration=declaration, folder=folder)

    def _read_whole(
        self, format_: str | None, path: str, *, declaration: Declaration, folder: str
    ) -> RawTable:
        reader = next(each for each in self._readers if each.format == format_)
        check_format(declaration, reader.format)
        return reader.read(path, declaration=declaration, folder=folder)

    def _read_inside(self, inside: Path, *, declaration: Declaration, folder: str) -> RawTable:
        with inside.open("rb") as file:
            head = file.read(formats.HEAD)
        if head.startswith(MAGIC):
            with open_archive(str(inside)) as archive:
                whole = _whole(archive, declaration)
            if whole is None:
                raise SourceError("the archive has another archive in it, which is not read")
            return self._read_whole(whole, str(inside), declaration=declaration, folder=folder)
        name = inside.name if inside.suffix else ""
        declared = declaration.source.format
        reader = formats.choose(self._readers, declared=declared, name=name, head=head)
        check_format(declaration, reader.format)
        return reader.read(str(inside), declaration=declaration, folder=folder)


def _whole(archive: Archive, declaration: Declaration) -> str | None:
    """The format of which the whole archive is one file, as its members show.

    Raises SourceError for a workbook where another format is declared.
    """
    declared = declaration.source.format
    if _WORKBOOK in archive.names:
        if declared not in {None, "xlsx"}:
            raise SourceError(f"the source is a workbook (XLSX), and {declared} is declared")
        return "xlsx"
    if declared is not None:
        return None
    suffixes = {PurePosixPath(name).suffix.lower() for name in archive.names}
    return next((found for suffix, found in _WHOLE.items() if suffix in suffixes), None)


def _unpack(archive: Archive, declaration: Declaration, folder: str) -> Path:
    member = declaration.source.member
    if member is None:
        names = _likely(archive.names, declaration.source.format)
        name = choose_member(names, suffixes=_DATA + _TEXT, member=None)
    else:
        name = choose_member(archive.names, suffixes=("",), member=member)
    inside = Path(folder) / f"member{PurePosixPath(name).suffix.lower()}"
    archive.unpack(name, inside)
    return inside


def _likely(names: Sequence[str], declared: str | None) -> Sequence[str]:
    """The names that say the declared format, or else data of any but plain texts; all if none do.

    Texts beside a data file are there to be read by people.
    """
    for suffixes in (_NAMED.get(declared or "", ()), _DATA):
        if found := [name for name in names if name.lower().endswith(suffixes)]:
            return found
    return names


def _gunzip(path: str, folder: str) -> Path:
    inside = Path(folder) / "member"
    left = max(_HIGHEST_RATIO * Path(path).stat().st_size, _ALWAYS_ALLOWED)
    try:
        with gzip.open(path) as packed, inside.open("xb") as file:
            while block := packed.read(_BLOCK):
                left -= len(block)
                if left < 0:
                    raise SourceError("the gzip file unpacks to far more than its size")
                file.write(block)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise SourceError(f"the gzip file cannot be unpacked: {error}") from None
    return inside
