"""The lock beside a destination that is a file: one client at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ploti.errors import DestinationBusy, SyncError


@contextmanager
def locked(path: Path, *, name: str) -> Iterator[None]:
    """Lock the file `<path>.lock`, which stays: to remove it would open a gap.

    Raises:
        DestinationBusy: Another client has it; the error tells its process.
        SyncError: There is no folder for it.
    """
    if not path.parent.is_dir():
        raise SyncError(f"There is no folder {path.parent}: make it, then sync into it")
    with path.with_name(f"{path.name}.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DestinationBusy(
                f"Another ploti keeps {name} in step{_holder(file)}: one at a time"
            ) from error
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _holder(file: IO[str]) -> str:
    file.seek(0)
    process = file.read(20).strip()
    return f" (process {process})" if process.isdigit() else ""
