"""A version with its files, its digest and its changes, for workspaces that deliver its dataset."""

from __future__ import annotations

from ploti.errors import Conflict, Expired, Fault, InvalidInput, TooLarge
from ploti.model.ids import DatasetId
from ploti.model.version import Version, VersionDigest
from ploti.model.wire import Instant
from ploti.server.build.candidate import FileRole
from ploti.server.membership.access import check_delivered
from ploti.server.membership.principal import Reader
from ploti.server.ports.outside import Blobs
from ploti.server.ports.rows import DatasetRow, VersionRow, VersionState
from ploti.server.ports.store import Transaction
from ploti.server.service.page_lists import check_limit
from ploti.server.service.read_catalogue import rights_for
from ploti.server.service.show_dataset import filing_of, find_dataset, no_version
from ploti.server.service.show_version import LINKS_LAST, link, show_version, snapshot_of


def get_version(
    tx: Transaction,
    reader: Reader,
    dataset_id: DatasetId,
    number: int,
    *,
    format: str,
    blobs: Blobs,
    now: Instant,
) -> Version:
    """A released version with links to its files in `format`; raises as S-30 and S-31 say."""
    version = _released(tx, reader, dataset_id, number)
    files = tx.versions.files(dataset_id, number)
    return show_version(version, files, format=format, blobs=blobs, now=now)


def get_digest(
    tx: Transaction, reader: Reader, dataset_id: DatasetId, number: int
) -> VersionDigest:
    """A released version's content digest with its buckets."""
    version = _released(tx, reader, dataset_id, number)
    return VersionDigest(
        content_digest=version.content_digest or "",
        row_count=version.row_count,
        buckets=tx.versions.content(dataset_id, number).buckets,
    )


def current_snapshot(
    tx: Transaction,
    reader: Reader,
    dataset_id: DatasetId,
    *,
    format: str,
    blobs: Blobs,
    now: Instant,
) -> str:
    """The address of the newest snapshot, good for an hour."""
    dataset = _delivered(tx, reader, dataset_id)
    if dataset.current_version is None:
        raise no_version(dataset_id)
    files = tx.versions.files(dataset_id, dataset.current_version)
    until = Instant.of(now + LINKS_LAST)
    return link(snapshot_of(files, format=format), blobs=blobs, until=until).url


async def list_changes(blobs: Blobs, name: str, *, cursor: str | None, limit: int) -> bytes:
    """A page of a version's changes as JSON, out of the finished lines of its listing (R-107)."""
    check_limit(limit)
    start = _position(cursor)
    found = await blobs.lines(name, start=start, count=limit + 1)
    if start and not found:
        raise _not_a_cursor(cursor)
    changes = b",".join(line.rstrip() for line in found[:limit])
    next_cursor = b'"%d"' % (start + limit) if len(found) > limit else b"null"
    return b'{"changes":[' + changes + b'],"nextCursor":' + next_cursor + b"}"


def _delivered(tx: Transaction, reader: Reader, dataset_id: DatasetId) -> DatasetRow:
    dataset = find_dataset(tx, dataset_id)
    subscribed = tx.memberships.delivers(reader.workspaces, dataset_id)
    rights = [] if subscribed else rights_for(tx, reader)
    check_delivered(filing_of(dataset), rights, subscribed=subscribed)
    return dataset


def _released(tx: Transaction, reader: Reader, dataset_id: DatasetId, number: int) -> VersionRow:
    _delivered(tx, reader, dataset_id)
    version = tx.versions.get(dataset_id, number)
    if version is None or version.state is not VersionState.RELEASED:
        raise no_version(dataset_id, number)
    return version


def find_listing(tx: Transaction, reader: Reader, dataset_id: DatasetId, number: int) -> str:
    """The blob of a version's changes as JSON.

    Raises Conflict where the version is one to load, TooLarge where it has too many changes.
    """
    version = _released(tx, reader, dataset_id, number)
    files = {file.role: file.blob for file in tx.versions.files(dataset_id, number)}
    if FileRole.LISTING in files:
        return files[FileRole.LISTING]
    if version.reason is not None:
        raise Conflict(f"Version {number} has no list of changes: it is loaded from its snapshot")
    if FileRole.CHANGES not in files:
        raise Expired(f"The changes of version {number} are past retention: load {dataset_id} anew")
    raise TooLarge(f"Version {number} has too many changes to list: read its changes file instead")


def _position(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit()) or len(cursor) > 9:
        raise _not_a_cursor(cursor)
    return int(cursor)


def _not_a_cursor(cursor: str | None) -> InvalidInput:
    message = f"'{cursor}' is not one that a page of these changes gave as nextCursor"
    return InvalidInput(f"cursor {message}", errors=(Fault("cursor", message),))
