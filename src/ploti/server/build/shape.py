"""Stage: a source's state in its final types, as SQL.

The shaped table has a column `c0`, `c1`, … for each column, `g` for the geometry as WKB, `kh` and
`ch`, which are hashes of the key and of all columns, masks of the texts that did not fit, and with
them `misfits`, a list of texts.
Types are tried while reading and proved by the masks, so that a right guess reads once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ploti.errors import SourceError
from ploti.model.admin import Finding
from ploti.model.schema import Column, Geometry, Schema
from ploti.model.sql import identifier, literal
from ploti.server.build import texts
from ploti.server.build.columns import PlannedColumn, find_column
from ploti.server.build.names import GEOMETRY
from ploti.server.sources.declaration import Declaration
from ploti.server.sources.raw import RawGeometry, RawKind, RawTable
from ploti.server.sources.reference_systems import one_name

SAMPLES = (1_000, 20_000)
"""Rows that may rule a type out before all are read: few rule out most, more of them the rest."""

_BITS = 60
_EXACT = 1 << 53


class ShapedGeometry(NamedTuple):
    """The geometry of a state: SQL of its canonical WKB, and of whether coordinates are none."""

    wkb: str
    faulty: str
    crs: str


class Shape(NamedTuple):
    """The columns of a state, its geometry and its key.

    A change of an `ignored` column alone makes no record changed; two values of a column in
    `tolerances` are the same up to that difference.
    """

    columns: tuple[PlannedColumn, ...]
    geometry: ShapedGeometry | None
    key: tuple[str, ...]
    ignored: frozenset[str] = frozenset()
    tolerances: tuple[tuple[str, float], ...] = ()

    @property
    def unhashed(self) -> frozenset[str]:
        """The columns that are not in the hash of a row."""
        return self.ignored | {name for name, _ in self.tolerances}

    def field(self, name: str) -> str:
        """What the shaped table calls the column of this name."""
        if self.geometry and name == GEOMETRY:
            return "g"
        return f"c{[column.name for column in self.columns].index(name)}"

    @property
    def key_fields(self) -> list[str]:
        """The key's columns in the shaped table."""
        return [self.field(name) for name in self.key]

    @property
    def fields(self) -> dict[str, str]:
        """What the shaped table calls each column, by name, the geometry last."""
        named = {column.name: f"c{number}" for number, column in enumerate(self.columns)}
        return named | ({GEOMETRY: "g"} if self.geometry else {})

    @property
    def named_types(self) -> dict[str, str]:
        """The type of each column, by name, the geometry last."""
        named = {column.name: column.type for column in self.columns}
        return named | ({GEOMETRY: "geometry"} if self.geometry else {})


def plan_geometry(
    raw: RawTable,
    *,
    declaration: Declaration,
    columns: Sequence[PlannedColumn],
    missing: Sequence[str] = (),
) -> ShapedGeometry | None:
    """The geometry that the format brings, in the dataset's system, or that two columns make.

    Of points whose columns are `missing` there is none. Raises SourceError where nobody says in
    which system the source's own is.
    """
    precision = f"{declaration.precision or 0.0!r}::DOUBLE"
    points = declaration.geometry
    if raw.geometry:
        wkb = f"ploti_geometry({_moved(raw.geometry, declaration)}, {precision})"
        return ShapedGeometry(wkb=wkb, faulty="false", crs=declaration.system)
    if not points:
        return None
    if missing:
        return ShapedGeometry(wkb="NULL::BLOB", faulty="false", crs=declaration.system)
    x, y = (
        identifier(find_column(columns, name).field) for name in (points.longitude, points.latitude)
    )
    numbers = [f"TRY_CAST({text} AS DOUBLE)" for text in (x, y)]
    faulty = [
        f"({text} IS NOT NULL AND NOT coalesce(isfinite({number}), false))"
        for text, number in zip((x, y), numbers, strict=True)
    ]
    return ShapedGeometry(
        wkb=f"ploti_point({', '.join(numbers)}, {precision})",
        faulty=" OR ".join(faulty),
        crs=declaration.system,
    )


