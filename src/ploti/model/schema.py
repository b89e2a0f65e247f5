"""A dataset's schema, and what distinguishes one version's from the one before."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from ploti.model.wire import Value

_DECIMAL = re.compile(r"decimal\(([1-9]|[12][0-9]|3[0-8]),(0|[1-9]|[12][0-9]|3[0-8])\)")

TYPES = frozenset(
    {
        "string",
        "int64",
        "float64",
        "boolean",
        "date",
        "timestamp",
        "datetime",
        "json",
        "geometry",
    }
)
"""The column types, `decimal(p,s)` apart."""


def is_type(text: str) -> bool:
    """Whether the text names a column type; decimals have up to 38 digits, s at most p."""
    found = _DECIMAL.fullmatch(text)
    return text in TYPES or (found is not None and int(found[2]) <= int(found[1]))


class Level(StrEnum):
    """MAJOR breaks a consumer, MINOR does not."""

    MAJOR = "MAJOR"
    MINOR = "MINOR"


class SchemaVersion(NamedTuple):
    """`MAJOR.MINOR`; the first schema is 1.0."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> SchemaVersion:
        """Read `2.1`; raises ValueError for anything else."""
        major, _, minor = text.partition(".")
        return cls(int(major), int(minor))

    def after(self, level: Level) -> SchemaVersion:
        """The number that follows a change of this level."""
        if level is Level.MAJOR:
            return SchemaVersion(self.major + 1, 0)
        return SchemaVersion(self.major, self.minor + 1)

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


FIRST = SchemaVersion(1, 0)


class Column(Value, kw_only=True):
    """A column of a dataset's records; `source_name` is what the source calls it."""

    name: str
    type: str
    nullable: bool = True
    description: str = ""
    source_name: str = ""


class Geometry(Value, kw_only=True):
    """The geometry column, its CRS (`EPSG:4326`) and the geometry types that occur, sorted."""

    column: str
    crs: str
    types: list[str]


class Schema(Value, kw_only=True):
    """The columns in order, the key, and the geometry of a dataset's records."""

    columns: list[Column]
    key_columns: list[str]
    geometry: Geometry | None

    def column(self, name: str) -> Column:
        """The column of this name; raises KeyError."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)


class AddedColumn(Value, kw_only=True):
    """A column that the schema before had not, or a removed one that it had."""

    name: str
    type: str


class RetypedColumn(Value, kw_only=True):
    """A column whose type is another one now."""

    name: str
    from_: str
    to: str


class KeyChange(Value, kw_only=True):
    """The key columns before and now."""

    from_: list[str]
    to: list[str]


class GeometryChange(Value, kw_only=True):
    """The geometry column and CRS before and now."""

    from_: Geometry | None
    to: Geometry | None


class SchemaChange(Value, kw_only=True):
    """One version's own change, measured from the last released schema (R-036)."""

    from_: str
    to: str
    level: Level
    added: list[AddedColumn]
    removed: list[AddedColumn]
    nullable: list[str]
    described: list[str]
    retyped: list[RetypedColumn]
    key_columns: KeyChange | None
    geometry: GeometryChange | None


class SchemaDocument(Schema, kw_only=True):
    """A version's schema as the API and the schema file give it."""

    schema_version: str
    change: SchemaChange | None


def compare(base: Schema, new: Schema, *, base_version: SchemaVersion) -> SchemaChange | None:
    """The change from `base` (of version `base_version`) to `new`; None where there is none.

    MAJOR: a column removed or retyped, the key columns changed, the geometry's column or CRS
    changed. MINOR: columns added, a column that may now be null, a description. Order and the
    geometry types that occur make no schema version.
    """
    before = {column.name: column for column in base.columns}
    after = {column.name: column for column in new.columns}
    both = [(before[name], after[name]) for name in after if name in before]
    removed = [_listed(column) for name, column in before.items() if name not in after]
    retyped = [
        RetypedColumn(name=a.name, from_=a.type, to=b.type) for a, b in both if a.type != b.type
    ]
    added = [_listed(column) for name, column in after.items() if name not in before]
    nullable = [a.name for a, b in both if b.nullable and not a.nullable]
    described = [a.name for a, b in both if a.description != b.description]
    key = _key_change(base, new)
    geometry = _geometry_change(base, new)
    if removed or retyped or key or geometry:
        level = Level.MAJOR
    elif added or nullable or described:
        level = Level.MINOR
    else:
        return None
    return SchemaChange(
        from_=str(base_version),
        to=str(base_version.after(level)),
        level=level,
        added=added,
        removed=removed,
        nullable=nullable,
        described=described,
        retyped=retyped,
        key_columns=key,
        geometry=geometry,
    )


def _listed(column: Column) -> AddedColumn:
    return AddedColumn(name=column.name, type=column.type)


def _key_change(base: Schema, new: Schema) -> KeyChange | None:
    if base.key_columns == new.key_columns:
        return None
    return KeyChange(from_=base.key_columns, to=new.key_columns)


def _geometry_change(base: Schema, new: Schema) -> GeometryChange | None:
    def place(geometry: Geometry | None) -> tuple[str, str] | None:
        return None if geometry is None else (geometry.column, geometry.crs)

    if place(base.geometry) == place(new.geometry):
        return None
    return GeometryChange(from_=base.geometry, to=new.geometry)
