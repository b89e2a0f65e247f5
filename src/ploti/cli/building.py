"""A build under way: in words, and as a bar on a terminal's standard error."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ploti.cli.output import text
from ploti.client.calls import Progress
from ploti.client.connection import Client
from ploti.errors import PlotiError
from ploti.model.admin import BuildProgress, BuildUnderWay

if TYPE_CHECKING:
    from rich.console import Console

_LOOK_EVERY = 1.0
"""Seconds between two questions to the server."""

Look = Callable[[], BuildUnderWay | None]
"""Asks what is under way."""


def say_progress(progress: BuildProgress | None) -> str | None:
    """The stage, the share of it that is done, and the bytes or rows of the state, in few words."""
    if progress is None:
        return None
    share = "" if progress.share is None else f" {progress.share:.0%}"
    size = "" if progress.bytes is None else f", {text(progress.bytes)} bytes"
    rows = "" if progress.rows is None else f", {text(progress.rows)} rows"
    return f"{progress.stage}{share}{size}{rows}"


@contextmanager
def following(
    dataset: str, *, sending: str | None = None, quiet: bool
) -> Iterator[Progress | None]:
    """While the block runs, a bar says how far what is built of a dataset is.

    Only a terminal's standard error has it. `sending` is what is uploaded first: what is yielded
    takes how far that is, and is None where there is no terminal.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Client() as client:

        def look() -> BuildUnderWay | None:
            return client.admin.datasets.show(dataset).building

        with drawn(look, sending=sending, console=Console(stderr=True)) as progress:
            yield progress


@contextmanager
def drawn(
    look: Look, *, sending: str | None, console: Console, look_every: float = _LOOK_EVERY
) -> Iterator[Progress]:
    """The bar of `following`; `look` is called from a thread until the block ends."""
    from rich.progress import BarColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Bar

    sent, over = threading.Event(), threading.Event()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(f"sending {sending}" if sending else "begun", total=None)

        def progress(done: int, total: int | None) -> None:
            bar.update(task, completed=done, total=total)
            if total is not None and done >= total:
                sent.set()

        def draw() -> None:
            while not over.wait(look_every):
                if sending is None or sent.is_set():
                    words, share = _look(look)
                    bar.update(task, description=words, completed=share or 0.0, total=share and 1.0)

        thread = threading.Thread(target=draw, daemon=True)
        thread.start()
        try:
            yield progress
        finally:
            over.set()
            thread.join()


def _look(look: Look) -> tuple[str, float | None]:
    """What to say of one look; where a server does not answer it, the request itself will tell."""
    try:
        found = look()
    except PlotiError:
        found = None
    told = found.progress if found else None
    return say_progress(told) or "building", told.share if told else None
