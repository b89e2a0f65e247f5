"""What is past retention, removed from the tables."""

from __future__ import annotations

from bisect import bisect_left

from sqlalchemy import (
    Connection,
    Row,
    and_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.sql import ColumnElement

from ploti.model.wire import Instant
from ploti.server.adapters.store.columns import columns_of, fields_of, value_of
from ploti.server.adapters.store.runs import numbers
from ploti.server.adapters.store.tables import (
    build_attempt,
    dataset,
    feed_body,
    feed_log,
    feed_run,
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
        """Remove of each log its events up to the first that is not older; bodies unused too.

        The bodies of a log's events rise: each was given its number while the log was locked.
        """
        kept = select(feed_body.c.id).where(feed_body.c.at >= before).order_by(feed_body.c.id)
        ever = select(func.coalesce(func.max(feed_body.c.id), 0) + 1)
        first_kept = self._connection.scalar(kept.limit(1)) or self._connection.scalars(ever).one()
        in_order = select(feed_log.c.log).order_by(feed_log.c.subscription_id)
        self._connection.execute(in_order.with_for_update())
        old = feed_run.c.first_body < first_kept
        runs = select(feed_run.c.log, feed_run.c.first_seq, feed_run.c.bodies).where(old)
        in_order = runs.order_by(feed_run.c.log, feed_run.c.first_seq)
        last_old = {row.log: row for row in self._connection.execute(in_order)}
        moved = [
            {"of": log.log, "first": first, "needed": needed}
            for log in self._connection.execute(_LOGS)
            for first, needed in [_edges(log, last_old.get(log.log), first_kept)]
            if first > log.first_seq
        ]
        if moved:
            self._connection.execute(_MOVE_FIRST, moved)
            self._connection.execute(_DROP_BEFORE, moved)
        self._connection.execute(delete(feed_body).where(feed_body.c.id < first_kept))

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
_DROP_BEFORE = delete(feed_run).where(
    feed_run.c.log == bindparam("of"), feed_run.c.first_seq < bindparam("needed")
)
_LOGS = select(feed_log.c.log, feed_log.c.first_seq, feed_log.c.settled_seq, feed_log.c.newest)
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


def _edges(
    log: Row[int, int, int, str], run: Row[int, int, str] | None, first_kept: int
) -> tuple[int, int]:
    """A log's first number with a body from `first_kept` on, and where the first run is needed.

    `run` is the log's last one that begins with an older body.
    """
    first = needed = log.first_seq
    if run:
        bodies = numbers(run.bodies)
        first = run.first_seq + bisect_left(bodies, first_kept)
        needed = run.first_seq if bodies[-1] >= first_kept else first
    if older := bisect_left(numbers(log.newest), first_kept):
        first = needed = log.settled_seq + 1 + older
    return first, needed


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