def _moved(geometry: RawGeometry, declaration: Declaration) -> str:
    """SQL of the source's geometry in the dataset's system."""
    field = identifier(geometry.field)
    stated = geometry.crs or declaration.crs
    if stated is None:
        raise SourceError(
            "the source does not say its reference system: name it in the declaration's"
            " geometry.crs"
        )
    if one_name(stated) == declaration.system:
        return field
    return f"ploti_moved({field}, {literal(stated)}, {literal(declaration.system)})"


def system_findings(raw: RawTable, declaration: Declaration) -> list[Finding]:
    """What the declaration alone says of the geometry's reference system."""
    if raw.geometry is None or raw.geometry.crs is not None:
        return []
    message = f"the source does not say its reference system: read as {declaration.system}"
    return [Finding(reason=None, kind="reference_system", message=message)]


def ignored_columns(declaration: Declaration) -> frozenset[str]:
    """The columns whose change alone is none; of points made of such, or near, ones, theirs too."""
    points = declaration.geometry
    loose = {*declaration.ignore_changes, *declaration.compare}
    made = {GEOMETRY} if points and {points.longitude, points.latitude} <= loose else set()
    return frozenset({*declaration.ignore_changes, *made})


def check_tolerances(shape: Shape) -> None:
    """Raises SourceError where a difference is declared for a column that is no number."""
    for name, _ in shape.tolerances:
        type_ = shape.named_types[name]
        if type_ not in {"int64", "float64"} and not type_.startswith("decimal"):
            raise SourceError(f"compare names {name}, which is {type_}: only numbers are near")


def evidence_sql(relation: str, columns: Sequence[PlannedColumn], *, rows: int | None) -> str:
    """SQL of one row: for each column and each of its types, whether the type holds every text."""
    wanted = [
        f"coalesce(bool_and({column.holds(type_)}) FILTER ({identifier(column.field)} IS NOT NULL),"
        " true)"
        for column in columns
        for type_ in column.types
    ]
    limit = f" LIMIT {rows}" if rows else ""
    return f"SELECT {', '.join(wanted)} FROM (SELECT * FROM {relation}{limit})"


def ruled_out(columns: Sequence[PlannedColumn], found: Sequence[object]) -> list[PlannedColumn]:
    """The columns without the types that the row of `evidence_sql` rules out."""
    fits = iter(found)
    return [
        column._replace(types=tuple(type_ for type_ in column.types if next(fits)))
        for column in columns
    ]


def unfit_sql(relation: str, column: PlannedColumn) -> str:
    """SQL of one row: how many texts the column's first type does not hold, and one of them."""
    field = identifier(column.field)
    return (
        f"SELECT count(*), min({field}) FROM {relation}"
        f" WHERE {field} IS NOT NULL AND NOT {column.holds(column.type)}"
    )


def shape_sql(relation: str, shape: Shape, *, base: Schema | None) -> str:
    """SQL of the shaped table."""
    values = [
        f"{column.value(column.type)} AS c{number}" for number, column in enumerate(shape.columns)
    ]
    if shape.geometry:
        values += [f"{shape.geometry.wkb} AS g", f"{shape.geometry.faulty} AS faulty"]
    masks = _masks(shape)
    values += [f"{mask} AS m{number}" for number, mask in enumerate(masks)]
    kept = {f"t{number}": column for number, column in enumerate(keeps_texts(shape))}
    values += [f"{identifier(column.field)} AS {name}" for name, column in kept.items()]
    given = f"SELECT {', '.join(values)} FROM {relation}"
    fields = [*hashes(shape, base)]
    if not kept:
        return f"SELECT *, {', '.join(fields)} FROM ({given})"
    misfit = " OR ".join(f"m{number} <> 0" for number in range(len(masks)))
    fields.append(f"CASE WHEN {misfit} THEN [{', '.join(kept)}] END AS misfits")
    return f"SELECT * EXCLUDE ({', '.join(kept)}), {', '.join(fields)} FROM ({given})"


