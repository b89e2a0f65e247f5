"""The child's use case: the base's records under other ids, as a candidate with its id map."""

from __future__ import annotations

from typing import cast

from ploti.errors import SourceError
from ploti.model.admin import BuildStage
from ploti.model.version import Counts
from ploti.server.build import id_map
from ploti.server.build.candidate import (
    Base,
    Broken,
    BuildOrder,
    BuildResult,
    BuiltFile,
    Candidate,
    FileRole,
    Replacement,
    Unchanged,
)
from ploti.server.build.gone import gone_before, ids_of
from ploti.server.ports.building import Engine, Written
from ploti.server.service.build_version import export_files, schema_file
from ploti.server.service.list_removed import write_gone


def replace_content(
    order: BuildOrder, replacement: Replacement, base: Base, *, engine: Engine
) -> BuildResult:
    """A candidate with the base's records, unchanged but for ids, and the map that leads there."""
    engine.telling.begin(BuildStage.MATCHING, rows=base.row_count)
    try:
        _make_map(order, replacement, base, engine)
    except SourceError as error:
        return Broken(detail=error.detail)
    listed = engine.write_table(id_map.listed_sql(), role=FileRole.ID_MAP, name=id_map.MAP_FILE)
    if not listed.rows:
        return Unchanged(state_digest="")
    engine.telling.begin(BuildStage.WRITING)
    written = engine.write_again(id_map.renamed_sql(base), base=base, name="snapshot.parquet")
    return _candidate(order, base, written, listed, engine)


def _make_map(order: BuildOrder, replacement: Replacement, base: Base, engine: Engine) -> None:
    if replacement.column is not None:
        _check_column(replacement.column, base, engine)
    geometries = id_map.geometries_sql(base)
    box = engine.box(geometries) if geometries else None
    engine.run(id_map.map_sql(base, replacement, version=order.version, box=box))


def _check_column(column: str, base: Base, engine: Engine) -> None:
    if column not in {each.name for each in base.schema.columns}:
        raise SourceError(f"ids cannot be taken from {column}: there is no such column")
    sql = id_map.column_faults_sql(base, column)
    nulls, repeated = cast("tuple[int, int]", engine.rows(sql)[0])
    if nulls or repeated:
        raise SourceError(
            f"ids cannot be taken from {column}: {nulls} records have no value in it, and"
            f" {repeated} of its values are those of more than one"
        )


def _candidate(
    order: BuildOrder, base: Base, written: Written, listed: BuiltFile, engine: Engine
) -> Candidate:
    snapshot = f"{order.folder}/{written.snapshot.name}"
    gone = gone_before(base, since=order.gone_since, key=base.schema.key_columns)
    return Candidate(
        schema=base.schema,
        schema_change=None,
        row_count=base.row_count,
        counts=Counts(added=0, changed=0, removed=0),
        state_digest=written.buckets.content_digest,
        content_digest=written.buckets.content_digest,
        buckets=written.buckets.to_wire(),
        files=[
            *(written.snapshot, listed),
            engine.write_csv(id_map.listed_sql(), role=FileRole.ID_MAP, rows=listed.rows),
            *export_files(base.schema, order, engine, written=written),
            schema_file(base.schema, base, None, engine),
            *write_gone(engine, gone, back=ids_of(snapshot)),
        ],
        findings=[],
        key_fault=None,
    )
