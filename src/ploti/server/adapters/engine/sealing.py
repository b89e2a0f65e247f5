"""A finished file as the candidate lists it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ploti.server.build.candidate import BuiltFile, FileRole


def seal(path: Path, *, role: FileRole, format_: str, rows: int) -> BuiltFile:
    """The file's entry: its name, rows, bytes, and the sha256 of its bytes."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return BuiltFile(
        role=role,
        format=format_,
        name=path.name,
        rows=rows,
        bytes=path.stat().st_size,
        sha256=digest,
    )
