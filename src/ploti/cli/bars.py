"""Progress of downloads, loads and verifies: one bar on a terminal, and nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ploti.sync.progress import Moment, Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar

_DOING = {
    Moment.MANIFEST_READ: "reading the manifest",
    Moment.PAGE_READ: "reading the log",
    Moment.LOADING: "fetching",
    Moment.FETCHED: "fetched",
    Moment.OPENED: "writing",
    Moment.ROWS_WRITTEN: "checking",
    Moment.RECORDED: "committing",
    Moment.CLOSED: "looking for more",
    Moment.CHECKING: "verifying",
}
"""What goes on after each moment."""


class Bars:
    """One line that says what goes on, with a bar while the size of it is known."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None)

    def show(self, progress: Progress) -> None:
        """Take a moment of a run as what goes on from it."""
        doing = _DOING.get(progress.moment)
        if doing is not None:
            subject = f"{progress.dataset_id}: " if progress.dataset_id else ""
            detail = f" {progress.detail}" if progress.moment is Moment.CHECKING else ""
            self._bar.reset(self._task, total=None, description=f"{subject}{doing}{detail}")

    def say(self, line: str) -> None:
        """A line that stays, above the bar."""
        self._bar.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def transferred(self, done: int, total: int | None) -> None:
        """So many bytes of a file are through."""
        self._bar.update(self._task, completed=done, total=total)


@contextmanager
def watching(*, quiet: bool, console: Console | None = None) -> Iterator[Bars | None]:
    """The bar on standard error where that is a terminal; None elsewhere and where it is quiet."""
    if quiet or not (console or sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False))
    on = console or Console(stderr=True)
    with Bar(*columns, BarColumn(), DownloadColumn(), console=on, transient=True) as bar:
        yield Bars(bar)
