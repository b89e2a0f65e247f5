"""Reads a feature class or table of a zipped file geodatabase, by GDAL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ploti.errors import SourceError
from ploti.server.adapters.readers import arrow_text, gdal
from ploti.server.adapters.readers.archive import MAGIC, Archive, open_archive
from ploti.server.adapters.readers.crs_names import from_wkt
from ploti.server.adapters.readers.raw_file import RawFile, Stated, refuse_points
from ploti.server.sources.declaration import Declaration
from ploti.server.sources.raw import RawKind, RawTable

_DRIVER = "OpenFileGDB"
_FILE = re.compile(r"(?:gdb|timestamps|a[0-9a-f]{8}\.\w+)", re.IGNORECASE)
_TABLE = ".gdbtable"
_GLOBAL_ID = "globalid"
_DATE_TIME = "OFTDateTime"


class FileGdbReader:
    """A ZIP archive with one file geodatabase; `layer` names one of several feature classes.

    What the system numbers by itself (`OBJECTID`, `GlobalID`) is left out unless the key or
    `columns` names it.
    """

    format = "filegdb"

    def matches(self, name: str, head: bytes) -> bool:
        """Whether the head is an archive's that begins with a part of a geodatabase."""
        packed = head.startswith(MAGIC)
        first = head[30:].split(b"PK")[0].lower()
        return packed and (b".gdb" in first or name.lower().endswith(".gdb.zip"))

    def read(self, path: str, *, declaration: Declaration, folder: str) -> RawTable:
        """Unpack the geodatabase and read the layer."""
        database = Path(folder) / "source.gdb"
        database.mkdir()
        with open_archive(path) as archive:
            _unpack(archive, database, member=declaration.source.member)
        name = _choose_layer(gdal.layers(str(database)), declaration.source.layer)
        layer = gdal.describe(str(database), driver=_DRIVER, layer=name)
        # each has a number and names of its own: else GDAL could not open it, or reads other bytes
        if not layer.fid or len({*layer.fields}) < len(layer.fields):
            raise SourceError(f"'{name}' cannot be read: the geodatabase is damaged")
        if layer.spatial:
            refuse_points(declaration)
        named = {*declaration.key, *declaration.columns}
        return _Layer(str(database), name, layer=layer, named=named).read(folder)


class _Layer:
    """One layer as GDAL gives it."""

    def __init__(self, path: str, name: str, *, layer: gdal.Layer, named: set[str]) -> None:
        self._path = path
        self._name = name
        self._layer = layer
        fields = [f for f in layer.fields if f.lower() != _GLOBAL_ID or f in named]
        self._fields = [*([layer.fid] if layer.fid in named else []), *fields]

    def read(self, folder: str) -> RawTable:
        spatial = self._layer.spatial
        crs = from_wkt(self._layer.crs) if spatial else None
        stated: list[Stated] = []
        with RawFile(folder, width=len(self._fields), spatial=spatial) as raw:
            for batch in self._batches():
                columns: list[Any] = [batch.column(name) for name in self._fields]
                pairs = list(zip(self._fields, columns, strict=True))
                stated = [self._stated(name, column) for name, column in pairs]
                raw.write(
                    [self._texts(name, column) for name, column in pairs],
                    geometry=batch.columns[-1].to_pylist() if spatial else None,
                )
        if raw.rows != self._layer.features:
            # GDAL ends where the file does, and passes over what it cannot read
            raise SourceError(
                f"{raw.rows:,} rows of '{self._name}' can be read, of {self._layer.features:,}"
                " that it says it has: the geodatabase is damaged"
            )
        return raw.table(stated or [Stated(f, RawKind.STRING) for f in self._fields], crs=crs)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        return gdal.batches(self._path, layer=self._name, spatial=self._layer.spatial)

    def _texts(self, name: str, column: arrow_text.AnyArray) -> arrow_text.AnyArray:
        texts = arrow_text.texts(column, name=name)
        if self._layer.types.get(name) == _DATE_TIME:
            # GDAL fills some of them up with zero bytes
            return pc.replace_substring(texts, "\0", "")
        return texts

    def _stated(self, name: str, column: arrow_text.AnyArray) -> Stated:
        return Stated(name, arrow_text.kind(column.type), arrow_text.stated_type(column.type))


def _unpack(archive: Archive, database: Path, *, member: str | None) -> None:
    """Write the geodatabase's own files; no name but theirs becomes a path."""
    folders = sorted({str(PurePosixPath(n).parent) for n in archive.names if n.endswith(_TABLE)})
    if member is not None:
        folders = [each for each in folders if member in {each, PurePosixPath(each).name}]
    if len(folders) != 1:
        listed = ", ".join(folders[:10]) or "none"
        hint = ": declare source.member" if len(folders) > 1 else ""
        raise SourceError(f"the archive's file geodatabases are {listed}{hint}")
    for name in archive.names:
        path = PurePosixPath(name)
        if str(path.parent) == folders[0] and _FILE.fullmatch(path.name):
            archive.unpack(name, database / path.name.lower())


def _choose_layer(layers: Sequence[str], declared: str | None) -> str:
    listed = ", ".join(layers) or "none"
    if declared is None and len(layers) == 1:
        return layers[0]
    if declared is None:
        raise SourceError(f"the source's layers are {listed}: declare source.layer")
    if declared not in layers:
        raise SourceError(f"the source has no layer '{declared}': its layers are {listed}")
    return declared
