"""What a run comes to: where each dataset stands, and the exit status that sums it up."""

from __future__ import annotations

from ploti.errors import ExitStatus
from ploti.model.ids import DatasetId, EventId
from ploti.model.wire import Value
from ploti.sync.held import Held, Holdings, State

_BEHIND = (State.NEEDS_LOAD, State.LEAVING)


class DatasetResult(Value, kw_only=True):
    """Where a dataset stands after a run."""

    dataset_id: DatasetId
    table: str | None
    version: int | None
    state: State
    reason: str | None


class Result(Value, kw_only=True):
    """Where a destination stands after a run, and what the run did.

    `differing` are the datasets whose table could not be made equal to their version.
    """

    destination: str
    cursor: EventId | None
    loads: int
    applies: int
    datasets: list[DatasetResult]
    differing: list[DatasetId]

    @property
    def behind(self) -> list[DatasetId]:
        """The datasets that are not up to date."""
        return [each.dataset_id for each in self.datasets if each.state in _BEHIND]

    @property
    def exit_status(self) -> ExitStatus:
        """5 where verification failed, 3 where a dataset is not up to date, else 0."""
        if self.differing:
            return ExitStatus.DIFFERS
        return ExitStatus.BEHIND if self.behind else ExitStatus.DONE


def list_datasets(holdings: Holdings) -> list[DatasetResult]:
    """Each dataset that is held or was, by id."""
    return [_list_one(held) for _, held in sorted(holdings.datasets.items())]


def _list_one(held: Held) -> DatasetResult:
    return DatasetResult(
        dataset_id=held.dataset_id,
        table=held.table,
        version=held.version,
        state=held.state,
        reason=held.reason,
    )
