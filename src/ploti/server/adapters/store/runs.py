"""The events of a log as lists of their bodies' numbers: the newest in its row, others in runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import json
from sqlalchemy import Connection, Select, insert, select, update

from ploti.server.adapters.store.tables import feed_log, feed_run

LENGTH = 32
"""Where a log's newest number passes a multiple of this, its newest events become a run. The
multiples of each log lie elsewhere, so that not all of them have their turn in one release."""

_LONGEST = 2 * LENGTH
"""Events that a run has at most, where no more than LENGTH are appended at once."""

_LISTS = json.Decoder(list[list[int]])


class Kept(NamedTuple):
    """What is read of a log: its row, and the runs of some of its events."""

    first_seq: int
    settled_seq: int
    newest: str
    runs: str | None

    def between(self, after: int, up_to: int) -> tuple[int, list[int]]:
        """The bodies of all kept events between two positions, and the position they come after."""
        text = f"[{self.settled_seq + 1}{self.newest}]"
        lists = _LISTS.decode(f"[[{self.runs}],{text}]" if self.runs else f"[{text}]")
        start = max(after, self.first_seq - 1)
        found: list[int] = []
        for first, *bodies in lists:
            found += bodies[max(start + 1 - first, 0) :]
        return start, found[: max(up_to - start, 0)]


def in_each(statement: str) -> dict[bool, str]:
    """A statement of the log `l` that reads what `Kept` says, for PostgreSQL and for SQLite.

    Its parameters for `{kept}` are those of `place`.
    """
    joins = {True: "string_agg", False: "group_concat"}
    return {key: statement.format(kept=_READ.format(joined=each)) for key, each in joins.items()}


def place(after: int, up_to: int) -> tuple[int, int, int]:
    """Which runs may have events between two positions."""
    return after, after - _LONGEST, up_to


def listed(bodies: Sequence[int]) -> str:
    """Numbers of bodies as they stand in a list: a comma before each."""
    return "".join([f",{body}" for body in bodies])


def numbers(text: str) -> list[int]:
    """The bodies that a list has."""
    return [int(body) for body in text.split(",")[1:]]


def point(connection: Connection, bodies: Sequence[int], logs: Select[tuple[int]]) -> None:
    """Append events with these bodies to logs, which are locked, and raise their counters."""
    for part in _parts(bodies):
        _settle(connection, logs)
        connection.execute(
            update(feed_log)
            .where(feed_log.c.log.in_(logs))
            .values(
                last_seq=feed_log.c.last_seq + len(part), newest=feed_log.c.newest + listed(part)
            )
        )


def _settle(connection: Connection, logs: Select[tuple[int]]) -> None:
    """Make runs of the newest events of those logs whose turn it is."""
    full = connection.execute(_FULL.where(feed_log.c.log.in_(logs))).all()
    if not full:
        return
    rows = [
        {"log": log, "first_seq": seq + 1, "first_body": numbers(newest)[0], "bodies": newest}
        for log, seq, newest in full
    ]
    connection.execute(insert(feed_run), rows)
    for part in _parts([row.log for row in full]):
        connection.execute(
            update(feed_log)
            .where(feed_log.c.log.in_(part))
            .values(settled_seq=feed_log.c.last_seq, newest="")
        )


def _parts(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(numbers), LENGTH):
        yield numbers[start : start + LENGTH]


_FULL = select(feed_log.c.log, feed_log.c.settled_seq, feed_log.c.newest).where(
    (feed_log.c.last_seq + feed_log.c.log) // LENGTH
    > (feed_log.c.settled_seq + feed_log.c.log) // LENGTH
)
_READ = """l.first_seq, l.settled_seq, l.newest, CASE WHEN l.settled_seq > ? THEN (
    SELECT {joined}(run, '],[') FROM (
        SELECT first_seq || bodies AS run FROM feed_run
        WHERE log = l.log AND first_seq > ? AND first_seq <= ? ORDER BY first_seq
    ) AS runs
) END"""
