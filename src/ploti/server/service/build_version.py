"""The child's use case: build a candidate from the bytes of a source's state and the base."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import msgspec

from ploti.errors import SourceError
from ploti.model.admin import BuildStage
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
from ploti.server.build.gone import (
    Gone,
    and_also,
    going_rows,
    gone_before,
    ids_of,
    missing_rows,
    returned_sql,
)
from ploti.server.build.layout import EXPORTED, LISTED
from ploti.server.build.matching.question import Continuation
from ploti.server.ports.building import Engine, NextVersion, Reader, Written
from ploti.server.service.carry_ids import carry_ids
from ploti.server.service.list_removed import list_removed, write_gone
from ploti.server.service.match_state import Matched, Sides, count_differences, match_state
from ploti.server.service.measure_version import (
    count_between,
    find_hints,
    find_one_column,
    find_outside,
    measure,
)
from ploti.server.service.propose_links import show_links, write_links
from ploti.server.service.shape_state import State, shape_state


def build_version(order: BuildOrder, *, readers: Sequence[Reader], engine: Engine) -> BuildResult:
    """Build what the order says; a source that cannot be read gives `Broken` with the reason."""
    try:
        state = shape_state(order, readers=readers, engine=engine)
        engine.telling.begin(BuildStage.MATCHING, rows=state.kept.rows)
        work = _Work(state=state, order=order, engine=engine, fault=find_key_fault(state, engine))
        return _first(work) if order.base is None else _next(work, order.base)
    except SourceError as error:
        return Broken(detail=error.detail)


class _Work(NamedTuple):
    """What a build has once its state is shaped; `fault` is that of the key."""

    state: State
    order: BuildOrder
    engine: Engine
    fault: KeyFault | None

    @property
    def told_fault(self) -> KeyFault | None:
        """The fault of the key that is reviewed: repeated keys are none where they are numbered."""
        if self.fault is None or self.order.declaration.repeated_keys == "hold":
            return self.fault
        if not self.fault.null_rows:
            return None
        return diff.make_key_fault(self.fault.null_rows, (), key=self.state.shape.key)

    @property
    def shaped(self) -> str:
        """The relation of the state's rows."""
        return self.state.kept.relation

    def new_rows(self, relation: str, *, rows: int) -> diff.NewRows:
        """New records, so many, with the order of their numbers."""
        shape = self.state.shape
        box = self.engine.box(diff.geometries_sql(relation)) if shape.geometry else None
        return diff.new_rows(relation, shape, rows=rows, box=box, unique=self.fault is None)


def find_key_fault(state: State, engine: Engine) -> KeyFault | None:
    """The fault of a state's key; its repeated keys are in the table `SHARED` then."""
    if not state.shape.key:
        return None
    kept = state.kept
    engine.run(diff.shared_keys_sql(kept.relation, rows=kept.rows))
    nulls, repeated = diff.key_faults_sql(kept.relation, state.shape)
    some = any(kept.nulls[field] for field in state.shape.key_fields)
    null_rows = cast("int", engine.rows(nulls)[0][0]) if some else 0
    found = cast("list[tuple[str, int, int]]", engine.rows(repeated))
    return diff.make_key_fault(null_rows, found, key=state.shape.key)


def _first(work: _Work) -> Candidate:
    new = work.new_rows(work.shaped, rows=work.state.kept.rows)
    written = work.engine.write_first(new, schema=work.state.schema, version=work.order.version)
    counts = Counts(added=work.state.kept.rows, changed=0, removed=0)
    return _written(_candidate(work, change=None), work, written=written, counts=counts)


def _next(work: _Work, base: Base) -> Candidate | Unchanged:
    state, order, engine = work.state, work.order, work.engine
    start = base
    if order.matched_to:
        start = carry_ids(engine, order.matched_to, order.id_maps, name="matched_to.parquet")
    change = compare(
        base.schema, state.schema, base_version=SchemaVersion.parse(base.schema_version)
    )
    gone = _gone_lately(work, base, start)
    matched = match_state(_sides(work, start, gone), engine, fault=work.fault)
    candidate = _candidate(work, change=change, matched=matched)
    if matched.unmatched:
        return candidate
    differences = count_differences(engine)
    unchanged = Unchanged(state_digest=state.digest)
    if start is base and not differences.total and change is None and not order.always:
        return unchanged
    step = _step(work, start, added=differences.added, same_keys=matched.same_keys, change=change)
    written = engine.write_next(step, schema=state.schema, version=order.version)
    snapshot = f"{order.folder}/{written.snapshot.name}"
    counts = differences
    if start is not base:
        counts = count_between(engine, base, snapshot, schema=state.schema)
        if not counts.total and change is None and not order.always:
            return unchanged
    links = write_links(order, state, engine, matched=matched, unique=work.fault is None)
    removes = differences.removed > 0
    gone_files = _gone_files(work, base, snapshot, gone, removes=removes, matched=matched)
    files = [*gone_files, *links]
    built = _written(candidate, work, written=written, counts=counts, more=files)
    explained = find_one_column(engine, state, start, counts=differences)
    built = msgspec.structs.replace(
        built,
        findings=[*built.findings, *explained],
        proposed=show_links(state, start, snapshot, engine, matched=matched, links=links),
    )
    return with_measures(built, base, snapshot, engine)


