"""What a destination holds of a subscription: cursor, choice, and one line for each dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from ploti.model.ids import START, DatasetId, EventId
from ploti.model.wire import Instant


class State(StrEnum):
    """Where a dataset stands in the destination."""

    WAITING = "waiting"
    """Delivered, but without a version yet."""

    HELD = "held"
    """A version is held, and the log leads on from it."""

    NEEDS_LOAD = "needs_load"
    """It cannot go on: its events are skipped until its current version can be loaded (S-37)."""

    LEAVING = "leaving"
    """The server refuses its versions: its events are skipped up to its `removed` (R-141)."""

    REMOVED = "removed"
    """It left the subscription; its table, if kept, is not kept in step (S-29)."""

    LEFT_OUT = "left_out"
    """Delivered, but not chosen for this destination any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A dataset in the destination; `version` is the one whose rows the table has.

    `table` is None while there is none of it, and `schema_version` is that of its columns;
    `last_event` is the last event acted on (S-36); `reason` says why the state is no better; while
    it is stuck, `wanted` is the version that the log told of last; `left_at` is when the dataset
    left.
    """

    dataset_id: DatasetId
    state: State = State.WAITING
    version: int | None = None
    schema_version: str | None = None
    content_digest: str | None = None
    row_count: int | None = None
    table: str | None = None
    reason: str | None = None
    wanted: int | None = None
    last_event: EventId = START
    left_at: Instant | None = None

    @property
    def follows(self) -> bool:
        """Whether it is meant to be kept in step."""
        return self.state not in (State.REMOVED, State.LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """All of it; `cursor` is None before the first load is through.

    `chosen` are the datasets that this destination is for; none named means all of them.
    `revision` is the number of transactions that made it.
    """

    cursor: EventId | None = None
    chosen: frozenset[DatasetId] = frozenset()
    revision: int = 0
    datasets: Mapping[DatasetId, Held] = field(default_factory=lambda: MappingProxyType({}))

    def takes(self, dataset_id: DatasetId) -> bool:
        """Whether a dataset is chosen."""
        return not self.chosen or dataset_id in self.chosen
