"""Stage: the columns of a state: their names and order, and the types that each may have.

Types are sticky (domain, step 3): a column of the base is read with the base's type, and only a
value that does not fit makes it another, the narrowest that holds the values of both states.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from ploti.errors import SourceError
from ploti.model.admin import Finding
from ploti.model.event import HoldReason
from ploti.model.schema import Column, Schema
from ploti.model.sql import identifier
from ploti.server.build import texts
from ploti.server.build.local_times import LocalTimes
from ploti.server.build.names import GEOMETRY, bare, name_columns, renamed, trimmed
from ploti.server.sources.declaration import Declaration
from ploti.server.sources.raw import RawColumn, RawKind, RawTable

_DATES = ("date", "timestamp", "datetime")
_FOUND: dict[RawKind, tuple[str, ...]] = {
    RawKind.TEXT: ("int64", "float64", "boolean", *_DATES, "string"),
    RawKind.STRING: (*_DATES, "string"),
    RawKind.INTEGER: ("int64", "string"),
    RawKind.NUMBER: ("float64", "string"),
    RawKind.BOOLEAN: ("boolean", "string"),
    RawKind.JSON: ("json", "string"),
}
_WIDER = {"int64": ("float64", "string")}
_SHOWN = 40


class PlannedColumn(NamedTuple):
    """A column of the state: `types` are those that it may have, from the narrowest on.

    The first type that holds every one of its texts is the column's. `settled` says that its type
    is the base's, declared, or stated by the source, so that a value may be written in another
    way; `fixed`, that staff declared it and a text that does not fit is a fault. `zone` is that of
    local date-times, which are instants then. `description` is the source's, None where it says
    nothing.
    """

    name: str
    source_name: str
    kind: RawKind
    field: str
    types: tuple[str, ...]
    settled: bool
    fixed: bool
    zone: str | None = None
    description: str | None = None

    @property
    def type(self) -> str:
        """The type that it has as things stand."""
        return self.types[0]

    def text(self, type_: str) -> str:
        """SQL of the text that is read as this type."""
        field = identifier(self.field)
        if self.kind is RawKind.JSON and type_ != "json":
            own = f"json_extract_string({field}, '$')"
            return f"CASE WHEN {field}[1] = '\"' THEN {own} ELSE {field} END"
        if self.kind is RawKind.STRING and type_ == "json":
            return f"to_json({field})::VARCHAR"
        times = self.local_times(type_)
        return times.instant if times else field

    def local_times(self, type_: str) -> LocalTimes | None:
        """Its texts that are local date-times, where this type makes instants of them."""
        if not self.zone or type_ != "timestamp" or self.kind is RawKind.JSON:
            return None
        return LocalTimes(name=self.name, field=self.field, zone=self.zone)

    def value(self, type_: str) -> str:
        """SQL of the typed, canonical value."""
        typed = texts.value(type_, self.text(type_))
        return f"nullif({typed}, 'nan'::DOUBLE)" if self.may_be_nan(type_) else typed

    def may_be_nan(self, type_: str) -> bool:
        """Whether its source may hold NaN, which reads as null, and numbers without end."""
        return self.kind is RawKind.NUMBER and type_ == "float64"

    def holds(self, type_: str) -> str:
        """SQL of whether the type holds the text, which is not null, exactly."""
        found = self.kind in {RawKind.TEXT, RawKind.STRING} and not self.settled
        fits = (texts.found if found else texts.kept)(type_, self.text(type_))
        if self.may_be_nan(type_):
            return f"({identifier(self.field)} IN ('nan', 'inf', '-inf') OR {fits})"
        return fits


def plan_columns(
    raw: RawTable, *, declaration: Declaration, base: Schema | None
) -> list[PlannedColumn]:
    """The state's columns, geometry apart: the base's in its order, then the new ones.

    Raises SourceError where the key, or a declared column, is not among them.
    """
    spatial = raw.geometry is not None or declaration.geometry is not None
    names = name_columns(
        renamed([column.source_name for column in raw.columns], declaration.rename),
        taken=[GEOMETRY] if spatial else [],
    )
    _check_known(declaration, names, base)
    known = {column.name: column for column in base.columns} if base else {}
    planned = [
        _plan(column, name, declaration=declaration, base=known.get(name))
        for name, column in zip(names, raw.columns, strict=True)
    ]
    places = {name: place for place, name in enumerate(known)}
    return sorted(planned, key=lambda column: places.get(column.name, len(places)))


def _plan(
    raw: RawColumn, name: str, *, declaration: Declaration, base: Column | None
) -> PlannedColumn:
    declared = declaration.columns.get(name)
    if declared:
        types: tuple[str, ...] = (declared,)
    elif base:
        types = (base.type, *_WIDER.get(base.type, ("string",) if base.type != "string" else ()))
    elif raw.type:
        types = (raw.type, *(("string",) if raw.type != "string" else ()))
    elif name in declaration.key and raw.kind is RawKind.TEXT:
        types = ("string",)
    else:
        types = _FOUND[raw.kind]
    if declaration.timezone and not declared:
        types = tuple(dict.fromkeys("timestamp" if t == "datetime" else t for t in types))
    return PlannedColumn(
        name=name,
        source_name=trimmed(raw.source_name),
        kind=raw.kind,
        field=raw.field,
        types=types,
        settled=bool(declared or base or raw.type),
        fixed=bool(declared),
        zone=declaration.timezone,
        description=raw.description,
    )


def _check_known(declaration: Declaration, names: Sequence[str], base: Schema | None) -> None:
    there = f"it has {_listed(names)}"
    if base and len(names) == 1 and _is_strange(names[0], base):
        raise SourceError(f"the source has none of the columns of the version before: {there}")
    missing = [name for name in declaration.key if name not in names]
    if missing and not _was_known(missing, base):
        raise SourceError(f"the source has no column {_listed(missing)}, which is the key; {there}")
    known = {*names, *(column.name for column in base.columns)} if base else set(names)
    compared = (*declaration.ignore_changes, *declaration.compare)
    strange = [name for name in (*declaration.columns, *compared) if name not in known]
    if strange:
        raise SourceError(f"the source has no column {_listed(strange)}, as declared; {there}")


def _is_strange(name: str, base: Schema) -> bool:
    """Whether a state's one column says that it is another text, such as that of an error."""
    known = [column.name for column in base.columns]
    return len(known) > 2 and name not in known and base.geometry is None


