"""After a restore: numbers given since the backup are not known, so none may be given again."""

from __future__ import annotations

from ploti.errors import PlotiError
from ploti.model.wire import Value
from ploti.server.ports.outside import Given
from ploti.server.ports.store import Transaction

EVENTS = 1_000_000
VERSIONS = 1_000
"""How far the logs' numbers and the datasets' are raised: over any that may have been given."""


class Recovered(Value, kw_only=True):
    """What a recovery raised, and how far numbers are given now."""

    logs: int
    datasets: int
    given: Given


def refuse_older(tx: Transaction, mark: Given) -> None:
    """Raise PlotiError where more was given out already than this database knows of."""
    if mark.restored:
        raise PlotiError(
            "This data comes out of a backup, and what was given out since is not known: run "
            "`ploti admin recover` on it, then start again"
        )
    known = tx.recovery.given()
    if mark.number > known:
        raise PlotiError(
            f"The database is older than what was given out already ({known} of {mark.number}): "
            "it was restored. Run `ploti admin recover` on it, then start again"
        )


def recover_numbers(tx: Transaction, mark: Given) -> Recovered:
    """Raise every number over what may have been given, and have everybody load.

    Every older cursor is expired by it (410), and every dataset's next version that is sent is one
    to be loaded, for the reason `previous_unavailable`.
    """
    tx.datasets.lock_catalogue(exclusive=True)
    number = max(mark.number, tx.recovery.given()) + 1
    logs = tx.recovery.raise_logs(EVENTS)
    datasets = tx.recovery.raise_datasets(VERSIONS)
    tx.recovery.raise_given(number)
    return Recovered(logs=logs, datasets=datasets, given=Given(number=number))
