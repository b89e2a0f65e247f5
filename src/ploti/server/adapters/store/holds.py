"""Reviews in tables."""

from __future__ import annotations

from sqlalchemy import Connection, RowMapping, and_, delete, insert, select, tuple_, update

from ploti.model.admin import HoldState
from ploti.model.ids import DatasetId, HoldId
from ploti.model.wire import Instant
from ploti.server.adapters.store.columns import columns_of, fields_of, value_of
from ploti.server.adapters.store.tables import accepted_finding, hold, version
from ploti.server.ports.rows import HoldRow, ListedHold, VersionRow
from ploti.server.release.accepted import Accepted

_base = version.alias("base")
_HELD = and_(version.c.dataset_id == hold.c.dataset_id, version.c.version == hold.c.version)
_MEASURED = and_(
    _base.c.dataset_id == hold.c.dataset_id, _base.c.version == version.c.previous_version
)


class SqlHolds:
    """The port's `Holds` over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, row: HoldRow) -> None:
        """Keep a new hold."""
        self._connection.execute(insert(hold).values(fields_of(row)))

    def save(self, row: HoldRow) -> None:
        """Keep a hold's end."""
        self._connection.execute(update(hold).where(hold.c.id == row.id).values(fields_of(row)))

    def get(self, hold_id: HoldId) -> ListedHold | None:
        """A hold with its version."""
        found = self._connection.execute(_LISTED.where(hold.c.id == hold_id)).mappings().first()
        return None if found is None else _listed(found)

    def open_of(self, dataset_id: DatasetId) -> HoldRow | None:
        """The dataset's open hold: there is one at most."""
        same = (hold.c.dataset_id == dataset_id, hold.c.state == HoldState.OPEN)
        found = self._connection.execute(_HOLD.where(*same)).mappings().first()
        return None if found is None else value_of(HoldRow, found)

    def page(
        self, *, before: tuple[Instant, HoldId] | None, limit: int, state: HoldState | None
    ) -> list[ListedHold]:
        """Holds that began before another one, newest first."""
        wanted = _LISTED.order_by(hold.c.since.desc(), hold.c.id.desc()).limit(limit)
        if before is not None:
            wanted = wanted.where(tuple_(hold.c.since, hold.c.id) < before)
        if state is not None:
            wanted = wanted.where(hold.c.state == state)
        return [_listed(row) for row in self._connection.execute(wanted).mappings()]

    def accept(self, finding: Accepted) -> None:
        """Keep an accepted finding, in place of the dataset's one of its kind and subject."""
        same = (
            accepted_finding.c.dataset_id == finding.dataset_id,
            accepted_finding.c.kind == finding.kind,
            accepted_finding.c.subject == finding.subject,
        )
        self._connection.execute(delete(accepted_finding).where(*same))
        self._connection.execute(insert(accepted_finding).values(fields_of(finding)))

    def accepted(self, dataset_id: DatasetId) -> list[Accepted]:
        """The accepted findings of a dataset, by id."""
        of = _ACCEPTED.where(accepted_finding.c.dataset_id == dataset_id)
        wanted = of.order_by(accepted_finding.c.id)
        rows = self._connection.execute(wanted).mappings()
        return [value_of(Accepted, row) for row in rows]

    def withdraw(self, finding_id: str) -> None:
        """Forget an accepted finding."""
        same = accepted_finding.c.id == finding_id
        self._connection.execute(delete(accepted_finding).where(same))


_ACCEPTED = select(*columns_of(accepted_finding, Accepted))
_HOLD = select(*columns_of(hold, HoldRow))
_LISTED = select(
    *columns_of(hold, HoldRow, prefix="hold_"),
    *columns_of(version, VersionRow, prefix="version_"),
    _base.c.row_count.label("base_row_count"),
).select_from(hold.join(version, _HELD).outerjoin(_base, _MEASURED))


def _listed(row: RowMapping) -> ListedHold:
    return ListedHold(
        hold=value_of(HoldRow, row, prefix="hold_"),
        version=value_of(VersionRow, row, prefix="version_"),
        base_row_count=row["base_row_count"],
    )
