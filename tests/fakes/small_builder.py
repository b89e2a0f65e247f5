"""A builder for tests of the use cases: real small versions of CSV states, built in process."""

import asyncio
import csv
import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from ploti.model import wire
from ploti.model.admin import BuildProgress
from ploti.model.schema import Column, Level, Schema, SchemaVersion, compare
from ploti.model.version import BucketDigest, Counts
from ploti.server.build.candidate import (
    Broken,
    BuildOrder,
    BuildResult,
    BuiltFile,
    Candidate,
    Exported,
    ExportOrder,
    FileRole,
    KeyFault,
    Looked,
    LookOrder,
    Unchanged,
)
from ploti.server.build.progress import Tell, ignore

Rows = dict[str, dict[str, str]]


class SmallBuilder:
    """Builds CSV states whose first column is the key; every value is a text.

    Of a build it tells its `progress`. While `gate` is closed a build waits in it, and `building`
    tells that one does. While it is `large` it makes neither CSV nor listings, and an export of
    which it says how it is `broken` is.
    """

    def __init__(self) -> None:
        self.orders: list[BuildOrder] = []
        self.exports: list[ExportOrder] = []
        self.broken: str | None = None
        self.large = False
        self.progress: list[BuildProgress] = []
        self.building = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    @asynccontextmanager
    async def folder(self) -> AsyncIterator[str]:
        with tempfile.TemporaryDirectory() as folder:
            yield folder

    async def build(self, order: BuildOrder, *, tell: Tell = ignore) -> BuildResult:
        self.orders.append(order)
        for progress in self.progress:
            tell(progress)
        self.building.set()
        await self.gate.wait()
        built = build(order)
        if self.large and isinstance(built, Candidate):
            files = [file for file in built.files if file.format not in {"csv", "ndjson"}]
            return msgspec.structs.replace(built, files=files)
        return built

    async def export(self, order: ExportOrder) -> Exported | Broken:
        self.exports.append(order)
        self.building.set()
        await self.gate.wait()
        if self.broken:
            return Broken(detail=self.broken)
        return export(order)

    async def look(self, order: LookOrder) -> Looked | Broken:
        return Broken(detail=f"what {order.dataset_id} removed is not looked at here")


def export(order: ExportOrder) -> Exported:
    folder = Path(order.folder)
    return Exported(
        files=[
            _file(folder, file.role, "csv", Path(file.path).read_bytes(), file.rows)
            for file in order.files
        ]
    )


def build(order: BuildOrder) -> BuildResult:
    table = list(csv.reader(Path(order.source).read_text().splitlines()))
    if not table or len({len(row) for row in table}) > 1:
        return Broken(detail="The rows are not of one length")
    names, records = table[0], table[1:]
    schema = Schema(
        columns=[Column(name=name, type="string") for name in names],
        key_columns=order.declaration.key,
        geometry=None,
    )
    base = order.base
    change = base and compare(
        base.schema, schema, base_version=SchemaVersion.parse(base.schema_version)
    )
    repeated = [key for key, times in Counter(row[0] for row in records).items() if times > 1]
    if repeated:
        fault = KeyFault(null_rows=0, repeated_keys=len(repeated), examples=repeated)
        return _candidate(
            schema, change, records, key_fault=fault, unmatched="keys are all it matches by"
        )
    rows = {row[0]: dict(zip(names, row, strict=True)) for row in records}
    before: Rows = json.loads(Path(base.snapshot).read_text()) if base else {}
    changed = [key for key in rows.keys() & before.keys() if _differ(rows[key], before[key])]
    counts = Counts(
        added=len(rows.keys() - before.keys()),
        changed=len(changed),
        removed=len(before.keys() - rows.keys()),
    )
    if base and change is None and counts.total == 0 and not order.always:
        return Unchanged(state_digest=_digest(sorted(records)))
    loads = base is None or order.always or (change is not None and change.level is Level.MAJOR)
    files = _write(Path(order.folder), rows, before, schema, loads=loads)
    return _candidate(schema, change, records, counts=counts, files=files)


def _differ(new: dict[str, str], old: dict[str, str]) -> bool:
    return any(new.get(name, "") != old.get(name, "") for name in new.keys() | old.keys())


def _candidate(schema: Schema, change: Any, records: list[list[str]], **more: Any) -> Candidate:
    found: dict[str, Any] = {"counts": None, "files": [], "key_fault": None} | more
    return Candidate(
        schema=schema,
        schema_change=change,
        row_count=len(records),
        state_digest=_digest(sorted(records)),
        content_digest=f"d1:{_digest(sorted(records))[:32]}" if found["files"] else None,
        buckets=[BucketDigest(rows=0, digest="0" * 32) for _ in range(256)],
        findings=[],
        **found,
    )


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def _write(
    folder: Path, rows: Rows, before: Rows, schema: Schema, *, loads: bool
) -> list[BuiltFile]:
    whole = json.dumps(rows).encode()
    files = [
        _file(folder, FileRole.SNAPSHOT, "parquet", whole, len(rows)),
        _file(folder, FileRole.SNAPSHOT, "csv", whole, len(rows)),
        _file(folder, FileRole.SCHEMA, "json", wire.encode(schema), 0),
    ]
    if not loads:
        lines = _listing(rows, before)
        text = b"".join(line + b"\n" for line in lines)
        files += [
            _file(folder, role, format, text, len(lines))
            for role, format in (
                (FileRole.CHANGES, "parquet"),
                (FileRole.CHANGES, "csv"),
                (FileRole.LISTING, "ndjson"),
            )
        ]
    return files


def _listing(rows: Rows, before: Rows) -> list[bytes]:
    lines = []
    for key in sorted(rows.keys() | before.keys()):
        new, old = rows.get(key), before.get(key)
        if new and old and not _differ(new, old):
            continue
        change = "added" if old is None else "changed" if new else "removed"
        op = "upsert" if new else "delete"
        lines.append(
            json.dumps(
                {"op": op, "change": change, "recordId": f"rec_{key}", "record": new}
            ).encode()
        )
    return lines


def _file(folder: Path, role: FileRole, format: str, content: bytes, rows: int) -> BuiltFile:
    name = f"{role}.{format}"
    (folder / name).write_bytes(content)
    return BuiltFile(
        role=role,
        format=format,
        name=name,
        rows=rows,
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )
