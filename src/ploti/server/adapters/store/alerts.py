"""Alerts to the operator, in a table."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from ploti.server.adapters.store.columns import columns_of, fields_of, value_of
from ploti.server.adapters.store.tables import alert as alerts
from ploti.server.ports.alerts import AlertId, AlertRow


class SqlAlerts:
    """The port's `Alerts` over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, alert: AlertRow) -> bool:
        """Keep a new alert; false where there is one of this id."""
        try:
            with self._connection.begin_nested():
                self._connection.execute(insert(alerts).values(fields_of(alert)))
        except IntegrityError:  # another transaction may have raised it at the same time
            return False
        return True

    def get(self, alert_id: AlertId) -> AlertRow | None:
        """An alert; None where there is none."""
        found = self._connection.execute(_ALERT.where(alerts.c.id == alert_id)).mappings().first()
        return None if found is None else value_of(AlertRow, found)

    def save(self, alert: AlertRow) -> None:
        """Keep what came of an alert."""
        same = alerts.c.id == alert.id
        self._connection.execute(update(alerts).where(same).values(fields_of(alert)))

    def drop(self, alert_id: AlertId) -> None:
        """Forget an alert, if there is one."""
        self._connection.execute(delete(alerts).where(alerts.c.id == alert_id))


_ALERT = select(*columns_of(alerts, AlertRow))
