"""The spatial index of a GeoPackage's layer (its extension `gpkg_rtree_index`)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator

from ploti.model.columns import RECORD_ID
from ploti.model.sql import identifier
from ploti.sync.destinations.sqlite.wkb import Bounds

FID = "_ploti_fid"
_EXTENSIONS = """
    CREATE TABLE IF NOT EXISTS gpkg_extensions (
        table_name TEXT,
        column_name TEXT,
        extension_name TEXT NOT NULL,
        definition TEXT NOT NULL,
        scope TEXT NOT NULL,
        CONSTRAINT ge_tce UNIQUE (table_name, column_name, extension_name)
    )
"""
_LISTED = """
    INSERT OR REPLACE INTO gpkg_extensions VALUES (?, ?, 'gpkg_rtree_index',
        'http://www.geopackage.org/spec120/#extension_rtree', 'write-only')
"""
_FILLED, _EMPTY = "({0} NOT NULL AND NOT ST_IsEmpty({0}))", "({0} IS NULL OR ST_IsEmpty({0}))"
_BOX = "ST_MinX(NEW.{c}), ST_MaxX(NEW.{c}), ST_MinY(NEW.{c}), ST_MaxY(NEW.{c})"
_PUT = f"INSERT OR REPLACE INTO {{index}} VALUES (NEW.{{i}}, {_BOX})"
_SAME, _OTHER = "OLD.{i} = NEW.{i}", "OLD.{i} <> NEW.{i}"
_NEW_FILLED, _NEW_EMPTY = _FILLED.format("NEW.{c}"), _EMPTY.format("NEW.{c}")
_TRIGGERS = {
    "insert": ("INSERT ON {t}", _NEW_FILLED, _PUT),
    "update2": (
        "UPDATE OF {c} ON {t}",
        f"{_SAME} AND {_NEW_EMPTY}",
        "DELETE FROM {index} WHERE id = OLD.{i}",
    ),
    "update4": (
        "UPDATE ON {t}",
        f"{_OTHER} AND {_NEW_EMPTY}",
        "DELETE FROM {index} WHERE id IN (OLD.{i}, NEW.{i})",
    ),
    "update5": (
        "UPDATE ON {t}",
        f"{_OTHER} AND {_NEW_FILLED}",
        f"DELETE FROM {{index}} WHERE id = OLD.{{i}}; {_PUT}",
    ),
    "update6": (
        "UPDATE OF {c} ON {t}",
        f"{_SAME} AND {_NEW_FILLED} AND {_FILLED.format('OLD.{c}')}",
        _PUT,
    ),
    "update7": (
        "UPDATE OF {c} ON {t}",
        f"{_SAME} AND {_NEW_FILLED} AND {_EMPTY.format('OLD.{c}')}",
        _PUT,
    ),
    "delete": ("DELETE ON {t}", "OLD.{c} NOT NULL", "DELETE FROM {index} WHERE id = OLD.{i}"),
}
"""When each fires, on what condition, and what it does: kept by whoever edits the layer."""


class SpatialIndex:
    """The index of one column; while rows come by the thousand, it is kept without its triggers."""

    def __init__(self, connection: sqlite3.Connection, table: str, column: str) -> None:
        self._connection = connection
        self._table = table
        self._column = column
        self._name = f"rtree_{table}_{column}"

    @property
    def is_there(self) -> bool:
        """Whether the layer has one."""
        found = self._connection.execute(
            "SELECT 1 FROM sqlite_schema WHERE name = ?", [self._name]
        ).fetchone()
        return found is not None

    def make(self, bounds: Callable[[object], Bounds | None]) -> None:
        """Make it anew over all rows."""
        self.rest()
        self._connection.execute(f"DROP TABLE IF EXISTS {identifier(self._name)}")
        self._connection.execute(
            f"CREATE VIRTUAL TABLE {identifier(self._name)} USING rtree(id, minx, maxx, miny, maxy)"
        )
        self._connection.execute(_EXTENSIONS)
        self._connection.execute(_LISTED, [self._table, self._column])
        self.add(0, bounds)

    def rest(self) -> None:
        """Let no trigger fire until `add`."""
        found = self._connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name GLOB ?",
            [f"{self._name}_*"],
        ).fetchall()
        for (name,) in found:
            self._connection.execute(f"DROP TRIGGER {identifier(str(name))}")

    def remove(self, record_ids: Iterable[tuple[object, ...]]) -> int:
        """Take records out; gives the last row number, after which new rows come."""
        self._connection.executemany(
            f"DELETE FROM {identifier(self._name)} WHERE id = (SELECT {FID}"
            f" FROM {identifier(self._table)} WHERE {identifier(RECORD_ID)} = ?)",
            record_ids,
        )
        found = self._connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = ?", [self._table]
        ).fetchone()
        return int(found[0]) if found else 0

    def add(self, after: int, bounds: Callable[[object], Bounds | None]) -> None:
        """Take the rows after a row number in, and have the triggers fire again."""
        self._connection.executemany(
            f"INSERT INTO {identifier(self._name)} VALUES (?, ?, ?, ?, ?)",
            self._boxes(after, bounds),
        )
        names = {
            "t": identifier(self._table),
            "c": identifier(self._column),
            "i": identifier(FID),
            "index": identifier(self._name),
        }
        for name, (fires, condition, action) in _TRIGGERS.items():
            text = f"AFTER {fires} WHEN {condition} BEGIN {action}; END".format(**names)
            trigger = identifier(f"{self._name}_{name}")
            self._connection.execute(f"CREATE TRIGGER {trigger} {text}")

    def _boxes(
        self, after: int, bounds: Callable[[object], Bounds | None]
    ) -> Iterator[tuple[object, ...]]:
        rows = self._connection.execute(
            f"SELECT {FID}, {identifier(self._column)} FROM {identifier(self._table)}"
            f" WHERE {FID} > {after:d}"
        )
        for number, geometry in rows:
            box = bounds(geometry)
            if box is not None:
                yield (number, *box)
