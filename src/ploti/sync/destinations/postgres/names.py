"""What names PostgreSQL holds, and the table of those columns that have another one there."""

from __future__ import annotations

from collections.abc import Iterable

from ploti.model.columns import RECORD_ID
from ploti.sync.destinations.postgres.wire import Wire
from ploti.sync.names import Limits, fit_columns

TABLES = Limits(longest=63, ignores_case=False)
COLUMNS = Limits(
    longest=63,
    reserved=frozenset({"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"}),
    ignores_case=False,
)


class Names:
    """The table `_ploti.names`: a column is fitted once, and its name is remembered."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def of(self, table: str) -> dict[str, str]:
        """The name of each column of a table that has another than its own."""
        query = "SELECT column_name, stored_name FROM _ploti.names WHERE table_name = %s"
        return dict(self._wire.rows(query, table))

    def fit(self, table: str, columns: Iterable[str]) -> dict[str, str]:
        """The same, once each of these columns has its name in the table."""
        known = self.of(table)
        fitted = fit_columns(columns, COLUMNS, known=known, own=[RECORD_ID])
        for name in fitted.keys() - known.keys():
            self._wire.run(
                "INSERT INTO _ploti.names (table_name, column_name, stored_name)"
                " VALUES (%s, %s, %s)",
                *(table, name, fitted[name]),
            )
        return fitted

    def forget(self, table: str) -> None:
        """The table is gone."""
        self._wire.run("DELETE FROM _ploti.names WHERE table_name = %s", table)
