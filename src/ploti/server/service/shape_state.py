"""Part of a build: a source's state read, typed over all its rows, and kept in its final shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from ploti.errors import SourceError
from ploti.model.admin import BuildStage, Finding
from ploti.model.schema import Schema
from ploti.server.build import diff, retyping, shape
from ploti.server.build.candidate import Base, BuildOrder
from ploti.server.build.cleaning import clean, emptied
from ploti.server.build.columns import (
    PlannedColumn,
    key_findings,
    key_there,
    missing_points,
    missing_points_findings,
    plan_columns,
)
from ploti.server.build.local_times import unclear_findings, unclear_sql
from ploti.server.build.shape import Shape, ShapedGeometry
from ploti.server.ports.building import Engine, Kept, RawTable, Reader
from ploti.server.sources import formats
from ploti.server.sources.declaration import check_format
from ploti.server.sources.system_columns import without_system

_AT_ONCE = 20
"""Columns whose types one query tells: of 125 columns it took 4 GB of memory to be planned."""


class State(NamedTuple):
    """A source's state, shaped and kept; `digest` tells it from others whatever ids records get."""

    shape: Shape
    kept: Kept
    schema: Schema
    digest: str
    findings: list[Finding]


def shape_state(order: BuildOrder, *, readers: Sequence[Reader], engine: Engine) -> State:
    """Read the order's source and keep it in the types that hold all its values.

    Raises SourceError where it cannot be read, or does not have what the declaration names.
    """
    base = order.base.schema if order.base else None
    engine.telling.begin(BuildStage.READING)
    raw = emptied(clean(_read(order, readers, engine), order.declaration), base)
    engine.telling.begin(BuildStage.TYPING, rows=raw.rows)
    planned = plan_columns(raw, declaration=order.declaration, base=base)
    columns = _sampled(planned, raw, engine)
    lost = [] if raw.geometry else missing_points(columns, order.declaration, base)
    geometry = shape.plan_geometry(
        raw, declaration=order.declaration, columns=columns, missing=lost
    )
    shaped, kept, faulty = _keep(columns, geometry, order, raw, engine)
    shape.check_tolerances(shaped)
    return State(
        shape=shaped,
        kept=kept,
        schema=shape.make_schema(shaped, nulls=kept.nulls, base=base, types=()),
        digest=diff.state_digest(shaped, engine.rows(diff.state_sql(kept.relation, shaped))[0]),
        findings=[
            *raw.findings,
            *key_findings(columns, order.declaration, base),
            *missing_points_findings(lost),
            *shape.system_findings(raw, order.declaration),
            *shape.point_findings(faulty),
            *shape.nan_findings(_count_nan(shaped, raw, engine)),
            *_time_findings(shaped, raw, engine),
        ],
    )


def _count_nan(shaped: Shape, raw: RawTable, engine: Engine) -> int:
    sql = shape.nan_sql(raw.relation, shaped)
    return cast("int", engine.rows(sql)[0][0]) if sql else 0


def _time_findings(shaped: Shape, raw: RawTable, engine: Engine) -> list[Finding]:
    """What there is to tell of local date-times that became instants."""
    local = [times for column in shaped.columns if (times := column.local_times(column.type))]
    return [
        finding
        for times in local
        for finding in unclear_findings(times, engine.rows(unclear_sql(raw.relation, times))[0])
    ]


def _read(order: BuildOrder, readers: Sequence[Reader], engine: Engine) -> RawTable:
    reader = formats.choose(
        readers,
        declared=order.declaration.source.format,
        name=order.source_name,
        head=engine.head(order.source, formats.HEAD),
    )
    if reader.format in formats.FORMATS:
        check_format(order.declaration, reader.format)
    raw = reader.read(order.source, declaration=order.declaration, folder=order.folder)
    return without_system(raw, order.declaration)


def _sampled(
    columns: Sequence[PlannedColumn], raw: RawTable, engine: Engine
) -> list[PlannedColumn]:
    """The columns whose types a few rows tell more of, without those that they rule out."""
    new = [column for column in columns if not column.settled]
    for rows in shape.SAMPLES:
        new = _look(new, raw.sample or raw.relation, engine, rows=rows)
    return _replace(columns, new)


