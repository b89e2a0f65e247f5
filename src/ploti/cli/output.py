"""What commands print: one JSON document, or tables and progress for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated

from cyclopts import Parameter

from ploti.client.calls import Progress
from ploti.model.version import Counts
from ploti.model.wire import encode

Json = Annotated[
    bool,
    Parameter(
        name="--json",
        negative=(),
        show_default=False,
        help="Print JSON on standard output, and nothing else.",
    ),
]
"""The flag that every command has."""

GAP = "  "


def print_json(value: object) -> None:
    """One document on one line, at once."""
    print(encode(value).decode(), flush=True)


def print_table(heads: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Aligned columns under their heads, nothing cut off; `empty` where there is no row."""
    cells = [[text(value) for value in row] for row in rows]
    if not cells:
        print(empty)
        return
    cells.insert(0, [head.upper() for head in heads])
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    for row in cells:
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(GAP.join(padded).rstrip())


def print_fields(fields: dict[str, object]) -> None:
    """A name and a value on each line; values that are None are left out."""
    shown = {name: value for name, value in fields.items() if value is not None}
    width = max(map(len, shown))
    for name, value in shown.items():
        print(f"{name.ljust(width)}{GAP}{text(value)}")


def print_line(*values: object) -> None:
    """One line of a stream, at once."""
    print(GAP.join(text(value) for value in values if value != "").rstrip(), flush=True)


def print_next(*commands: str) -> None:
    """What to type next."""
    print()
    for command in commands:
        print(f"Next: {command}")


def text(value: object) -> str:
    """A value for people, on one line and without what would steer a terminal."""
    match value:
        case None | "":
            return "-"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case list():
            return ", ".join(text(each) for each in value) or "-"
        case datetime():
            return str(value)
        case _:
            return "".join(each if each.isprintable() else " " for each in str(value))


def say_counts(counts: Counts | None) -> str | None:
    """Records added, changed and removed, in few signs."""
    if counts is None:
        return None
    return f"+{counts.added:,} ~{counts.changed:,} -{counts.removed:,}"


@contextmanager
def transfer(doing: str, *, then: str, quiet: bool) -> Iterator[Progress | None]:
    """A progress bar on a terminal's standard error, and None elsewhere.

    Once all bytes are through the bar says `then`, until the block ends.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None)

        def progress(done: int, total: int | None) -> None:
            over = total is not None and done >= total
            bar.update(task, completed=done, total=total, description=then if over else doing)

        yield progress