def hashes(shape: Shape, base: Schema | None) -> list[str]:
    """SQL of the hash of a shaped row, and of its key's."""
    return [
        f"hash({', '.join(hashed_fields(shape, base))}) AS ch",
        *([f"hash({', '.join(shape.key_fields)}) AS kh"] if shape.key else []),
    ]


def keeps_texts(shape: Shape) -> list[PlannedColumn]:
    """The columns whose texts the shaped table keeps in the rows where one did not fit."""
    return [
        column
        for column in shape.columns
        if not column.fixed and any(tells_texts(column, wider) for wider in column.types[1:])
    ]


def tells_texts(column: PlannedColumn, wider: str) -> bool:
    """Whether a value of the column's type tells what its text is in a wider one.

    Doubles tell whole numbers of few digits; text is told where one form alone was found.
    """
    if wider == "float64":
        return column.type == "int64"
    found = column.kind in {RawKind.TEXT, RawKind.STRING} and not column.settled
    return wider == "string" and found and column.type in {"int64", "boolean", "date"}


def _masks(shape: Shape) -> list[str]:
    """Each a number whose bits say which columns' texts do not fit."""
    bits = [
        f"CASE WHEN {identifier(column.field)} IS NOT NULL AND NOT {column.holds(column.type)}"
        f" THEN {1 << number % _BITS} ELSE 0 END"
        if column.type != "string"
        else None
        for number, column in enumerate(shape.columns)
    ]
    masks = [bits[start : start + _BITS] for start in range(0, len(bits), _BITS)]
    return [f"({' + '.join(filter(None, mask)) or '0'})::BIGINT" for mask in masks]


