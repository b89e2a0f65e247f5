"""Reads a layer of a GeoPackage as the SQLite table that it is, each value's text exact."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from ploti.errors import SourceError
from ploti.model.sql import identifier
from ploti.server.adapters.readers.crs_names import from_code, from_wkt
from ploti.server.adapters.readers.raw_file import RawFile, Stated, refuse_points
from ploti.server.sources.declaration import Declaration
from ploti.server.sources.raw import RawKind, RawTable

_MAGIC = b"SQLite format 3\x00"
_BATCH_BYTES = 16 << 20
_BATCH_ROWS = 20_000
_FIRST_ROWS = 500
_ENVELOPES = {0: 0, 1: 32, 2: 48, 3: 48, 4: 64}
_ROW_NUMBERS = {"fid", "ogc_fid", "objectid", "rowid"}
_COMPUTED = " GENERATED ALWAYS"
_BREACH = re.compile(r" value in |^CHECK constraint failed")
_HIDDEN = 1
"""What SQLite says of a column that only a query by its name shows."""
_FLOATS = ("DOUBLE", "FLOAT", "REAL")
_Cell = str | int | float | bytes | None
_TRUTH = {0: "false", 1: "true"}


class _Geometry(NamedTuple):
    column: str
    crs: str | None


class GeoPackageReader:
    """GeoPackage; of several layers, `layer` names the one to read.

    The number that the format gives to each row (`fid`) is left out unless the key or `columns`
    names it.
    """

    format = "gpkg"

    def matches(self, name: str, head: bytes) -> bool:
        """Whether the head is SQLite's; that it is a GeoPackage is seen when it is read."""
        del name
        return head.startswith(_MAGIC)

    def read(self, path: str, *, declaration: Declaration, folder: str) -> RawTable:
        """Read the layer into `folder`."""
        with _reason(), closing(_connect(path)) as database:
            layer = _choose_layer(database, declaration.source.layer)
            _check_pages(database, layer)
            geometry = _geometry(database, layer)
            if geometry:
                refuse_points(declaration)
            named = {*declaration.key, *declaration.columns}
            return _Layer(database, layer, geometry=geometry, named=named).read(folder)


