"""The event logs in tables: counters, shared bodies, and lists of their numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, bindparam, func, insert, select
from sqlalchemy.sql import ColumnElement

from ploti.model.event import EventType
from ploti.model.ids import DatasetId, SubscriptionId, WorkspaceId
from ploti.model.wire import Instant
from ploti.server.adapters.store import runs
from ploti.server.adapters.store.bodies import Bodies
from ploti.server.adapters.store.dialect import chunks, is_postgres
from ploti.server.adapters.store.driver import ask
from ploti.server.adapters.store.keys import principal_of
from ploti.server.adapters.store.tables import feed_body, feed_log, feed_news, membership
from ploti.server.eventlog.drafts import Draft
from ploti.server.eventlog.paging import Extent
from ploti.server.eventlog.render import Body, Events
from ploti.server.membership.principal import Principal

_LOOK = 500
"""Events whose types are asked for at once."""


Found = tuple[Principal, Extent, Events]


class Seen(NamedTuple):
    """What a key sees of a log: the bodies of the events after a position, by their numbers."""

    who: Principal
    extent: Extent
    after: int
    bodies: list[int]

    def found(self, bodies: Sequence[Body]) -> Found:
        """The same with the bodies themselves."""
        return (
            self.who,
            self.extent,
            Events(range(self.after + 1, self.after + 1 + len(bodies)), bodies),
        )


class ByKey(NamedTuple):
    """A question for the events of a log after a position, by the digest of a key."""

    digest: str
    subscription_id: SubscriptionId
    after: int
    limit: int
    now: Instant

    def values(self) -> tuple[int | str, ...]:
        """What `BY_KEY` takes."""
        places = runs.place(self.after, self.after + self.limit)
        return (*places, self.digest, str(self.now), self.subscription_id)

    def see(self, row: Sequence[Any]) -> Seen | None:
        """What its row tells; None for another's key, or where events are pruned."""
        who = principal_of(*row[:5], digest=self.digest)
        last, *kept = row[5:]
        start, bodies = runs.Kept(*kept).between(self.after, self.after + self.limit)
        if who is None or start > self.after:
            return None
        return Seen(who, Extent(first=kept[0], last=last), start, bodies)


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
        sent = [(drafts, to) for drafts, to in messages if drafts and to]
        for ids in chunks({each for _, to in sent for each in to}):
            self._lock(feed_log.c.subscription_id.in_(ids))
        for drafts, to in sent:
            bodies = self._keep_bodies(drafts, now)
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
        self._lock(feed_log.c.log.in_(delivering))
        self._point(self._keep_bodies(drafts, now), delivering)
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
        end = up_to if types else min(up_to, after + limit)
        kept = self._kept(subscription_id, after, end)
        if kept is None:
            return Events((), ())
        start, found = kept.between(after, end)
        if start > after:  # pruned up to there
            return self.page(subscription_id, after=start, up_to=up_to, limit=limit, types=types)
        if not types:
            seqs: Sequence[int] = range(start + 1, start + 1 + len(found))
        else:
            seqs = self._pick(found, start, limit, sorted(types))
            found = [found[seq - start - 1] for seq in seqs]
        return Events(seqs, self._bodies.of(found, load=self._load))

    def by_key(self, asked: ByKey) -> Found | None:
        """What the store's `log_by_key` gives: one statement, but for bodies not read lately."""
        statement = BY_KEY[is_postgres(self._connection)]
        row = ask(self._connection, statement, asked.values()).fetchone()
        seen = asked.see(row) if row else None
        return seen and seen.found(self._bodies.of(seen.bodies, load=self._load))

    def _kept(self, log: SubscriptionId, after: int, up_to: int) -> runs.Kept | None:
        """What holds the events between two positions, in one row; None where there is no log.

        With each row that it takes, a thread may have to wait for the others.
        """
        statement = _KEPT[is_postgres(self._connection)]
        values = (*runs.place(after, up_to), log)
        found = ask(self._connection, statement, values).fetchone()
        return found and runs.Kept(*found)

    def _pick(self, bodies: list[int], after: int, limit: int, types: list[EventType]) -> list[int]:
        """The numbers of the first events of these types; `bodies` are of all after a position."""
        found: list[int] = []
        for begin in range(0, len(bodies), _LOOK):
            part = bodies[begin : begin + _LOOK]
            statement = _OF_TYPES.format(numbers=_marks(part), types=_marks(types))
            of_types = {row[0] for row in ask(self._connection, statement, (*part, *types))}
            place = after + 1 + begin
            found += [seq for seq, body in enumerate(part, place) if body in of_types]
            if len(found) >= limit:
                break
        return found[:limit]

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
        runs.point(self._connection, bodies, logs)
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
_KEPT = runs.in_each("SELECT {kept} FROM feed_log AS l WHERE l.subscription_id = ?")
BY_KEY = runs.in_each("""
SELECT k.id, k.workspace_id, k.member_id, k.permissions, k.digest, l.last_seq, {kept}
FROM api_key AS k
JOIN subscription AS s ON s.workspace_id = k.workspace_id
JOIN feed_log AS l ON l.subscription_id = s.id
WHERE k.digest = ? AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ?)
AND s.id = ?
""")
_OF_TYPES = "SELECT id FROM feed_body WHERE id IN ({numbers}) AND type IN ({types})"
_NEWS_OF_LOGS = insert(feed_news)
_NEWS_OF_DATASET = insert(feed_news).values(dataset_id=bindparam("dataset_id"))
_BODIES = """
SELECT id, type, at, dataset_id, linked_version, data FROM feed_body WHERE id IN ({numbers})
"""


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