def proof_sql(shaped: str, shape: Shape) -> str:
    """SQL of one row: the rows, those whose coordinates are none, and each mask of misfits."""
    masks = [
        f"coalesce(bit_or(m{number}), 0)" for number in range((len(shape.columns) - 1) // _BITS + 1)
    ]
    faulty = "count(*) FILTER (faulty)" if shape.geometry else "0"
    return f"SELECT count(*), {faulty}, {', '.join(masks)} FROM {shaped}"


def misfits(shape: Shape, masks: Sequence[int]) -> list[PlannedColumn]:
    """The columns with a text that their type does not hold."""
    return [
        column
        for number, column in enumerate(shape.columns)
        if masks[number // _BITS] >> number % _BITS & 1
    ]


def without_empty(shape: Shape, *, nulls: Mapping[str, int], rows: int) -> Shape:
    """The shape with each new column that has no value at all as a `string`."""
    columns = [
        column._replace(types=("string",))
        if not column.settled and nulls[shape.field(column.name)] == rows
        else column
        for column in shape.columns
    ]
    return shape._replace(columns=tuple(columns))


def hashed_fields(shape: Shape, base: Schema | None) -> list[str]:
    """What a row of the state is told by: its columns, and null for each that only the base has.

    `base_hashed` gives the same for the base. A column that one side has not reads as null there.
    """
    fields = [field for name, field in shape.fields.items() if name not in shape.unhashed]
    for column in _hashed(base, shape):
        type_ = shape.named_types.get(column.name)
        if type_ is None:
            fields.append("NULL::VARCHAR")
        elif type_ != column.type:
            fields.append("false")
    return fields or ["1"]


def _hashed(base: Schema | None, shape: Shape) -> list[Column]:
    columns = base.columns if base else []
    return [column for column in columns if column.name not in shape.unhashed]


def base_hashed(shape: Shape, base: Schema) -> list[str]:
    """The base's side of `hashed_fields`, over the columns of its snapshot."""
    known = {column.name: column for column in base.columns}
    fields = [
        base_value(known.get(name), type_)
        for name, type_ in shape.named_types.items()
        if name not in shape.unhashed
    ]
    for column in _hashed(base, shape):
        type_ = shape.named_types.get(column.name)
        if type_ is None:
            fields.append(f"{identifier(column.name)}::VARCHAR")
        elif type_ != column.type:
            own = identifier(column.name)
            fields.append(f"({own} IS NOT NULL AND {base_value(column, type_)} IS NULL)")
    return fields or ["1"]


def base_value(column: Column | None, type_: str) -> str:
    """SQL of a base column's value in another type; null where the base has no such column."""
    sql_type = texts.sql_type(type_)
    if column is None:
        return f"NULL::{sql_type}"
    own = identifier(column.name)
    if column.type == type_:
        return own
    if type_ == "string":
        return texts.text_of(column.type, own)
    if type_ == "json":
        return texts.value("json", texts.text_of(column.type, own))
    return f"TRY_CAST({own} AS {sql_type})"


def recast(shape: Shape, base: Schema) -> dict[str, str] | None:
    """SQL of each column over the base's snapshot; None where all columns are the base's own."""
    known = {column.name: column for column in base.columns}
    if shape.named_types == {column.name: column.type for column in base.columns}:
        return None
    return {name: base_value(known.get(name), type_) for name, type_ in shape.named_types.items()}


def point_findings(faulty: int) -> list[Finding]:
    """What reading found of coordinates: rows that got no geometry though they have texts."""
    if not faulty:
        return []
    message = f"no geometry, since a longitude or latitude is no number: {faulty} of the rows"
    return [Finding(reason=None, kind="coordinates", message=message)]


def nan_sql(relation: str, shape: Shape) -> str | None:
    """SQL of one row: how many numbers of the state are NaN; None where none can be."""
    fields = [column.field for column in shape.columns if column.may_be_nan(column.type)]
    if not fields:
        return None
    counts = [f"count(*) FILTER ({identifier(field)} = 'nan')" for field in fields]
    return f"SELECT {' + '.join(counts)} FROM {relation}"


def nan_findings(count: int) -> list[Finding]:
    """What reading found of NaN."""
    if not count:
        return []
    message = f"NaN stood in place of a number and reads as null: {count} of them"
    return [Finding(reason=None, kind="not_a_number", message=message)]


def is_exact_sql(snapshot: str, column: str) -> str:
    """SQL of whether doubles hold all whole numbers of a base's column exactly."""
    own = identifier(column)
    return f"SELECT coalesce(bool_and({own} BETWEEN -{_EXACT} AND {_EXACT}), true) FROM {snapshot}"


def make_schema(
    shape: Shape, *, nulls: Mapping[str, int], base: Schema | None, types: Sequence[str]
) -> Schema:
    """The version's schema; `nulls` are those of each column of the shaped table.

    A column that once may be null always may, and a description stays where the source says
    nothing. `types` are the geometry types that occur.
    """
    known = {column.name: column for column in base.columns} if base else {}
    sources = {column.name: column.source_name for column in shape.columns}
    described = {column.name: column.description for column in known.values()}
    described |= {c.name: c.description for c in shape.columns if c.description is not None}
    columns = [
        Column(
            name=name,
            type=type_,
            nullable=nulls[shape.fields[name]] > 0 or (name in known and known[name].nullable),
            description=described.get(name, ""),
            source_name=sources.get(name, ""),
        )
        for name, type_ in shape.named_types.items()
    ]
    return Schema(
        columns=columns, key_columns=list(shape.key), geometry=_geometry(shape, base, types)
    )


def _geometry(shape: Shape, base: Schema | None, types: Sequence[str]) -> Geometry | None:
    """The geometry; a system that has two names keeps the one that it had in the base."""
    if shape.geometry is None:
        return None
    crs = shape.geometry.crs
    if base and base.geometry and one_name(base.geometry.crs) == crs:
        crs = base.geometry.crs
    return Geometry(column=GEOMETRY, crs=crs, types=sorted(types))
