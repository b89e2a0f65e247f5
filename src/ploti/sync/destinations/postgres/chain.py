"""Proves that nobody else wrote between two transactions, by the numbers that PostgreSQL gives.

Every transaction that writes, in any database of the server, has a number of its own, one more than
the number given last. So between two of ours whose numbers follow each other there is none.
"""

from __future__ import annotations

from ploti.sync.destinations.postgres.wire import Wire

_NOW = "SELECT pg_current_xact_id_if_assigned()::text::bigint, pg_current_snapshot()::text"


class Chain:
    """The last transactions of one connection, as far as their numbers follow one another."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._first: int | None = None
        self._last: int | None = None

    def stretch(self) -> int | None:
        """The number that the chain begins with; None where somebody else may have written.

        The numbers do not tell of a transaction that began before the chain and ended within it,
        nor of one that began and ended while ours goes on. The snapshot does: `7:7:` says that at
        this moment none before 7 is under way, a prepared one neither, and none after 7 has ended.
        """
        number, snapshot = self._extend()
        if snapshot != f"{number}:{number}:":
            self._last = None
            return None
        return self._first

    def end(self) -> None:
        """Take the transaction in that is about to be committed, whatever it has written."""
        self._extend()

    def _extend(self) -> tuple[int | None, str]:
        """This transaction's number, None where it has written nothing yet, and its snapshot."""
        number: int | None
        snapshot: str
        number, snapshot = self._wire.rows(_NOW)[0]
        if number is not None:
            if self._last is None or number - self._last > 1:
                self._first = number
            self._last = number
        return number, snapshot
