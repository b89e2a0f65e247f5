"""The event logs in tables: counters, shared bodies, and pointers to them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import json
from sqlalchemy import Connection, Select, bindparam, func, insert, literal, select, update
from sqlalchemy.sql import ColumnElement

from ploti.model.event import EventType
from ploti.model.ids import DatasetId, SubscriptionId, WorkspaceId
from ploti.model.wire import Instant
from ploti.server.adapters.store.bodies import Bodies
from ploti.server.adapters.store.dialect import chunks, is_postgres, list_of
from ploti.server.adapters.store.driver import ask
from ploti.server.adapters.store.keys import principal_of
from ploti.server.adapters.store.tables import (
    feed_body,
    feed_event,
    feed_log,
    feed_news,
    membership,
)
from ploti.server.eventlog.drafts import Draft
from ploti.server.eventlog.paging import Extent
from ploti.server.eventlog.render import Body, Events
from ploti.server.membership.principal import Principal

_NUMBERS = json.Decoder(list[int])


class SqlLog:
    """The port's `Log` over one connection; `appended` tells whether the bell is to ring.

    `bodies` are those remembered from other readings; a transaction that writes has its own.
    """

    def __init__(self, connection: Connection, *, bodies: Bodies | None = None) -> None:
        self._connection = connection
        self._bodies = bodies or Bodies()
        self.appended = False

    def append(
        self, drafts: Sequence[Draft], *, to: Collection[SubscriptionId], now: Instant
    ) -> None:
        """Give each of these logs the drafts, in this order, with consecutive numbers."""
        self.append_each([(drafts, to)], now=now)

    def append_each(
        self,
        messages: Iterable[tuple[Sequence[Draft], Collection[SubscriptionId]]],
        *,
        now: Instant,
    ) -> None:
        """Several such messages, each to logs of its own: all of them are locked first."""
        kept = [(self._keep_bodies(drafts, now), to) for drafts, to in messages if drafts and to]
        for ids in chunks({each for _, to in kept for each in to}):
            self._lock(feed_log.c.subscription_id.in_(ids))
        for bodies, to in kept:
            for ids in chunks(to):
                chosen = feed_log.c.subscription_id.in_(ids)
                self._point(bodies, select(feed_log.c.log).where(chosen))
                logs = select(feed_log.c.subscription_id).where(chosen)
                self._connection.execute(_NEWS_OF_LOGS.from_select(["subscription_id"], logs))

    def append_to_members(
        self, drafts: Sequence[Draft], *, dataset_id: DatasetId, now: Instant
    ) -> None:
        """The same for every subscription that delivers the dataset, which is locked."""
        delivering = select(membership.c.log).where(membership.c.dataset_id == dataset_id)
        bodies = self._keep_bodies(drafts, now)
        self._lock(feed_log.c.log.in_(delivering))
        self._point(bodies, delivering)
        # A row, however many lanes it is for: they are told of it when this transaction is over
        self._connection.execute(_NEWS_OF_DATASET, {"dataset_id": dataset_id})

    def extent(self, subscription_id: SubscriptionId, *, workspace: WorkspaceId) -> Extent | None:
        """The oldest kept and the newest number of a log; None where this workspace has none."""
        found = ask(self._connection, _EXTENT, (subscription_id, workspace)).fetchone()
        return None if found is None else Extent(first=found[0], last=found[1])

    def last_numbers(self, ids: Collection[SubscriptionId]) -> dict[SubscriptionId, int]:
        """The newest number of each of these logs that there is."""
        found: dict[SubscriptionId, int] = {}
        for chunk in chunks(ids):
            wanted = _LAST.where(feed_log.c.subscription_id.in_(chunk))
            found |= {row.subscription_id: row.last_seq for row in self._connection.execute(wanted)}
        return found

    def page(
        self,
        subscription_id: SubscriptionId,
        *,
        after: int,
        up_to: int,
        limit: int,
        types: frozenset[EventType],
    ) -> Events:
        """Events between two positions, oldest first; no types means all."""
        run = (
            None
            if types
            else self._run(subscription_id, after, min(max(up_to, after), after + limit))
        )
        if run is not None:
            numbers = range(after + 1, after + 1 + len(run))
            return Events(numbers, self._bodies.of(run, load=self._load))
        found = self._pick(subscription_id, after, up_to, limit, sorted(types))
        bodies = self._bodies.of([body for _, body in found], load=self._load)
        return Events([seq for seq, _ in found], bodies)

    def run_by_key(
        self, digest: str, subscription_id: SubscriptionId, *, after: int, limit: int, now: Instant
    ) -> tuple[Principal, Extent, Events] | None:
        """Who calls with a key, the extent of a log of theirs, and its events after a position.

        It is one statement, but for bodies that were not read lately. None where there is no such
        key or log, or an event is missing.
        """
        statement = _RUN_BY_KEY.format(list=list_of(self._connection))
        values = (after, after + limit, limit, digest, str(now), subscription_id)
        rows = ask(self._connection, statement, values).fetchall()
        who = principal_of(*rows[0][:5], digest=digest) if rows else None
        if who is None:
            return None
        first, last, text = rows[0][5:]
        run = _NUMBERS.decode(text or "[]")
        if len(run) < min(last - after, limit):
            return None
        numbers = range(after + 1, after + 1 + len(run))
        events = Events(numbers, self._bodies.of(run, load=self._load))
        return who, Extent(first=first, last=last), events

    def _run(self, log: SubscriptionId, after: int, up_to: int) -> list[int] | None:
        """The bodies of all events between two positions; None where one is missing.

        They come as one list in one row: with each row that it takes, a thread may have to wait
        for the others.
        """
        statement = _RUN.format(list=list_of(self._connection))
        ((text,),) = ask(self._connection, statement, (log, after, up_to, up_to - after))
        bodies = _NUMBERS.decode(text or "[]")
        return bodies if len(bodies) == up_to - after else None

    def _pick(
        self, log: SubscriptionId, after: int, up_to: int, limit: int, types: list[EventType]
    ) -> list[tuple[int, int]]:
        """Numbers and bodies of those events there are; no types means all."""
        only = _ONLY.format(types=_marks(types)) if types else ""
        place = (log, after, up_to, *types, limit)
        return list(ask(self._connection, _POINTERS.format(only=only), place))

    def _load(self, numbers: Sequence[int]) -> Iterator[tuple[int, Body]]:
        rows = ask(self._connection, _BODIES.format(numbers=_marks(numbers)), numbers)
        return ((row[0], Body(*row[1:])) for row in rows)

    def _keep_bodies(self, drafts: Sequence[Draft], now: Instant) -> list[int]:
        statement = insert(feed_body).returning(feed_body.c.id, sort_by_parameter_order=True)
        rows = [
            {
                "at": now,
                "type": draft.type,
                "dataset_id": draft.dataset_id,
                "linked_version": draft.linked_version,
                "data": draft.data,
            }
            for draft in drafts
        ]
        return list(self._connection.scalars(statement, rows))

    def _point(self, bodies: list[int], logs: Select[tuple[int]]) -> None:
        """Raise the counters of logs, which are locked, then point from their new numbers."""
        added = len(bodies)
        self._connection.execute(
            update(feed_log)
            .where(feed_log.c.log.in_(logs))
            .values(last_seq=feed_log.c.last_seq + added)
        )
        chosen = logs.subquery("chosen")
        for place, body in enumerate(bodies):
            pointers = (
                select(
                    feed_log.c.log,
                    feed_log.c.last_seq - (added - 1 - place),
                    literal(body),
                )
                .join_from(chosen, feed_log, feed_log.c.log == chosen.c.log)
                .order_by(chosen.c.log)
            )
            self._connection.execute(
                insert(feed_event).from_select(["log", "seq", "body_id"], pointers)
            )
        self.appended = True

    def _lock(self, chosen: ColumnElement[bool]) -> None:
        """Lock the chosen counters in their order, where others write at the same time."""
        if is_postgres(self._connection):
            in_order = select(feed_log.c.log).where(chosen).order_by(feed_log.c.subscription_id)
            locked = in_order.with_for_update(key_share=True).subquery()
            self._connection.execute(select(func.count()).select_from(locked))


_EXTENT = """
SELECT l.first_seq, l.last_seq
FROM subscription AS s JOIN feed_log AS l ON l.subscription_id = s.id
WHERE s.id = ? AND s.workspace_id = ?
"""
_LAST = select(feed_log.c.subscription_id, feed_log.c.last_seq)
_RUN = """
SELECT CAST({list}(body_id) AS TEXT) FROM (
    SELECT body_id FROM feed_event
    WHERE log = (SELECT log FROM feed_log WHERE subscription_id = ?) AND seq > ? AND seq <= ?
    ORDER BY seq LIMIT ?
) AS run
"""
_RUN_BY_KEY = """
SELECT k.id, k.workspace_id, k.member_id, k.permissions, k.digest, l.first_seq, l.last_seq, (
    SELECT CAST({list}(body_id) AS TEXT) FROM (
        SELECT body_id FROM feed_event
        WHERE log = l.log AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?
    ) AS run
)
FROM api_key AS k
JOIN subscription AS s ON s.workspace_id = k.workspace_id
JOIN feed_log AS l ON l.subscription_id = s.id
WHERE k.digest = ? AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ?)
AND s.id = ?
"""
_POINTERS = """
SELECT e.seq, e.body_id FROM feed_event AS e
WHERE e.log = (SELECT log FROM feed_log WHERE subscription_id = ?)
AND e.seq > ? AND e.seq <= ?{only}
ORDER BY e.seq LIMIT ?
"""
_ONLY = """
AND EXISTS (SELECT 1 FROM feed_body AS b WHERE b.id = e.body_id AND b.type IN ({types}))"""
_NEWS_OF_LOGS = insert(feed_news)
_NEWS_OF_DATASET = insert(feed_news).values(dataset_id=bindparam("dataset_id"))
_BODIES = """
SELECT id, type, at, dataset_id, linked_version, data FROM feed_body WHERE id IN ({numbers})
"""


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
