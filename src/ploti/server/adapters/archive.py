"""The archive that a backup is: files under names, whole under its own name or not there."""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Iterable
from pathlib import Path

from ploti.errors import ConfigError


def link_tree(source: Path, *, to: Path) -> None:
    """Have every file below `source` below `to` as well, by another name for the same bytes.

    One that is gone meanwhile is left out; one that was linked before stays.
    """
    for path in source.rglob("*"):
        place = to / path.relative_to(source)
        if path.is_dir() or place.exists():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, place)
        except FileNotFoundError:
            continue


def write_archive(file: Path, members: Iterable[tuple[str, Path]]) -> None:
    """Write a tar archive that only its owner can read; it has its name once it is on the disk.

    Raises ConfigError where there is such a file already, or none can be made there.
    """
    part = file.with_name(f"{file.name}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            with tarfile.open(fileobj=opened, mode="w") as archive:
                for name, path in members:
                    archive.add(path, arcname=name, recursive=False)
            opened.flush()
            os.fsync(opened.fileno())
        os.link(part, file)
    except FileExistsError:
        raise ConfigError(f"{file} is there already: name another file") from None
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)


def remove_tree(folder: Path) -> None:
    """Remove a folder with all that is in it."""
    shutil.rmtree(folder, ignore_errors=True)