def _look(
    columns: Sequence[PlannedColumn], relation: str, engine: Engine, *, rows: int | None
) -> list[PlannedColumn]:
    """The columns without the types that the rows looked at rule out."""
    open_ = [column for column in columns if len(column.types) > 1]
    looked: list[PlannedColumn] = []
    for start in range(0, len(open_), _AT_ONCE):
        some = open_[start : start + _AT_ONCE]
        found = engine.rows(shape.evidence_sql(relation, some, rows=rows))[0]
        looked += shape.ruled_out(some, found)
    return _replace(columns, looked)


def _replace(
    columns: Sequence[PlannedColumn], others: Sequence[PlannedColumn]
) -> list[PlannedColumn]:
    by_name = {column.name: column for column in others}
    return [by_name.get(column.name, column) for column in columns]


def _keep(
    columns: Sequence[PlannedColumn],
    geometry: ShapedGeometry | None,
    order: BuildOrder,
    raw: RawTable,
    engine: Engine,
) -> tuple[Shape, Kept, int]:
    """The state kept in types that hold all its rows; a wrong guess costs a second go."""
    base = order.start.schema if order.start else None
    there = {column.name for column in columns}
    planned = Shape(
        columns=tuple(columns),
        geometry=geometry,
        key=key_there(columns, order.declaration, order.base.schema if order.base else None),
        ignored=shape.ignored_columns(order.declaration),
        tolerances=tuple(
            (name, most) for name, most in order.declaration.compare.items() if name in there
        ),
    )
    kept = engine.keep(shape.shape_sql(raw.relation, planned, base=base), name="shaped")
    rows, faulty, *masks = cast(
        "tuple[int, ...]", engine.rows(shape.proof_sql(kept.relation, planned))[0]
    )
    if raw.rows not in {None, rows}:
        raise SourceError(f"only {rows} of the source's {raw.rows} rows could be read")
    wrong = shape.misfits(planned, masks)
    if not wrong:
        return shape.without_empty(planned, nulls=kept.nulls, rows=rows), kept, faulty
    wider = [_wider(column, order.start, raw, engine) for column in wrong]
    if mended := _mend(planned, wrong, wider, kept, engine, base=base):
        shaped, kept = mended
    else:
        wider = _look(wider, raw.relation, engine, rows=None)
        shaped = planned._replace(columns=tuple(_replace(columns, wider)))
        kept = engine.keep(shape.shape_sql(raw.relation, shaped, base=base), name="retyped")
    return shape.without_empty(shaped, nulls=kept.nulls, rows=rows), kept, faulty


def _wider(
    column: PlannedColumn, base: Base | None, raw: RawTable, engine: Engine
) -> PlannedColumn:
    """A column with the types that may hold the values of both states, from the narrowest on."""
    if column.fixed:
        unfit, example = engine.rows(shape.unfit_sql(raw.relation, column))[0]
        raise SourceError(
            f"the column {column.name} is declared {column.types[0]}, which {unfit} of its"
            f" values are not, such as '{example}'"
        )
    types = column.types[1:]
    if types[0] == "float64" and base and not _holds_base(column, base, engine):
        types = types[1:]
    return column._replace(types=types)


def _mend(
    planned: Shape,
    wrong: Sequence[PlannedColumn],
    wider: Sequence[PlannedColumn],
    kept: Kept,
    engine: Engine,
    *,
    base: Schema | None,
) -> tuple[Shape, Kept] | None:
    """The kept table in wider types, by the texts kept with it; None where these do not tell."""
    mending = retyping.plan_mending(kept.relation, planned, wrong, wider)
    if mending is None:
        return None
    texts = f"(FROM {mending.texts} WHERE misfits IS NOT NULL)"
    mending = mending._replace(wider=tuple(_look(mending.wider, texts, engine, rows=None)))
    told = retyping.tell_all_sql(mending, planned)
    all_told, *filled = engine.rows(told)[0] if told else (False,)
    if not all_told:
        return None
    by_name = {column.name: column.types for column in mending.wider}
    columns = [c._replace(types=by_name.get(c.name, c.types)) for c in planned.columns]
    shaped = planned._replace(columns=tuple(columns))
    nulls = dict(kept.nulls)
    for column, count in zip(wrong, cast("list[int]", filled), strict=True):
        nulls[planned.field(column.name)] -= count
    relation = retyping.mended(mending, shaped, base=base)
    return shaped, kept._replace(relation=relation, nulls=nulls)


def _holds_base(column: PlannedColumn, base: Base, engine: Engine) -> bool:
    """Whether doubles hold the base's whole numbers exactly."""
    sql = shape.is_exact_sql(diff.snapshot_relation(base.snapshot), column.name)
    return bool(engine.rows(sql)[0][0])
