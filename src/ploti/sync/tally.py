"""How many rows tables have, without counting them: for as long as nobody else writes."""

from __future__ import annotations

from collections.abc import Callable


class Tally:
    """The rows of the tables behind one connection: counted once, then added up.

    A sum stands for a count only within one stretch of this connection's own transactions between
    which nobody else's was; what tells one stretch from another is the destination's to prove.
    """

    def __init__(self) -> None:
        self._stretch: int | None = None
        self._rows: dict[str, int] = {}

    def add(self, table: str, more: int | None) -> None:
        """So many rows more, as the database reports it; None where that is not certain."""
        if more is None:
            self.forget()
        elif table in self._rows:
            self._rows[table] += more

    def rows(self, table: str, stretch: int | None, count: Callable[[], int]) -> int:
        """The table's rows, which are counted where the stretch is another or not certain (None).

        The stretch is found out before the rows are counted: what is written in between may be
        among them or not, and is found at the next time.
        """
        if stretch is None or stretch != self._stretch:
            self.forget()
            self._stretch = stretch
        if table not in self._rows:
            self._rows[table] = count()
        return self._rows[table]

    def forget(self) -> None:
        """Know nothing any more: something was done that adds up to no sum, or taken back."""
        self._rows.clear()
