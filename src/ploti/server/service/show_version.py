"""Versions as the list of versions and a version's own address show them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from ploti.errors import Expired, Fault, InvalidInput, Unavailable
from ploti.model.version import File, Files, Version, VersionSummary
from ploti.model.wire import Instant
from ploti.server.build.candidate import FileRole
from ploti.server.ports.outside import Blobs
from ploti.server.ports.rows import FileRow, VersionRow

LINKS_LAST = timedelta(hours=1)

_MAKING = 5
"""Seconds after which to ask again for what is being made."""

_PARQUET = frozenset({"geoparquet", "parquet"})
_FORMATS: Mapping[str, frozenset[str]] = {"geoparquet": _PARQUET, "csv": frozenset({"csv"})}
_MADE_ON_DEMAND = {FileRole.SNAPSHOT, FileRole.CHANGES}
_ENDINGS = {"geoparquet": "parquet"}


class NotMade(Unavailable):
    """A version's CSV, which a job makes now that it was asked for."""

    def __init__(self, version: FileRow) -> None:
        super().__init__(
            f"The CSV of version {version.version} of {version.dataset_id} is being made",
            retry_after=_MAKING,
        )
        self.dataset_id = version.dataset_id
        self.version = version.version


def without_csv(files: list[FileRow]) -> list[FileRow]:
    """The snapshot and the changes of which there is no CSV."""
    there = {file.role for file in files if file.format in _FORMATS["csv"]}
    wanted = _MADE_ON_DEMAND - there
    return [file for file in files if file.format in _PARQUET and file.role in wanted]


def show_summary(version: VersionRow) -> VersionSummary:
    """A released version as its list shows it."""
    return VersionSummary(**_summary(version))


def show_version(
    version: VersionRow, files: list[FileRow], *, format: str, blobs: Blobs, now: Instant
) -> Version:
    """A released version with links to its files in a format (`geoparquet` or `csv`).

    Raises InvalidInput for another format, NotMade where this one is still to be made, and Expired
    where neither snapshot nor changes are kept (R-106).
    """
    if not any(file.role in {FileRole.SNAPSHOT, FileRole.CHANGES} for file in files):
        raise Expired(
            f"The files of version {version.version} of {version.dataset_id} are past retention: "
            "load its current version"
        )
    _check_made(files, format=format)
    expires_at = Instant.of(now + LINKS_LAST)
    return Version(
        **_summary(version),
        reason=version.reason,
        schema_change=version.schema_change,
        content_digest=version.content_digest or "",
        files=Files(
            snapshot=_snapshot(files, format=format, blobs=blobs, until=expires_at),
            changes=_links(files, FileRole.CHANGES, format=format, blobs=blobs, until=expires_at),
            id_map=_links(files, FileRole.ID_MAP, format=format, blobs=blobs, until=expires_at),
            schema=link(_one(files, FileRole.SCHEMA), blobs=blobs, until=expires_at),
            expires_at=expires_at,
        ),
    )


def snapshot_of(files: list[FileRow], *, format: str = "geoparquet") -> FileRow:
    """The snapshot in a format; raises as `show_version` does."""
    _check_made(files, format=format)
    return next(file for file in files if _is(file, FileRole.SNAPSHOT, format))


def link(file: FileRow, *, blobs: Blobs, until: Instant) -> File:
    """A file with an address at which it can be had without a key until then."""
    ending = _ENDINGS.get(file.format, file.format)
    name = f"{file.dataset_id}_v{file.version}_{file.role}.{ending}"
    return File(
        url=blobs.link(file.blob, file_name=name, sha256=file.sha256, expires_at=until),
        format=file.format,
        rows=file.rows,
        bytes=file.bytes,
        sha256=file.sha256,
    )


def _summary(version: VersionRow) -> dict[str, Any]:
    return {
        "dataset_id": version.dataset_id,
        "version": version.version,
        "previous_version": version.previous_version,
        "schema_version": version.schema_version,
        "published_at": version.published_at,
        "source_fetched_at": version.source_fetched_at,
        "row_count": version.row_count,
        "counts": version.counts,
        "resync_required": version.reason is not None,
    }


def _snapshot(
    files: list[FileRow], *, format: str, blobs: Blobs, until: Instant
) -> list[File] | None:
    if not any(file.role is FileRole.SNAPSHOT for file in files):
        return None
    return [link(snapshot_of(files, format=format), blobs=blobs, until=until)]


def _links(
    files: list[FileRow], role: FileRole, *, format: str, blobs: Blobs, until: Instant
) -> list[File] | None:
    found = [file for file in files if _is(file, role, format)]
    return [link(file, blobs=blobs, until=until) for file in found] or None


def _check_made(files: list[FileRow], *, format: str) -> None:
    if format not in _FORMATS:
        message = f"'{format}' is not a format of files: geoparquet or csv"
        raise InvalidInput(message, errors=(Fault("format", message),))
    missing = without_csv(files)
    if format == "csv" and missing:
        raise NotMade(missing[0])


def _is(file: FileRow, role: FileRole, format: str) -> bool:
    return file.role is role and file.format in _FORMATS[format]


def _one(files: list[FileRow], role: FileRole) -> FileRow:
    return next(file for file in files if file.role is role)
