"""How far a build is: what it tells while it runs, in plain numbers."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from ploti.model.admin import BuildProgress, BuildStage

Tell = Callable[[BuildProgress], None]
"""Takes word of how far a build is."""


def ignore(progress: BuildProgress) -> None:
    """Takes word, and does nothing."""
    del progress


class Telling:
    """A build's own account of itself: the stage it is in, the rows it knows of, the share done.

    It may be called from several threads; a share is told in whole percent and once.
    """

    def __init__(self, tell: Tell = ignore) -> None:
        self._tell = tell
        self._lock = Lock()
        self._last: BuildProgress | None = None
        self._rows: int | None = None

    def begin(self, stage: BuildStage, *, rows: int | None = None) -> None:
        """A stage begins; `rows` are those of the state, once they are known."""
        with self._lock:
            self._rows = rows if rows is not None else self._rows
            self._say(BuildProgress(stage=stage, rows=self._rows))

    def reach(self, share: float) -> None:
        """This much of the stage is done, from 0 to 1; it never goes back."""
        with self._lock:
            last = self._last
            if last is None:
                return
            done = round(min(max(share, last.share or 0.0), 1.0), 2)
            self._say(BuildProgress(stage=last.stage, rows=last.rows, share=done))

    def reach_rows(self, rows: int) -> None:
        """So many of the state's rows are done."""
        if self._rows:
            self.reach(rows / self._rows)

    def _say(self, progress: BuildProgress) -> None:
        if progress != self._last:
            self._last = progress
            self._tell(progress)
