"""The child's use case: an older version's content as a candidate that follows the current one."""

from __future__ import annotations

from typing import cast

from ploti.model.columns import RECORD_ID
from ploti.model.schema import SchemaVersion, compare
from ploti.model.version import Counts
from ploti.server.build import restored
from ploti.server.build.candidate import Base, BuildOrder, Candidate
from ploti.server.ports.building import Engine, NextVersion
from ploti.server.service.build_version import export_files, schema_file, with_measures


def restore_content(order: BuildOrder, content: Base, base: Base, *, engine: Engine) -> Candidate:
    """A candidate with the records of `content`, under their ids, measured against the base."""
    nothing = restored.no_rows_sql(content)
    step = NextVersion(
        base=content,
        recast=None,
        touched=restored.NO_PLACES_SQL,
        changed=nothing,
        added=nothing,
        added_rows=0,
        same_keys=False,
        with_changes=False,
    )
    written = engine.write_next(step, schema=content.schema, version=order.version)
    change = compare(
        base.schema, content.schema, base_version=SchemaVersion.parse(base.schema_version)
    )
    counts = engine.rows(restored.counts_sql(base, content, identity=RECORD_ID))[0]
    added, changed, removed = cast("tuple[int, ...]", counts)
    built = Candidate(
        schema=content.schema,
        schema_change=change,
        row_count=content.row_count,
        counts=Counts(added=added, changed=changed, removed=removed),
        state_digest=written.buckets.content_digest,
        content_digest=written.buckets.content_digest,
        buckets=written.buckets.to_wire(),
        files=[
            written.snapshot,
            *export_files(content.schema, order, engine, written=written),
            schema_file(content.schema, base, change, engine),
        ],
        findings=[],
        key_fault=None,
    )
    return with_measures(built, base, f"{order.folder}/{written.snapshot.name}", engine)
