"""Part of a build: a source's state read, typed over all its rows, and kept in its final shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from ploti.errors import SourceError
from ploti.model.admin import Finding
from ploti.model.schema import Schema
from ploti.server.build import diff, shape
from ploti.server.build.candidate import Base, BuildOrder
from ploti.server.build.columns import PlannedColumn, check_key, plan_columns
from ploti.server.build.shape import Shape
from ploti.server.ports.building import Engine, Kept, RawTable, Reader
from ploti.server.sources import formats


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
    check_key(order.declaration, base)
    raw = _read(order, readers, engine)
    columns = plan_columns(raw, declaration=order.declaration, base=base)
    types = _sampled_types(columns, raw, engine)
    planned = Shape(
        columns=tuple(columns),
        types=tuple(types[column.name] for column in columns),
        geometry=shape.plan_geometry(raw, declaration=order.declaration, columns=columns),
        key=tuple(order.declaration.key),
    )
    shaped, kept, faulty = _keep(planned, order, raw, engine)
    return State(
        shape=shaped,
        kept=kept,
        schema=shape.make_schema(shaped, nulls=kept.nulls, base=base, types=()),
        digest=diff.state_digest(shaped, engine.rows(diff.state_sql(kept.relation))[0]),
        findings=[*raw.findings, *shape.point_findings(faulty)],
    )


def _read(order: BuildOrder, readers: Sequence[Reader], engine: Engine) -> RawTable:
    reader = formats.choose(
        readers,
        declared=order.declaration.source.format,
        name=order.source_name,
        head=engine.head(order.source, formats.HEAD),
    )
    return reader.read(order.source, declaration=order.declaration, folder=order.folder)


def _sampled_types(
    columns: Sequence[PlannedColumn], raw: RawTable, engine: Engine
) -> dict[str, str]:
    """The types of the first rows; where these are all null, of all rows."""
    open_ = [column for column in columns if not column.settled and len(column.types) > 1]
    types = {column.name: column.types[0] for column in columns}
    if open_:
        sample = engine.rows(shape.evidence_sql(raw.relation, open_, rows=shape.SAMPLE))[0]
        evidence = dict(zip(open_, shape.read_evidence(open_, sample), strict=True))
        types |= {column.name: shape.choose_type(column, evidence[column]) for column in open_}
        unseen = [column for column in open_ if not evidence[column].texts]
        types |= _proved_types(unseen, raw, engine)
    return types


def _proved_types(
    columns: Sequence[PlannedColumn], raw: RawTable, engine: Engine
) -> dict[str, str]:
    """The first type of each column that holds its texts in all rows."""
    if not columns:
        return {}
    found = engine.rows(shape.evidence_sql(raw.relation, columns, rows=None))[0]
    evidence = shape.read_evidence(columns, found)
    return {
        column.name: shape.choose_type(column, seen)
        for column, seen in zip(columns, evidence, strict=True)
    }


def _keep(
    planned: Shape, order: BuildOrder, raw: RawTable, engine: Engine
) -> tuple[Shape, Kept, int]:
    """The state kept in types that hold all rows; a wrong guess costs a second reading."""
    base = order.base.schema if order.base else None
    kept = engine.keep(shape.shape_sql(raw.relation, planned, base=base), name="shaped")
    rows, faulty, *masks = cast(
        "tuple[int, ...]", engine.rows(shape.proof_sql(kept.relation, planned))[0]
    )
    if raw.rows not in {None, rows}:
        raise SourceError(f"only {rows} of the source's {raw.rows} rows could be read")
    wrong = shape.misfits(planned, masks)
    if not wrong:
        return planned, kept, faulty
    again = _proved_types(_widened(wrong, order, engine), raw, engine)
    types = [
        again.get(column.name, type_)
        for column, type_ in zip(planned.columns, planned.types, strict=True)
    ]
    shaped = planned._replace(types=tuple(types))
    kept = engine.keep(shape.shape_sql(raw.relation, shaped, base=base), name="retyped")
    return shaped, kept, faulty


def _widened(
    columns: Sequence[PlannedColumn], order: BuildOrder, engine: Engine
) -> list[PlannedColumn]:
    """The columns without the types that cannot hold what the base has in them."""
    return [
        column
        if order.base is None or _holds_base(column, order.base, engine)
        else column.without_double()
        for column in columns
    ]


def _holds_base(column: PlannedColumn, base: Base, engine: Engine) -> bool:
    if not column.may_become_double:
        return True
    sql = shape.is_exact_sql(diff.snapshot_relation(base.snapshot), column.name)
    return bool(engine.rows(sql)[0][0])
