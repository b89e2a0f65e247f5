"""What a folder records in `_ploti/state.json`: all of it in one file, changed by one rename."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ploti.errors import SyncError
from ploti.model.ids import DatasetId, EventId
from ploti.model.wire import Instant
from ploti.sync.held import Held, State

OWN = "_ploti"
STATE = "state.json"


class Place(msgspec.Struct, kw_only=True):
    """A subscription's place in its log, and the datasets that it chooses here."""

    cursor: EventId | None = None
    chosen: list[DatasetId] = []
    revision: int = 0


class Line(msgspec.Struct, kw_only=True):
    """Where a dataset stands; `table` is the name of its file, without its ending."""

    subscription_id: str
    dataset_id: DatasetId
    state: State
    version: int | None
    schema_version: str | None
    content_digest: str | None
    row_count: int | None
    table: str | None
    reason: str | None
    wanted: int | None
    last_event: EventId
    left_at: str | None

    @classmethod
    def of(cls, subscription_id: str, held: Held) -> Line:
        """The line of what is held."""
        return cls(
            subscription_id=subscription_id,
            dataset_id=held.dataset_id,
            state=held.state,
            version=held.version,
            schema_version=held.schema_version,
            content_digest=held.content_digest,
            row_count=held.row_count,
            table=held.table,
            reason=held.reason,
            wanted=held.wanted,
            last_event=held.last_event,
            left_at=None if held.left_at is None else str(held.left_at),
        )

    def held(self) -> Held:
        """What is held."""
        return Held(
            dataset_id=self.dataset_id,
            state=self.state,
            version=self.version,
            schema_version=self.schema_version,
            content_digest=self.content_digest,
            row_count=self.row_count,
            table=self.table,
            reason=self.reason,
            wanted=self.wanted,
            last_event=self.last_event,
            left_at=None if self.left_at is None else Instant.parse(self.left_at),
        )


class Recorded(msgspec.Struct, kw_only=True):
    """The whole; `moves` names the new file, in `_ploti`, that is to become a table's.

    A file that is there still is the table's content already, and `dropped` tables have none.
    `commits` counts what was ever committed, so that no new file has the name of an earlier one.
    """

    subscriptions: dict[str, Place] = {}
    datasets: list[Line] = []
    moves: dict[str, str] = {}
    dropped: list[str] = []
    commits: int = 0

    def lines_of(self, subscription_id: str) -> dict[DatasetId, Held]:
        """Where each dataset of a subscription stands."""
        mine = (each for each in self.datasets if each.subscription_id == subscription_id)
        return {each.dataset_id: each.held() for each in mine}

    def put(self, line: Line) -> None:
        """Write a dataset's line anew."""
        key = (line.subscription_id, line.dataset_id)
        others = [each for each in self.datasets if (each.subscription_id, each.dataset_id) != key]
        self.datasets = [*others, line]


def read_state(folder: Path) -> Recorded | None:
    """What the folder records; None where it was never synced into."""
    path = folder / OWN / STATE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Recorded)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise SyncError(
            f"{path} is not what sync writes: {error}; move the folder away, and sync anew"
        ) from error


def write_state(folder: Path, recorded: Recorded) -> None:
    """Make this what the folder records; once it returns, no crash takes it back."""
    path, new = folder / OWN / STATE, folder / OWN / f"{STATE}.new"
    with new.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(recorded)))
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    settle_names(path.parent)


def settle_names(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def said_plainly(name: str) -> Iterator[None]:
    """What the disk refuses is the whole folder's fault."""
    try:
        yield
    except OSError as error:
        what = "The disk is full" if error.errno in (28, 122) else f"{name} failed"
        raise SyncError(f"{what}: {error.strerror or error}") from error