def _was_known(missing: Sequence[str], base: Schema | None) -> bool:
    """Whether key columns that a state lacks are its loss, for review, and no slip of the pen.

    They were there before, or a version without a key was released since.
    """
    if base is None:
        return False
    before = {column.name for column in base.columns}
    return not base.key_columns or before.issuperset(missing)


def missing_key(declaration: Declaration, there: Iterable[str]) -> str | None:
    """What to say of a declared key that is not among the columns; None where it is."""
    names = list(there)
    missing = [name for name in declaration.key if name not in names]
    if not missing:
        return None
    alike = [name for name in names if bare(name) == bare(missing[0]) != ""]
    near = alike or get_close_matches(missing[0], names, n=1)
    hint = f": did you mean {near[0]}?" if near else ""
    return f"the source has no column {_listed(missing)}, which the declaration has as key{hint}"


def key_findings(
    columns: Sequence[PlannedColumn], declaration: Declaration, base: Schema | None
) -> list[Finding]:
    """A key that is declared and not there holds a version, until staff release one without it."""
    said = missing_key(declaration, [column.name for column in columns])
    if said is None or base is None:
        return []
    message = f"{said[0].upper()}{said[1:]}"
    subject = ", ".join(declaration.key)
    return [
        Finding(reason=HoldReason.DATA_CHECK, kind="key_missing", subject=subject, message=message)
    ]


def missing_points(
    columns: Iterable[PlannedColumn], declaration: Declaration, base: Schema | None
) -> list[str]:
    """The columns of points that a state has lost, for review, and no slip of the pen.

    They were there before, or a version without any point was released since.
    """
    if base is None or base.geometry is None or declaration.geometry is None:
        return []
    points = declaration.geometry
    names = {column.name for column in columns}
    missing = [name for name in (points.longitude, points.latitude) if name not in names]
    before = {column.name for column in base.columns}
    return missing if before.issuperset(missing) or not base.geometry.types else []


def missing_points_findings(missing: Sequence[str]) -> list[Finding]:
    """Coordinates that are not there hold a version, until staff release one without them."""
    if not missing:
        return []
    named = _listed(missing)
    message = f"The source has no column {named}, of which points are made: they would all be null"
    return [
        Finding(reason=HoldReason.DATA_CHECK, kind="points_missing", subject=named, message=message)
    ]


def key_there(
    columns: Sequence[PlannedColumn], declaration: Declaration, base: Schema | None
) -> tuple[str, ...]:
    """The declared key, or none where the state lacks a column of it.

    Its order is the base's where its columns are: another order makes no other key.
    """
    if not {column.name for column in columns}.issuperset(declaration.key):
        return ()
    before = base.key_columns if base else []
    return tuple(before if sorted(before) == sorted(declaration.key) else declaration.key)


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more


def find_column(columns: Sequence[PlannedColumn], name: str) -> PlannedColumn:
    """The column of this name; raises SourceError naming the columns that are there."""
    for column in columns:
        if column.name == name:
            return column
    there = _listed(column.name for column in columns)
    raise SourceError(f"the source has no column {name}; it has {there}")
