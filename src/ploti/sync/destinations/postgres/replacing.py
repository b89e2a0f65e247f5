"""A table made anew in place of one with other columns: readers see the one or the other, whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ploti.model.sql import identifier
from ploti.sync.destination import TableError
from ploti.sync.destinations.postgres import views
from ploti.sync.destinations.postgres.names import TABLES
from ploti.sync.destinations.postgres.wire import Wire
from ploti.sync.names import fit


@contextmanager
def replaced(wire: Wire, place: str, table: str, *, replace_views: bool) -> Iterator[str]:
    """Gives the place to make the new table at; at the end it takes the old one's.

    Where there is no old one, the place is the table's own. The old one stays in use until then,
    and what is granted on it is granted on the new one. Raises TableError where views are over it
    that may not be replaced.
    """
    if wire.value("SELECT to_regclass(%s)", place) is None:
        yield place
        return
    over = views.find_views(wire, place)
    views.check_replaceable(over, table, replace=replace_views)
    _check_row_security(wire, place, table)
    name = f"_ploti_loading_{wire.process}"
    new = f"{wire.schema}.{name}"
    yield new
    grants = views.find_grants(wire, place)
    owner = wire.value(
        "SELECT relowner::regrole::text FROM pg_class WHERE oid = to_regclass(%s)", place
    )
    views.drop_views(wire, over)
    wire.run(f"DROP TABLE {place}")
    wire.run(f"ALTER TABLE {new} RENAME TO {identifier(table)}")
    wire.run(f"ALTER TABLE {place} RENAME CONSTRAINT {name}_pkey TO {identifier(_key_name(table))}")
    for grant in grants:
        wire.run(grant)
    wire.run(f"ALTER TABLE {place} OWNER TO {owner}")
    views.make_views(wire, over)


def _check_row_security(wire: Wire, place: str, table: str) -> None:
    """Grants are made again, so that without its policies a table would show more than before."""
    if wire.value("SELECT relrowsecurity FROM pg_class WHERE oid = to_regclass(%s)", place):
        raise TableError(
            f"table {table} has row security, which the table made anew would lack: ALTER TABLE"
            f" {table} DISABLE ROW LEVEL SECURITY or drop the table, and sync again"
        )


def _key_name(table: str) -> str:
    """As PostgreSQL names a primary key; of two long names that begin alike, each has its own."""
    return fit(f"{table}_pkey", TABLES)
