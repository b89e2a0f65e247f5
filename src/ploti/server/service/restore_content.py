"""The child's use case: an older version's content as a candidate that follows the current one."""

from __future__ import annotations

from ploti.model.admin import BuildStage
from ploti.model.schema import SchemaVersion, compare
from ploti.server.build import restored
from ploti.server.build.candidate import Base, BuildOrder, BuiltFile, Candidate
from ploti.server.build.gone import and_also, gone_before, ids_of, missing_rows
from ploti.server.ports.building import Engine, NextVersion
from ploti.server.service.build_version import export_files, schema_file, with_measures
from ploti.server.service.carry_ids import carry_ids
from ploti.server.service.list_removed import list_removed, write_gone
from ploti.server.service.measure_version import count_between


def restore_content(order: BuildOrder, content: Base, base: Base, *, engine: Engine) -> Candidate:
    """A candidate with the records of `content`, under their ids, measured against the base.

    Ids that were replaced since are the ones that they were replaced by.
    """
    engine.telling.begin(BuildStage.MATCHING, rows=content.row_count)
    content = carry_ids(engine, content, order.id_maps, name="restored.parquet")
    step = NextVersion(
        base=content,
        recast=None,
        touched=restored.NO_PLACES_SQL,
        changed=restored.no_changes_sql(content),
        returned=restored.no_records_sql(content),
        added=restored.no_new_rows(content),
        same_keys=False,
        with_changes=False,
    )
    written = engine.write_next(step, schema=content.schema, version=order.version)
    change = compare(
        base.schema, content.schema, base_version=SchemaVersion.parse(base.schema_version)
    )
    counts = count_between(engine, base, content.snapshot, schema=content.schema)
    built = Candidate(
        schema=content.schema,
        schema_change=change,
        row_count=content.row_count,
        counts=counts,
        state_digest=written.buckets.content_digest,
        content_digest=written.buckets.content_digest,
        buckets=written.buckets.to_wire(),
        files=[
            written.snapshot,
            *export_files(content.schema, order, engine, written=written),
            schema_file(content.schema, base, change, engine),
            *_gone_files(order, content, base, engine),
        ],
        findings=[],
        key_fault=None,
    )
    return with_measures(built, base, f"{order.folder}/{written.snapshot.name}", engine)


def _gone_files(order: BuildOrder, content: Base, base: Base, engine: Engine) -> list[BuiltFile]:
    """What the base has and the content has not is removed; what only the content has is back."""
    key = content.schema.key_columns
    gone = gone_before(base, since=order.gone_since, key=key)
    missing = missing_rows(base.snapshot, content.snapshot)
    removed = list_removed(engine, base, missing, key=key, version=order.version)
    return write_gone(engine, and_also(gone, removed, key=key), back=ids_of(content.snapshot))
