"""The child's use case: CSV of a version that was released without, since it is large."""

from __future__ import annotations

from ploti.server.build import exports
from ploti.server.build.candidate import Exported, ExportOrder, FileRole
from ploti.server.ports.building import Engine

_SQL = {
    FileRole.SNAPSHOT: exports.snapshot_csv_sql,
    FileRole.CHANGES: exports.changes_csv_sql,
}


def export_content(order: ExportOrder, *, engine: Engine) -> Exported:
    """Write a CSV of each file of the order; only of snapshots and changes there is one."""
    return Exported(
        files=[
            engine.write_csv(
                _SQL[file.role](file.path, order.schema), role=file.role, rows=file.rows
            )
            for file in order.files
        ]
    )
