"""Attempts to build in a table, and what they left that is still used."""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import Connection, delete, insert, select, update

from ploti.model.admin import BuildProgress
from ploti.server.adapters.store.columns import columns_of, fields_of, value_of
from ploti.server.adapters.store.tables import build_attempt, source_state, version_file
from ploti.server.ports.rows import AttemptId, AttemptRow


class _State(StrEnum):
    OPEN = "open"
    ENDED = "ended"
    SWEPT = "swept"


class SqlBuilds:
    """The port's `Builds` over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, attempt: AttemptRow) -> None:
        """Record an attempt as open."""
        row = fields_of(attempt) | {"state": _State.OPEN}
        self._connection.execute(insert(build_attempt).values(row))

    def note(self, attempt_id: AttemptId, progress: BuildProgress) -> None:
        """Keep how far an attempt's build is."""
        same = build_attempt.c.id == attempt_id
        self._connection.execute(update(build_attempt).where(same).values(progress=progress))

    def end(self, attempt_id: AttemptId) -> None:
        """Mark an attempt ended and to be swept; an ended one too, when what it left lost use."""
        self._mark(attempt_id, _State.ENDED)

    def end_open(self) -> None:
        """Mark every open attempt ended: at the start, when none can be running."""
        is_open = build_attempt.c.state == _State.OPEN
        self._connection.execute(update(build_attempt).where(is_open).values(state=_State.ENDED))

    def to_sweep(self) -> list[AttemptRow]:
        """The ended attempts that may have left something without use."""
        wanted = _ATTEMPT.where(build_attempt.c.state == _State.ENDED)
        return [value_of(AttemptRow, row) for row in self._connection.execute(wanted).mappings()]

    def kept(self, attempt: AttemptRow) -> set[str]:
        """The blobs of an attempt that a version, a state or an open attempt still uses."""
        blob = attempt.source_blob
        used = [
            select(version_file.c.blob).where(
                version_file.c.dataset_id == attempt.dataset_id,
                version_file.c.version == attempt.version,
                version_file.c.blob.contains(f"/{attempt.id}/", autoescape=True),
            ),
            select(source_state.c.blob).where(
                source_state.c.dataset_id == attempt.dataset_id, source_state.c.blob == blob
            ),
            select(build_attempt.c.source_blob).where(
                build_attempt.c.state == _State.OPEN, build_attempt.c.source_blob == blob
            ),
        ]
        return {name for query in used for name in self._connection.scalars(query)}

    def swept(self, attempt_id: AttemptId) -> None:
        """Mark that of an attempt only what is in use is left."""
        self._mark(attempt_id, _State.SWEPT)

    def forget(self, attempt_id: AttemptId) -> None:
        """Drop an ended attempt of which nothing is left."""
        self._connection.execute(delete(build_attempt).where(build_attempt.c.id == attempt_id))

    def _mark(self, attempt_id: AttemptId, state: _State) -> None:
        same = build_attempt.c.id == attempt_id
        self._connection.execute(update(build_attempt).where(same).values(state=state))


_ATTEMPT = select(*columns_of(build_attempt, AttemptRow))