class _Layer:
    """One layer, and what its values turned out to be."""

    def __init__(
        self,
        database: sqlite3.Connection,
        name: str,
        *,
        geometry: _Geometry | None,
        named: set[str],
    ) -> None:
        self._database = database
        self._name = name
        self._geometry = geometry
        listed = database.execute(f"PRAGMA table_xinfo({identifier(name)})").fetchall()
        self._columns = {
            str(column): str(declared or "").upper().removesuffix(_COMPUTED)
            for _, column, declared, _, _, key, hidden in listed
            if hidden != _HIDDEN
            and (geometry is None or column != geometry.column)
            and not (key and column.lower() in _ROW_NUMBERS and column not in named)
        }
        self._seen: dict[str, set[type]] = {column: set() for column in self._columns}
        self._logical = {c for c, declared in self._columns.items() if declared == "BOOLEAN"}

    def read(self, folder: str) -> RawTable:
        spatial = self._geometry is not None
        with RawFile(folder, width=len(self._columns), spatial=spatial) as raw:
            for rows in self._batches():
                columns = list(zip(*rows, strict=True))
                raw.write(
                    [
                        raw.strings(self._texts(name, values))
                        for name, values in zip(self._columns, columns, strict=False)
                    ],
                    geometry=_wkbs(columns[-1], first=raw.rows + 1) if spatial else None,
                )
        crs = self._geometry.crs if self._geometry else None
        return raw.table([self._stated(name) for name in self._columns], crs=crs)

    def _batches(self) -> Iterator[list[tuple[_Cell, ...]]]:
        names = [*self._columns, *([self._geometry.column] if self._geometry else [])]
        listed = ", ".join(identifier(name) for name in names)
        cursor = self._database.execute(f"SELECT {listed} FROM {identifier(self._name)}")  # noqa: S608 - quoted
        size = _FIRST_ROWS
        while rows := cursor.fetchmany(size):
            yield rows
            width = max(1, sum(_size(cell) for row in rows for cell in row) // len(rows))
            size = min(_BATCH_ROWS, max(1, _BATCH_BYTES // width))

    def _texts(self, name: str, values: Sequence[_Cell]) -> Sequence[str | None]:
        kinds = set(map(type, values)) - {type(None)}
        self._seen[name] |= kinds
        if name in self._logical and not set(values) <= {0, 1, None}:
            raise SourceError(f"column '{name}' is BOOLEAN and has a value other than 0 and 1")
        if name in self._logical:
            return [None if value is None else _TRUTH[int(value)] for value in values]
        if kinds <= {str}:
            return values  # type: ignore[return-value]
        return [None if value is None else _text(value) for value in values]

    def _stated(self, name: str) -> Stated:
        seen = self._seen[name]
        if name in self._logical:
            return Stated(name, RawKind.BOOLEAN)
        if seen == {int}:
            return Stated(name, RawKind.INTEGER)
        if seen and seen <= {int, float}:
            declared = self._columns[name].startswith(_FLOATS) and seen == {float}
            return Stated(name, RawKind.NUMBER, "float64" if declared else None)
        return Stated(name, RawKind.STRING if seen <= {str, bytes} else RawKind.TEXT)


def _connect(path: str) -> sqlite3.Connection:
    address = f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1"
    database = sqlite3.connect(address, uri=True)
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")
    return database


def _check_pages(database: sqlite3.Connection, layer: str) -> None:
    """Raise SourceError for a damaged layer; a query alone gives what it finds, zeros as nulls.

    Rows that break a rule of their own table are data all the same.
    """
    for (said,) in database.execute(f"PRAGMA quick_check({identifier(layer)})").fetchall():
        reason = str(said).strip().splitlines()[-1]
        if reason != "ok" and not _BREACH.search(reason):
            raise SourceError(f"the GeoPackage is damaged: {reason}")


def _choose_layer(database: sqlite3.Connection, declared: str | None) -> str:
    tables = database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'gpkg_contents'")
    if not tables.fetchone()[0]:
        raise SourceError("the source is a SQLite database, and no GeoPackage")
    found = database.execute(
        "SELECT table_name FROM gpkg_contents WHERE data_type IN ('features', 'attributes')"
        " ORDER BY table_name"
    )
    layers = [str(name) for (name,) in found]
    if declared is None and len(layers) == 1:
        return layers[0]
    if declared in layers:
        return declared
    listed = ", ".join(layers) or "none"
    if declared is None:
        raise SourceError(f"the source's layers are {listed}: declare source.layer")
    raise SourceError(f"the source has no layer '{declared}': its layers are {listed}")


def _geometry(database: sqlite3.Connection, layer: str) -> _Geometry | None:
    found = database.execute(
        "SELECT g.column_name, s.organization, s.organization_coordsys_id, s.definition"
        " FROM gpkg_geometry_columns g"
        " LEFT JOIN gpkg_spatial_ref_sys s ON s.srs_id = g.srs_id"
        " WHERE lower(g.table_name) = lower(?)",
        [layer],
    ).fetchone()
    if found is None:
        return None
    column, organization, number, definition = found
    if str(organization).upper() in {"EPSG", "ESRI", "OGC"}:
        return _Geometry(column, from_code(organization, number))
    if str(organization).upper() in {"NONE", "UNDEFINED"} or definition in {None, "undefined"}:
        return _Geometry(column, None)
    return _Geometry(column, from_wkt(definition))


def _wkbs(values: Sequence[_Cell], *, first: int) -> list[bytes | None]:
    return [_wkb(value, row=first + place) for place, value in enumerate(values)]


def _wkb(value: _Cell, *, row: int) -> bytes | None:
    """The WKB behind a GeoPackage's own head."""
    if value is None:
        return None
    if not isinstance(value, bytes) or value[:2] != b"GP" or len(value) < 8:
        raise SourceError(f"row {row:,}: its geometry is not GeoPackage's")
    flags = value[3]
    envelope = _ENVELOPES.get(flags >> 1 & 7)
    if envelope is None or flags & 0x20:
        raise SourceError(f"row {row:,}: its geometry is of an extended type, which is not read")
    return value[8 + envelope :]


def _text(value: str | float | bytes) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _size(cell: _Cell) -> int:
    return len(cell) if isinstance(cell, str | bytes) else 8


@contextmanager
def _reason() -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise SourceError(f"the GeoPackage cannot be read: {error}") from None
