"""Versions, their files and their source states in tables."""

from __future__ import annotations

from sqlalchemy import Connection, delete, func, insert, select, update

from ploti.model.ids import DatasetId
from ploti.model.version import ResyncReason
from ploti.model.wire import Instant
from ploti.server.adapters.store.columns import columns_of, fields_of, value_of
from ploti.server.adapters.store.tables import source_state, version, version_file
from ploti.server.build.candidate import FileRole
from ploti.server.ports.rows import (
    AttemptId,
    FileRow,
    StateRow,
    VersionContent,
    VersionRow,
    VersionState,
)
from ploti.server.release.known import Role


class SqlVersions:
    """The port's `Versions` over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, row: VersionRow, *, content: VersionContent, files: list[FileRow]) -> None:
        """Keep a new version with its files."""
        self._connection.execute(insert(version).values(fields_of(row) | fields_of(content)))
        self.add_files(files)

    def save(self, row: VersionRow) -> None:
        """Keep what changed of a version."""
        same = (version.c.dataset_id == row.dataset_id, version.c.version == row.version)
        self._connection.execute(update(version).where(*same).values(fields_of(row)))

    def fill(self, row: VersionRow, *, content: VersionContent, files: list[FileRow]) -> None:
        """Keep what a version that there is turned out to be, with its files."""
        same = (version.c.dataset_id == row.dataset_id, version.c.version == row.version)
        known = fields_of(row) | fields_of(content)
        self._connection.execute(update(version).where(*same).values(known))
        self.add_files(files)

    def get(self, dataset_id: DatasetId, number: int) -> VersionRow | None:
        """A version in whatever state; None where the number was never taken."""
        same = (version.c.dataset_id == dataset_id, version.c.version == number)
        found = self._connection.execute(_VERSION.where(*same)).mappings().first()
        return None if found is None else value_of(VersionRow, found)

    def content(self, dataset_id: DatasetId, number: int) -> VersionContent:
        """The schema and buckets of a version that there is."""
        same = (version.c.dataset_id == dataset_id, version.c.version == number)
        found = self._connection.execute(_CONTENT.where(*same)).mappings().one()
        return value_of(VersionContent, found)

    def files(self, dataset_id: DatasetId, number: int) -> list[FileRow]:
        """The files of a version."""
        same = (version_file.c.dataset_id == dataset_id, version_file.c.version == number)
        wanted = _FILE.where(*same).order_by(version_file.c.blob)
        return [value_of(FileRow, row) for row in self._connection.execute(wanted).mappings()]

    def add_files(self, files: list[FileRow]) -> None:
        """Keep files of versions that there are."""
        if files:
            self._connection.execute(insert(version_file), [fields_of(file) for file in files])

    def drop_files(self, dataset_id: DatasetId, number: int) -> None:
        """Forget a version's files; the sweep removes their blobs."""
        same = (version_file.c.dataset_id == dataset_id, version_file.c.version == number)
        self._connection.execute(delete(version_file).where(*same))

    def drop_changes(self, dataset_id: DatasetId, number: int) -> None:
        """Forget the changes of a version that is to be loaded; the sweep removes their blobs."""
        same = (version_file.c.dataset_id == dataset_id, version_file.c.version == number)
        changes = version_file.c.role.in_([FileRole.CHANGES, FileRole.LISTING])
        self._connection.execute(delete(version_file).where(*same, changes))

    def drop_links(self, dataset_id: DatasetId, number: int) -> None:
        """Forget what a version's matching proposed; the sweep removes its blob."""
        same = (version_file.c.dataset_id == dataset_id, version_file.c.version == number)
        links = version_file.c.role == FileRole.LINKS
        self._connection.execute(delete(version_file).where(*same, links))

    def drop_gone(self, dataset_id: DatasetId, *, before: int) -> list[AttemptId]:
        """Forget the lists of removed records of versions below a number; who built them."""
        old = (
            version_file.c.dataset_id == dataset_id,
            version_file.c.version < before,
            version_file.c.role == FileRole.GONE,
        )
        numbers = select(version_file.c.version).where(*old)
        built = select(version.c.attempt_id).where(
            version.c.dataset_id == dataset_id, version.c.version.in_(numbers)
        )
        attempts = sorted(set(self._connection.scalars(built)))
        self._connection.execute(delete(version_file).where(*old))
        return [AttemptId(attempt) for attempt in attempts]

    def replaced(self, dataset_id: DatasetId, *, after: int) -> list[int]:
        """The released versions above a number that changed record ids, oldest first."""
        wanted = select(version.c.version).where(
            version.c.dataset_id == dataset_id,
            version.c.version > after,
            version.c.state == VersionState.RELEASED,
            version.c.reason == ResyncReason.RECORD_IDS_CHANGED,
        )
        return list(self._connection.scalars(wanted.order_by(version.c.version)))

    def first_since(self, dataset_id: DatasetId, at: Instant) -> int:
        """The first version released at this time or later; 0 where there is none."""
        wanted = select(func.min(version.c.version)).where(
            version.c.dataset_id == dataset_id,
            version.c.state == VersionState.RELEASED,
            version.c.published_at >= at,
        )
        return self._connection.scalar(wanted) or 0

    def released(self, dataset_id: DatasetId, *, after: int, limit: int) -> list[VersionRow]:
        """Released versions above a number, oldest first."""
        wanted = (
            _VERSION.where(
                version.c.dataset_id == dataset_id,
                version.c.version > after,
                version.c.state == VersionState.RELEASED,
            )
            .order_by(version.c.version)
            .limit(limit)
        )
        return [value_of(VersionRow, row) for row in self._connection.execute(wanted).mappings()]


class SqlStates:
    """The port's `States` over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of(self, dataset_id: DatasetId) -> dict[Role, StateRow]:
        """The states of a dataset."""
        wanted = _STATE.where(source_state.c.dataset_id == dataset_id)
        rows = self._connection.execute(wanted).mappings()
        return {state.role: state for state in (value_of(StateRow, row) for row in rows)}

    def put(self, state: StateRow) -> None:
        """Keep a state in its role, in place of the one that had it."""
        self.drop(state.dataset_id, state.role)
        self._connection.execute(insert(source_state).values(fields_of(state)))

    def drop(self, dataset_id: DatasetId, role: Role) -> None:
        """Forget the state in this role, if there is one."""
        same = (source_state.c.dataset_id == dataset_id, source_state.c.role == role)
        self._connection.execute(delete(source_state).where(*same))


_VERSION = select(*columns_of(version, VersionRow))
_CONTENT = select(*columns_of(version, VersionContent))
_FILE = select(*columns_of(version_file, FileRow))
_STATE = select(*columns_of(source_state, StateRow))
