"""Reads a zipped shapefile: shapes by GDAL, attributes as their text stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from ploti.errors import SourceError
from ploti.model.admin import Finding
from ploti.server.adapters.readers import gdal
from ploti.server.adapters.readers.archive import MAGIC, Archive, choose_member, open_archive
from ploti.server.adapters.readers.crs_names import from_wkt
from ploti.server.adapters.readers.dbf import Dbf
from ploti.server.adapters.readers.raw_file import RawFile, RawRows, refuse_points
from ploti.server.adapters.readers.shape_records import ShapeRecords
from ploti.server.sources.declaration import Declaration
from ploti.server.sources.raw import RawTable

_DRIVER = "ESRI Shapefile"
_HEAD = b"\x00\x00\x27\x0a"
_NEEDED = (".shp", ".shx", ".dbf")
_CODE_PAGE = ".cpg"
_SYSTEM = ".prj"
_WELCOME = (_SYSTEM, _CODE_PAGE)


class ShapefileReader:
    """A ZIP archive with a `.shp` file and those beside it.

    Of several, `member` or `layer` names the one to read.
    """

    format = "shapefile"

    def matches(self, name: str, head: bytes) -> bool:
        """Whether the head is that of an archive that begins with a part of a shapefile."""
        del name
        first = head[30:].split(b"\0")[0][:300].lower()
        parts = (*_NEEDED, *_WELCOME)
        return head.startswith(MAGIC) and any(part.encode() in first for part in parts)

    def read(self, path: str, *, declaration: Declaration, folder: str) -> RawTable:
        """Unpack the shapefile's parts and read them."""
        refuse_points(declaration)
        shp = Path(folder) / "shapes.shp"
        with open_archive(path) as archive:
            _unpack(archive, declaration, shp)
        with shp.open("rb") as file:
            if file.read(4) != _HEAD:
                raise SourceError("the .shp file is no shapefile")
        _as_utf8(shp.with_suffix(_SYSTEM))
        layer = gdal.describe(str(shp), driver=_DRIVER)
        code_page = _text(_place(shp, _CODE_PAGE))
        dbf = Dbf(
            str(shp.with_suffix(".dbf")), encoding=declaration.source.encoding, code_page=code_page
        )
        records = ShapeRecords(shp)
        _check_counts(records, dbf)
        return _read(shp, records, dbf, crs=from_wkt(layer.crs), folder=folder)


def _unpack(archive: Archive, declaration: Declaration, shp: Path) -> None:
    source = declaration.source
    member = source.member or (source.layer and f"{source.layer}.shp")
    chosen = choose_member(archive.names, suffixes=(".shp",), member=member)
    stem = chosen[: -len(".shp")]
    beside = {name.lower(): name for name in archive.names if name[: len(stem)] == stem}
    for suffix in (*_NEEDED, *_WELCOME):
        name = beside.get(f"{stem}{suffix}".lower())
        if name:
            archive.unpack(name, _place(shp, suffix))
        elif suffix in _NEEDED:
            missing = PurePosixPath(stem).name + suffix
            raise SourceError(f"the archive has no '{missing}' beside its '.shp' file")


def _place(shp: Path, suffix: str) -> Path:
    """Where a part is unpacked; GDAL needs no code page, and stumbles over a broken one."""
    return shp.with_suffix(".code_page" if suffix == _CODE_PAGE else suffix)


def _as_utf8(path: Path) -> None:
    """The names in a reference system may be in an older encoding, on which GDAL's reader ends."""
    if not path.exists():
        return
    text = path.read_bytes()
    try:
        text.decode()
    except UnicodeDecodeError:
        path.write_text(text.decode("latin-1"), encoding="utf-8", newline="")


def _check_counts(records: ShapeRecords, dbf: Dbf) -> None:
    """GDAL leaves out shapes without a record, and says nothing."""
    if len(records) != dbf.rows:
        raise SourceError(
            f"there are {len(records):,} shapes and {dbf.rows:,} records of attributes"
        )


def _read(shp: Path, records: ShapeRecords, dbf: Dbf, *, crs: str | None, folder: str) -> RawTable:
    width = len(dbf.columns())
    with RawFile(folder, width=width, spatial=True) as raw:
        rows = RawRows(raw, width=width, spatial=True)
        for numbers, shapes in _shapes(shp):
            columns = dbf.values(numbers)
            for number, shape in zip(numbers, shapes, strict=True):
                if shape is None:
                    records.expect_none(number)
            for values, shape in zip(zip(*columns, strict=True), shapes, strict=True):
                rows.add(values, geometry=shape)
        rows.flush()
    return raw.table(dbf.columns(), crs=crs, findings=_findings(dbf))


def _shapes(shp: Path) -> Iterator[tuple[Sequence[int], list[bytes | None]]]:
    """The numbers of the records that are not deleted, and their shapes, batch by batch."""
    for batch in gdal.batches(str(shp), columns=[]):
        columns: Any = batch.columns
        yield columns[0].to_pylist(), columns[-1].to_pylist()


def _text(path: Path) -> str | None:
    return path.read_bytes()[:100].decode("latin-1").strip("\0\r\n ï»¿") if path.exists() else None


def _findings(dbf: Dbf) -> list[Finding]:
    if not dbf.cut_texts:
        return []
    message = (
        f"{dbf.cut_texts:,} texts end in half a character, which was left out: they were cut to"
        " the width of their column"
    )
    return [Finding(reason=None, kind="texts_cut", message=message)]
