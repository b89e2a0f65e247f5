"""The child's use case: build a candidate from the bytes of a source's state and the base."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec

from ploti.errors import SourceError
from ploti.model.schema import (
    FIRST,
    Geometry,
    Level,
    Schema,
    SchemaChange,
    SchemaDocument,
    SchemaVersion,
    compare,
)
from ploti.model.version import Counts
from ploti.model.wire import encode
from ploti.server.build import diff, exports, shape
from ploti.server.build.candidate import (
    Base,
    Broken,
    BuildOrder,
    BuildResult,
    BuiltFile,
    Candidate,
    FileRole,
    KeyFault,
    Unchanged,
)
from ploti.server.build.layout import EXPORTED, LISTED
from ploti.server.ports.building import Engine, NextVersion, Reader, Written
from ploti.server.service.measure_version import find_hints, measure
from ploti.server.service.shape_state import State, shape_state


def build_version(order: BuildOrder, *, readers: Sequence[Reader], engine: Engine) -> BuildResult:
    """Build what the order says; a source that cannot be read gives `Broken` with the reason."""
    try:
        state = shape_state(order, readers=readers, engine=engine)
        fault = _key_fault(state, engine)
        if fault:
            return _faulty(state, order.base, fault)
        if order.base is None:
            return _first(state, order, engine)
        return _next(state, order, order.base, engine)
    except SourceError as error:
        return Broken(detail=error.detail)


def _key_fault(state: State, engine: Engine) -> KeyFault | None:
    if not state.shape.key:
        return None
    nulls, repeated = diff.key_faults_sql(state.kept.relation, state.shape)
    null_rows = cast("int", engine.rows(nulls)[0][0])
    found = cast("list[tuple[str, int, int]]", engine.rows(repeated))
    return diff.make_key_fault(null_rows, found, key=state.shape.key)


def _faulty(state: State, base: Base | None, fault: KeyFault) -> Candidate:
    return Candidate(
        schema=state.schema,
        schema_change=_change(state, base),
        row_count=state.kept.rows,
        counts=None,
        state_digest=state.digest,
        content_digest=None,
        buckets=[],
        files=[],
        findings=state.findings,
        key_fault=fault,
    )


def _change(state: State, base: Base | None) -> SchemaChange | None:
    if base is None:
        return None
    return compare(base.schema, state.schema, base_version=SchemaVersion.parse(base.schema_version))


def _first(state: State, order: BuildOrder, engine: Engine) -> Candidate:
    sql = _ordered(state.kept.relation, state, engine)
    written = engine.write_first(sql, schema=state.schema, version=order.version)
    counts = Counts(added=state.kept.rows, changed=0, removed=0)
    return _candidate(state, order, engine, counts=counts, change=None, written=written)


def _ordered(rows: str, state: State, engine: Engine) -> str:
    """SQL of new records in the order of their numbers."""
    box = engine.box(diff.geometries_sql(rows)) if state.shape.geometry else None
    return diff.ordered_sql(rows, state.shape, box=box)


def _next(state: State, order: BuildOrder, base: Base, engine: Engine) -> Candidate | Unchanged:
    snapshot = diff.snapshot_relation(base.snapshot)
    engine.run(diff.diff_sql(state.kept.relation, snapshot, state.shape, base=base.schema))
    added, changed, removed = cast("tuple[int, ...]", engine.rows(diff.COUNTS_SQL)[0])
    counts = Counts(added=added, changed=changed, removed=removed)
    change = _change(state, base)
    if not counts.total and change is None and not order.always:
        return Unchanged(state_digest=state.digest)
    step = NextVersion(
        base=base,
        recast=shape.recast(state.shape, base.schema),
        touched=diff.TOUCHED_SQL,
        changed=diff.changed_sql(state.kept.relation, state.shape),
        added=_ordered(diff.added_rows(state.kept.relation), state, engine),
        added_rows=added,
        with_changes=not order.always and (change is None or change.level is not Level.MAJOR),
    )
    written = engine.write_next(step, schema=state.schema, version=order.version)
    built = _candidate(state, order, engine, counts=counts, change=change, written=written)
    return _measured(built, base, f"{order.folder}/{written.snapshot.name}", engine)


def _measured(built: Candidate, base: Base, snapshot: str, engine: Engine) -> Candidate:
    hints = find_hints(engine, built.schema_change, before=base.snapshot, after=snapshot)
    return msgspec.structs.replace(
        built,
        findings=[*built.findings, *hints],
        before=measure(engine, base.snapshot, rows=base.row_count),
        after=measure(engine, snapshot, rows=built.row_count),
    )


def _candidate(
    state: State,
    order: BuildOrder,
    engine: Engine,
    *,
    counts: Counts,
    change: SchemaChange | None,
    written: Written,
) -> Candidate:
    schema = _with_types(state.schema, written.geometry_types)
    files = [
        *(file for file in (written.snapshot, written.changes) if file),
        *_exports(schema, order, engine, written=written),
        _schema_file(schema, order.base, change, engine),
    ]
    return Candidate(
        schema=schema,
        schema_change=change,
        row_count=state.kept.rows,
        counts=counts,
        state_digest=state.digest,
        content_digest=written.buckets.content_digest,
        buckets=written.buckets.to_wire(),
        files=files,
        findings=state.findings,
        key_fault=None,
    )


def _with_types(schema: Schema, types: list[str]) -> Schema:
    if schema.geometry is None:
        return schema
    geometry = Geometry(column=schema.geometry.column, crs=schema.geometry.crs, types=types)
    return msgspec.structs.replace(schema, geometry=geometry)


def _exports(
    schema: Schema, order: BuildOrder, engine: Engine, *, written: Written
) -> list[BuiltFile]:
    """CSV of a dataset that is not large, and the changes as JSON where they are few."""
    files: list[BuiltFile] = []
    snapshot, changes = written.snapshot, written.changes
    if snapshot.rows <= EXPORTED:
        sql = exports.snapshot_csv_sql(f"{order.folder}/{snapshot.name}", schema)
        files.append(engine.write_csv(sql, role=FileRole.SNAPSHOT, rows=snapshot.rows))
        if changes:
            sql = exports.changes_csv_sql(f"{order.folder}/{changes.name}", schema)
            files.append(engine.write_csv(sql, role=FileRole.CHANGES, rows=changes.rows))
    if changes and changes.rows <= LISTED:
        files.append(engine.write_listing(changes, schema=schema))
    return files


def _schema_file(
    schema: Schema, base: Base | None, change: SchemaChange | None, engine: Engine
) -> BuiltFile:
    before = base.schema_version if base else str(FIRST)
    document = SchemaDocument(
        columns=schema.columns,
        key_columns=schema.key_columns,
        geometry=schema.geometry,
        schema_version=change.to if change else before,
        change=change,
    )
    return engine.write_text(encode(document), role=FileRole.SCHEMA, name="schema.json", rows=0)
