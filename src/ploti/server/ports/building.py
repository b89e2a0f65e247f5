"""Ports of the child that builds: readers of formats, and the engine that runs the tables' SQL."""

from __future__ import annotations

from typing import Protocol

from ploti.server.sources.declaration import Declaration
from ploti.server.sources.raw import RawColumn, RawGeometry, RawKind, RawTable

__all__ = ["RawColumn", "RawGeometry", "RawKind", "RawTable", "Reader"]


class Reader(Protocol):
    """Reads one format. One file a format; `adapters/readers/__init__.py` lists them."""

    format: str

    def matches(self, name: str, head: bytes) -> bool:
        """Whether a file of this name that begins with `head` is of this format."""
        ...

    def read(self, path: str, *, declaration: Declaration, folder: str) -> RawTable:
        """Read the file at `path`, leaving what it needs in `folder`.

        Raises SourceError with one line that names the place (line or feature) and the reason.
        """
        ...