def _sides(work: _Work, start: Base, gone: Gone | None) -> Sides:
    return Sides(
        state=work.state,
        base=start,
        gone=gone,
        continuation=Continuation(work.order.declaration.continuation),
        lifted=work.order.lifted,
    )


def _step(
    work: _Work, start: Base, *, added: int, same_keys: bool, change: SchemaChange | None
) -> NextVersion:
    order, shaped, shape_ = work.order, work.shaped, work.state.shape
    loaded = order.always or start is not order.base
    back = cast("int", work.engine.rows(diff.RETURNED_SQL)[0][0])
    return NextVersion(
        base=start,
        recast=shape.recast(shape_, start.schema),
        touched=diff.TOUCHED_SQL,
        changed=diff.changed_sql(shaped, shape_),
        returned=returned_sql(shaped, shape_),
        added=work.new_rows(diff.added_rows(shaped), rows=added - back),
        same_keys=same_keys,
        with_changes=not loaded and (change is None or change.level is not Level.MAJOR),
    )


def _gone_lately(work: _Work, base: Base, start: Base) -> Gone | None:
    """The records that may come back; those that only the base has too, where another is matched.

    What the base alone has counts as removed by the version that was released again (S-21).
    """
    key = work.state.shape.key
    if list(key) != start.schema.key_columns:
        return None
    gone = gone_before(base, since=work.order.gone_since, key=key)
    if start is base:
        return gone
    missing = missing_rows(base.snapshot, start.snapshot)
    version = work.order.version
    removed = list_removed(work.engine, base, missing, key=key, version=version, table="missing")
    return and_also(gone, removed, key=key)


def _gone_files(
    work: _Work, base: Base, snapshot: str, gone: Gone | None, *, removes: bool, matched: Matched
) -> list[BuiltFile]:
    """The list of records removed lately that this version carries on, if there are any."""
    key, order, engine = work.state.shape.key, work.order, work.engine
    version = order.version
    if order.matched_to is None:
        going = going_rows(base.snapshot)
        removed = removes and list_removed(
            engine,
            base,
            going,
            key=key,
            version=version,
            whole_keys=matched.same_keys,
            sharing=matched.sharing,
        )
        return write_gone(engine, and_also(gone, removed or None, key=key), back=diff.RETURNED)
    listed = gone_before(base, since=order.gone_since, key=key)
    missing = missing_rows(base.snapshot, snapshot)
    removed = list_removed(engine, base, missing, key=key, version=version)
    return write_gone(engine, and_also(listed, removed, key=key), back=ids_of(snapshot))


def _candidate(
    work: _Work, *, change: SchemaChange | None, matched: Matched | None = None
) -> Candidate:
    """What is known of a candidate before any of its files is written."""
    return Candidate(
        schema=work.state.schema,
        schema_change=change,
        row_count=work.state.kept.rows,
        counts=None,
        state_digest=work.state.digest,
        content_digest=None,
        buckets=[],
        files=[],
        findings=[*work.state.findings, *(matched.findings if matched else ())],
        key_fault=work.told_fault,
        unmatched=matched.unmatched if matched else None,
        limit=matched.limit if matched else None,
    )


def _written(
    candidate: Candidate,
    work: _Work,
    *,
    written: Written,
    counts: Counts,
    more: Sequence[BuiltFile] = (),
) -> Candidate:
    order, engine = work.order, work.engine
    schema = _with_types(candidate.schema, written.geometry_types)
    files = [
        *(file for file in (written.snapshot, written.changes) if file),
        *export_files(schema, order, engine, written=written),
        schema_file(schema, order.base, candidate.schema_change, engine),
        *more,
    ]
    snapshot = written.snapshot
    outside = find_outside(
        engine, schema, snapshot=f"{order.folder}/{snapshot.name}", rows=snapshot.rows
    )
    return msgspec.structs.replace(
        candidate,
        schema=schema,
        findings=[*candidate.findings, *outside],
        counts=counts,
        content_digest=written.buckets.content_digest,
        buckets=written.buckets.to_wire(),
        files=files,
    )


def with_measures(built: Candidate, base: Base, snapshot: str, engine: Engine) -> Candidate:
    """The candidate with what its review needs to know of both snapshots."""
    before = measure(engine, base.snapshot, rows=base.row_count)
    after = measure(engine, snapshot, rows=built.row_count)
    sides = (base.snapshot, before), (snapshot, after)
    hints = find_hints(engine, built.schema_change, before=sides[0], after=sides[1])
    return msgspec.structs.replace(
        built, findings=[*built.findings, *hints], before=before, after=after
    )


def _with_types(schema: Schema, types: list[str]) -> Schema:
    if schema.geometry is None:
        return schema
    geometry = Geometry(column=schema.geometry.column, crs=schema.geometry.crs, types=types)
    return msgspec.structs.replace(schema, geometry=geometry)


def export_files(
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


def schema_file(
    schema: Schema, base: Base | None, change: SchemaChange | None, engine: Engine
) -> BuiltFile:
    """The file that tells a version's schema and its change."""
    before = base.schema_version if base else str(FIRST)
    document = SchemaDocument(
        columns=schema.columns,
        key_columns=schema.key_columns,
        geometry=schema.geometry,
        schema_version=change.to if change else before,
        change=change,
    )
    return engine.write_text(encode(document), role=FileRole.SCHEMA, name="schema.json", rows=0)
