"""The steps that sync takes, one at a time, each for one dataset."""

from __future__ import annotations

from dataclasses import dataclass

from ploti.model.ids import DatasetId, EventId
from ploti.model.schema import AddedColumn
from ploti.model.wire import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Replace the table by a version's snapshot; `version` None means the current one.

    `at_least` is the version of which the log told: a current one before it is a contradiction.
    `failed` is the version that was tried before, in vain.
    """

    dataset_id: DatasetId
    event: EventId
    version: int | None
    reason: str
    at_least: int = 0
    failed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply:
    """Apply a version's changes to the version before it, which is held."""

    dataset_id: DatasetId
    event: EventId
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Alter:
    """Add the columns of a MINOR change; the version held stays as it is (R-140)."""

    dataset_id: DatasetId
    event: EventId
    added: tuple[AddedColumn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """Forget the version held; the table is kept and marked, or dropped (S-29)."""

    dataset_id: DatasetId
    event: EventId
    reason: str
    at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Await:
    """The dataset is delivered and has no version yet (R-031)."""

    dataset_id: DatasetId
    event: EventId


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """What is held is what the manifest names: only its place in the log is new."""

    dataset_id: DatasetId
    event: EventId


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """Nothing to do for this event, and why."""

    event: EventId
    reason: str


Step = Load | Apply | Alter | Leave | Await | Keep | Skip
