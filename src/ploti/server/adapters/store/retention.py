"""What is past retention, removed from the tables."""

from __future__ import annotations

from sqlalchemy import (
    Connection,
    and_,
    bindparam,
    delete,
    except_,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.sql import ColumnElement

from ploti.model.wire import Instant
from ploti.server.adapters.store.columns import columns_of, fields_of, value_of
from ploti.server.adapters.store.tables import (
    build_attempt,
    dataset,
    feed_body,
    feed_event,
    feed_log,
    upkeep,
    version,
    version_file,
)
from ploti.server.build.candidate import FileRole
from ploti.server.ports.rows import AttemptId, UpkeepRow, VersionState


class SqlRetention:
    """The port's `Retention` over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def last_run(self) -> UpkeepRow | None:
        """The last run; None before the first."""
        found = self._connection.execute(select(*columns_of(upkeep, UpkeepRow))).mappings().first()
        return None if found is None else value_of(UpkeepRow, found)

    def keep_run(self, run: UpkeepRow) -> None:
        """Keep a run in place of the last one."""
        self._connection.execute(delete(upkeep))
        self._connection.execute(insert(upkeep).values(id=1, **fields_of(run)))

    def newest_event(self) -> Instant | None:
        """When the newest event was appended."""
        newest = select(feed_body.c.at).order_by(feed_body.c.id.desc()).limit(1)
        return self._connection.scalars(newest).first()

    def drop_events(self, *, before: Instant) -> None:
        """Remove of each log its events up to the first that is not older; bodies unused too."""
        first_kept = (
            select(feed_event.c.seq)
            .join(feed_body, feed_body.c.id == feed_event.c.body_id)
            .where(feed_event.c.log == feed_log.c.log, feed_body.c.at >= before)
            .order_by(feed_event.c.seq)
            .limit(1)
            .scalar_subquery()
        )
        in_order = select(feed_log.c.log).order_by(feed_log.c.subscription_id)
        self._connection.execute(in_order.with_for_update())
        first = func.coalesce(first_kept, feed_log.c.last_seq + 1)
        moved = select(feed_log.c.log.label("of"), first.label("first"), feed_log.c.first_seq)
        pruned = [
            {"of": row.of, "first": row.first}
            for row in self._connection.execute(moved)
            if row.first != row.first_seq
        ]
        if pruned:
            self._connection.execute(_MOVE_FIRST, pruned)
            self._connection.execute(_DROP_BEFORE, pruned)
        old = select(feed_body.c.id).where(feed_body.c.at < before)
        unused = except_(old, select(feed_event.c.body_id))
        self._connection.execute(delete(feed_body).where(feed_body.c.id.in_(unused)))

    def drop_files(self, *, before: Instant) -> list[AttemptId]:
        """Remove changes and snapshots that are older; the attempts that built them (S-44)."""
        old = or_(_old_changes(before), _old_snapshots(before))
        wanted = select(version_file.c.blob).join_from(version_file, version, _OWN).where(old)
        gone = version_file.c.blob.in_(self._connection.scalars(wanted).all())
        ended = and_(_BUILT, build_attempt.c.state != "open")  # an open one is swept at its end
        built = select(build_attempt.c.id).join_from(version_file, build_attempt, ended)
        attempts = sorted(set(self._connection.scalars(built.where(gone))))
        self._connection.execute(delete(version_file).where(gone))
        return attempts


_MOVE_FIRST = (
    update(feed_log).where(feed_log.c.log == bindparam("of")).values(first_seq=bindparam("first"))
)
_DROP_BEFORE = delete(feed_event).where(
    feed_event.c.log == bindparam("of"), feed_event.c.seq < bindparam("first")
)
_OWN = and_(
    version.c.dataset_id == version_file.c.dataset_id, version.c.version == version_file.c.version
)
_BUILT = and_(
    build_attempt.c.dataset_id == version_file.c.dataset_id,
    build_attempt.c.version == version_file.c.version,
)
_later = version.alias("later")
_IS_LATER = and_(
    _later.c.dataset_id == version.c.dataset_id,
    _later.c.version > version.c.version,
    _later.c.state == VersionState.RELEASED,
)
_CURRENT = select(dataset.c.current_version).where(dataset.c.id == version.c.dataset_id)


def _old_changes(before: Instant) -> ColumnElement[bool]:
    roles = version_file.c.role.in_([FileRole.CHANGES, FileRole.LISTING, FileRole.ID_MAP])
    return and_(roles, version.c.published_at < before)


def _old_snapshots(before: Instant) -> ColumnElement[bool]:
    """Of versions that are not current any more, nor the last of their MAJOR schema version."""
    ended = select(func.min(_later.c.published_at)).where(_IS_LATER).scalar_subquery()
    same_major = select(_later.c.version).where(
        _IS_LATER, _major(_later.c.schema_version) == _major(version.c.schema_version)
    )
    return and_(
        version_file.c.role == FileRole.SNAPSHOT,
        version.c.state == VersionState.RELEASED,
        version.c.version != _CURRENT.scalar_subquery(),
        ended < before,
        same_major.exists(),
    )


def _major(schema_version: ColumnElement[str]) -> ColumnElement[str]:
    """What is before the dot, and the dot."""
    return func.rtrim(schema_version, "0123456789")
