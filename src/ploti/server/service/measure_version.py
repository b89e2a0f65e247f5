"""Part of a build: what a review needs to know of a version beside its counts."""

from __future__ import annotations

from typing import cast

import msgspec

from ploti.model.admin import Finding
from ploti.model.schema import Level, Schema, SchemaChange
from ploti.model.version import Counts
from ploti.server.build import hints, restored
from ploti.server.build.candidate import Base
from ploti.server.build.diff import snapshot_relation
from ploti.server.build.measures import Measures, measures_sql, read_measures
from ploti.server.build.outside import outside_findings, outside_sql
from ploti.server.ports.building import Engine
from ploti.server.release.thresholds import ENOUGH
from ploti.server.service.shape_state import State


def measure(engine: Engine, path: str, *, rows: int) -> Measures:
    """The measures of the snapshot at a path, out of its metadata."""
    return read_measures(engine.rows(measures_sql(path)), rows=rows)


def find_outside(engine: Engine, schema: Schema, *, snapshot: str, rows: int) -> list[Finding]:
    """What there is to tell of a snapshot's geometries that lie nowhere."""
    if schema.geometry is None:
        return []
    sql = outside_sql(snapshot, schema.geometry, box=measure(engine, snapshot, rows=rows).box)
    if sql is None:
        return []
    count, boxes = cast("tuple[int, list[str]]", engine.rows(sql)[0])
    return outside_findings(count, boxes, schema.geometry)


def count_between(engine: Engine, base: Base, snapshot: str, *, schema: Schema) -> Counts:
    """The records added, changed and removed, by their ids, from the base to another snapshot."""
    after = msgspec.structs.replace(base, schema=schema, snapshot=snapshot)
    added, changed, removed = cast(
        "tuple[int, ...]", engine.rows(restored.counts_sql(base, after))[0]
    )
    return Counts(added=added, changed=changed, removed=removed)


def find_one_column(engine: Engine, state: State, base: Base, *, counts: Counts) -> list[Finding]:
    """A hint where a column that moves in every row makes most of the records changed."""
    if counts.changed < ENOUGH or counts.changed < base.row_count / 2:
        return []
    snapshot = snapshot_relation(base.snapshot)
    sql = hints.alone_sql(state.kept.relation, snapshot, state.shape, base=base.schema)
    return hints.alone_finding(engine.rows(sql)) if sql else []


def find_hints(
    engine: Engine,
    change: SchemaChange | None,
    *,
    before: tuple[str, Measures],
    after: tuple[str, Measures],
) -> list[Finding]:
    """What would end the review of a MAJOR change, as far as two snapshots and measures tell."""
    if change is None or change.level is not Level.MAJOR:
        return []
    (old, were), (new, are) = before, after
    filled = hints.filled_since(change, were, are)
    written = hints.written_otherwise(change)
    renames = hints.renames_sql(change, before=old, after=new, filled=filled, told=written)
    findings = hints.written_finding(written)
    findings += hints.rename_findings(engine.rows(renames)) if renames else []
    for column in change.retyped:
        misfits = hints.misfits_sql(column, after=new)
        if misfits:
            findings += hints.null_finding(column, engine.rows(misfits))
    return findings
