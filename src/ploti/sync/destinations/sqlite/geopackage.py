"""A GeoPackage: SQLite with the tables and types by which QGIS and GDAL know its layers."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from ploti.errors import SyncError
from ploti.model.schema import Schema
from ploti.model.sql import identifier
from ploti.sync.destinations.sqlite import wkb
from ploti.sync.destinations.sqlite.layout import GEOPACKAGE, Layout
from ploti.sync.destinations.sqlite.rtree import SpatialIndex
from ploti.sync.parquet import Row

_VERSION = 10300
_WGS84 = (
    'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563,'
    'AUTHORITY["EPSG","7030"]],AUTHORITY["EPSG","6326"]],PRIMEM["Greenwich",0,'
    'AUTHORITY["EPSG","8901"]],UNIT["degree",0.0174532925199433,AUTHORITY["EPSG","9122"]],'
    'AUTHORITY["EPSG","4326"]]'
)
_SET_UP = (
    """
    CREATE TABLE IF NOT EXISTS gpkg_spatial_ref_sys (
        srs_name TEXT NOT NULL,
        srs_id INTEGER NOT NULL PRIMARY KEY,
        organization TEXT NOT NULL,
        organization_coordsys_id INTEGER NOT NULL,
        definition TEXT NOT NULL,
        description TEXT
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS gpkg_contents (
        table_name TEXT NOT NULL PRIMARY KEY,
        data_type TEXT NOT NULL,
        identifier TEXT UNIQUE,
        description TEXT DEFAULT '',
        last_change DATETIME NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
        min_x DOUBLE,
        min_y DOUBLE,
        max_x DOUBLE,
        max_y DOUBLE,
        srs_id INTEGER,
        CONSTRAINT fk_gc_r_srs_id FOREIGN KEY (srs_id) REFERENCES gpkg_spatial_ref_sys (srs_id)
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS gpkg_geometry_columns (
        table_name TEXT NOT NULL,
        column_name TEXT NOT NULL,
        geometry_type_name TEXT NOT NULL,
        srs_id INTEGER NOT NULL,
        z TINYINT NOT NULL,
        m TINYINT NOT NULL,
        CONSTRAINT pk_geom_cols PRIMARY KEY (table_name, column_name),
        CONSTRAINT uk_gc_table_name UNIQUE (table_name),
        CONSTRAINT fk_gc_tn FOREIGN KEY (table_name) REFERENCES gpkg_contents (table_name),
        CONSTRAINT fk_gc_srs FOREIGN KEY (srs_id) REFERENCES gpkg_spatial_ref_sys (srs_id)
    )
    """,
)
_SYSTEMS = (
    ("Undefined Cartesian", -1, "NONE", -1, "undefined"),
    ("Undefined geographic", 0, "NONE", 0, "undefined"),
    ("WGS 84", 4326, "EPSG", 4326, _WGS84),
)
_ADD_SYSTEM = (
    "INSERT OR IGNORE INTO gpkg_spatial_ref_sys (srs_name, srs_id, organization,"
    " organization_coordsys_id, definition) VALUES (?, ?, ?, ?, ?)"
)
_ADD_TABLE = """
    INSERT INTO gpkg_contents (table_name, data_type, identifier, srs_id) VALUES (?, ?, ?, ?)
    ON CONFLICT (table_name) DO UPDATE SET data_type = excluded.data_type,
        srs_id = excluded.srs_id, last_change = excluded.last_change,
        min_x = NULL, min_y = NULL, max_x = NULL, max_y = NULL
"""
_ADD_COLUMN = "INSERT OR REPLACE INTO gpkg_geometry_columns VALUES (?, ?, 'GEOMETRY', ?, 2, 2)"
_NAMING_TABLES = (
    *("gpkg_ogr_contents", "gpkg_extensions", "gpkg_geometry_columns", "gpkg_contents"),
)
_TYPES = {
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "DATETIME",
    "datetime": "DATETIME",
    "geometry": "GEOMETRY",
}
_HEADER = struct.Struct("<2sBBi")
_EMPTY = 0x10
_ENVELOPES = (0, 32, 48, 48, 64)
"""The bytes of a header's envelope, by its kind."""


class GeoPackage(Layout):
    """Tables that are layers; a geometry stands behind a header, and a table has a row number."""

    kind = "gpkg"
    own_names = (*Layout.own_names, "gpkg_", "rtree_")
    identity = (
        '"_ploti_fid" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT',
        '"_ploti_record_id" TEXT NOT NULL UNIQUE',
    )
    own_columns = ("_ploti_fid",)

    def declared(self, type_: str) -> str:
        """The type that a column is declared with."""
        return _TYPES.get(type_) or super().declared(type_)

    def prepare(self, connection: sqlite3.Connection) -> None:
        """Give it the functions that a layer's spatial index is kept by."""
        is_new = connection.execute("SELECT 1 FROM sqlite_schema").fetchone() is None
        if not is_new and connection.execute("PRAGMA application_id").fetchone() != (GEOPACKAGE,):
            raise SyncError("The file is a database, but no GeoPackage: sync to another file")
        connection.create_function("ST_IsEmpty", 1, _is_empty, deterministic=True)
        for place, name in enumerate(("ST_MinX", "ST_MaxX", "ST_MinY", "ST_MaxY")):
            edge = partial(_edge, place)
            connection.create_function(name, 1, edge, deterministic=True)

    def set_up(self, connection: sqlite3.Connection) -> None:
        """Make a new file a GeoPackage."""
        if connection.execute("SELECT 1 FROM sqlite_schema").fetchone() is None:
            connection.execute(f"PRAGMA application_id = {GEOPACKAGE}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        for statement in _SET_UP:
            connection.execute(statement)
        connection.executemany(_ADD_SYSTEM, _SYSTEMS)

    def pack(self, schema: Schema, rows: Iterable[Row]) -> Iterable[Row]:
        """Put a header before each geometry."""
        places, srs_id = _places(schema), _system(schema)[1]
        full, empty = (_HEADER.pack(b"GP", 0, 1 | flag, srs_id) for flag in (0, _EMPTY))
        for row in rows:
            cells = list(row)
            for place in places:
                geometry = cells[place]
                if isinstance(geometry, bytes):
                    cells[place] = (empty if wkb.is_empty(geometry) else full) + geometry
            yield tuple(cells)

    def unpack(self, schema: Schema, rows: list[Row]) -> list[Row]:
        """Cut the headers off; a row without one is left out."""
        return list(_unpacked_rows(rows, _places(schema)))

    def loading(self, connection: sqlite3.Connection, table: str, schema: Schema) -> None:
        """Let the index rest: it is made anew in the end."""
        if schema.geometry is not None:
            SpatialIndex(connection, table, schema.geometry.column).rest()

    def loaded(self, connection: sqlite3.Connection, table: str, schema: Schema) -> None:
        """Enter the table as a layer, with a spatial index."""
        self._enter(connection, table, schema)
        if schema.geometry is not None:
            SpatialIndex(connection, table, schema.geometry.column).make(_bounds)

    @contextmanager
    def changing(
        self, connection: sqlite3.Connection, table: str, schema: Schema, ids: Iterable[Row]
    ) -> Iterator[None]:
        """Keep the spatial index right, once for all rows."""
        column = schema.geometry.column if schema.geometry else ""
        index = SpatialIndex(connection, table, column)
        if not column or not index.is_there:
            yield
        else:
            index.rest()
            last = index.remove(ids)
            yield
            index.add(last, _bounds)
        self._enter(connection, table, schema)

    def _enter(self, connection: sqlite3.Connection, table: str, schema: Schema) -> None:
        """List the table as a layer, whose extent is to be found anew."""
        system = _system(schema)
        connection.execute(_ADD_SYSTEM, system)
        if schema.geometry is None:
            connection.execute(_ADD_TABLE, [table, "attributes", table, None])
            return
        connection.execute(_ADD_TABLE, [table, "features", table, system[1]])
        connection.execute(_ADD_COLUMN, [table, schema.geometry.column, system[1]])

    def dropping(self, connection: sqlite3.Connection, table: str) -> None:
        """Take the layer out of the lists, with the spatial index that somebody made for it."""
        for name in self._spatial_indexes(connection, table):
            connection.execute(f"DROP TABLE IF EXISTS {identifier(name)}")
        for listing in _NAMING_TABLES:
            if _has_table(connection, listing):
                connection.execute(
                    f"DELETE FROM {listing} WHERE lower(table_name) = lower(?)", [table]
                )

    def _spatial_indexes(self, connection: sqlite3.Connection, table: str) -> list[str]:
        if not _has_table(connection, "gpkg_extensions"):
            return []
        found = connection.execute(
            "SELECT 'rtree_' || table_name || '_' || column_name FROM gpkg_extensions"
            " WHERE extension_name = 'gpkg_rtree_index' AND lower(table_name) = lower(?)",
            [table],
        )
        return [str(name) for (name,) in found.fetchall()]


def _has_table(connection: sqlite3.Connection, name: str) -> bool:
    found = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", [name])
    return found.fetchone() is not None


def _system(schema: Schema) -> tuple[str, int, str, int, str]:
    """A reference system's line; without a definition, it is known by authority and number."""
    crs = schema.geometry.crs if schema.geometry else "OGC:CRS84"
    authority, _, code = crs.partition(":")
    if crs == "OGC:CRS84":
        return _SYSTEMS[2]
    if not code.isdigit():
        return _SYSTEMS[0]
    return (crs, int(code), authority, int(code), "undefined")


def _places(schema: Schema) -> list[int]:
    """Where a row, which begins with its record id, has geometries."""
    return [at for at, each in enumerate(schema.columns, start=1) if each.type == "geometry"]


def _unpacked_rows(rows: Iterable[Row], places: list[int]) -> Iterator[Row]:
    for row in rows:
        cells = list(row)
        try:
            for place in places:
                cells[place] = _unpacked(cells[place])
        except ValueError:
            continue
        yield tuple(cells)


def _unpacked(blob: object) -> bytes | None:
    """The WKB behind a header of any kind; raises ValueError where there is none."""
    if blob is None:
        return None
    if not isinstance(blob, bytes) or len(blob) < _HEADER.size or blob[:2] != b"GP":
        raise ValueError("it has no header of a GeoPackage")
    kind = blob[3] >> 1 & 7
    if kind >= len(_ENVELOPES):
        raise ValueError("its header is of no known kind")
    return blob[_HEADER.size + _ENVELOPES[kind] :]


def _is_empty(blob: object) -> int | None:
    try:
        geometry = _unpacked(blob)
        return None if geometry is None else int(wkb.is_empty(geometry))
    except ValueError:
        return None


def _bounds(blob: object) -> wkb.Bounds | None:
    """The rectangle round a stored geometry; what is none has none, as for GDAL."""
    try:
        geometry = _unpacked(blob)
        return None if geometry is None else wkb.bounds(geometry)
    except ValueError:
        return None


def _edge(place: int, blob: object) -> float | None:
    found = _bounds(blob)
    return None if found is None else found[place]
