"""What a run tells while it goes on: steps with a name, to whoever observes."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from ploti.model.ids import DatasetId, EventId
from ploti.model.wire import Value


class Moment(StrEnum):
    """The named points of a run, in the order in which they are passed."""

    MANIFEST_READ = "manifest_read"
    PAGE_READ = "page_read"
    LOADING = "loading"
    FETCHED = "fetched"
    OPENED = "opened"
    ROWS_WRITTEN = "rows_written"
    RECORDED = "recorded"
    COMMITTED = "committed"
    CLOSED = "closed"
    STUCK = "stuck"
    LEAVING = "leaving"
    RELOADING = "reloading"
    RETRYING = "retrying"
    CHECKING = "checking"


class Progress(Value, kw_only=True):
    """A point that was passed; `detail` is for people."""

    moment: Moment
    detail: str
    dataset_id: DatasetId | None = None
    version: int | None = None
    cursor: EventId | None = None


Observer = Callable[[Progress], None]


def ignore(_progress: Progress) -> None:
    """Observe nothing."""
