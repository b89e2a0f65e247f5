"""How far numbers were given, and all of them raised over what is not known any more."""

from __future__ import annotations

from datetime import UTC

from sqlalchemy import Connection, delete, func, insert, select, text, update

from ploti.model.wire import Instant
from ploti.server.adapters.store.dialect import is_postgres
from ploti.server.adapters.store.tables import (
    dataset,
    feed_body,
    feed_log,
    feed_news,
    feed_run,
    source_state,
    version_file,
)


class SqlRecovery:
    """The port's `Recovery` over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def given(self) -> int:
        """How many bodies were ever kept; it only rises, and any number given raises it."""
        statement = _GIVEN_POSTGRES if is_postgres(self._connection) else _GIVEN_SQLITE
        return self._connection.scalar(text(statement)) or 0

    def raise_given(self, to: int) -> None:
        """Have `given` go on from this number."""
        if is_postgres(self._connection):
            self._connection.execute(text("SELECT setval('feed_body_id_seq', :to)"), {"to": to})
            return
        if not self._connection.execute(text(_RAISE_SQLITE), {"to": to}).rowcount:
            self._connection.execute(text(_BEGIN_SQLITE), {"to": to})

    def raise_logs(self, by: int) -> int:
        """Raise every log's newest number, and let nothing before it be read; how many there are.

        All events go: whoever reads on from an older one is told that it has expired.
        """
        last = feed_log.c.last_seq + by
        raised = {"first_seq": last + 1, "last_seq": last, "settled_seq": last, "newest": ""}
        done = self._connection.execute(update(feed_log).values(raised))
        self._connection.execute(delete(feed_run))
        self._connection.execute(delete(feed_body))
        self._connection.execute(insert(feed_news).from_select(["subscription_id"], _LOGS))
        return done.rowcount

    def raise_datasets(self, by: int) -> int:
        """Raise every dataset's next number, and have its next version loaded; how many."""
        again = func.coalesce(dataset.c.released_again, dataset.c.current_version)
        raised = {"next_number": dataset.c.next_number + by, "released_again": again}
        return self._connection.execute(update(dataset).values(raised)).rowcount

    def now(self) -> Instant | None:
        """The database's own clock; None where it goes by this machine's."""
        if not is_postgres(self._connection):
            return None
        moment = self._connection.scalar(select(func.clock_timestamp()))
        return None if moment is None else Instant.of(moment.astimezone(UTC))

    def blobs(self) -> set[str]:
        """The names of all files that a version or a source's state has."""
        return {name for query in _BLOBS for name in self._connection.scalars(query)}


_BLOBS = (
    select(version_file.c.blob),
    select(source_state.c.blob).where(source_state.c.blob.is_not(None)),
)
_LOGS = select(feed_log.c.subscription_id)
_GIVEN_SQLITE = "SELECT seq FROM sqlite_sequence WHERE name = 'feed_body'"
_GIVEN_POSTGRES = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM feed_body_id_seq"
_RAISE_SQLITE = "UPDATE sqlite_sequence SET seq = :to WHERE name = 'feed_body'"
_BEGIN_SQLITE = "INSERT INTO sqlite_sequence (name, seq) VALUES ('feed_body', :to)"
