"""Port to the files behind signed links, for a server that gives out its own blobs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from ploti.model.wire import Value

LINK_FIELDS = ("expires", "file", "key", "sha256", "signature")
"""The query of a signed link."""


class Link(Value, kw_only=True):
    """What a signed link says of its blob: the name to save it under, and its sha256 as hex."""

    blob: str
    file_name: str
    sha256: str


class OpenFile(Protocol):
    """A blob that is open for reading; it stays whole even where it is deleted meanwhile."""

    size: int

    async def read(self, start: int, *, length: int) -> bytes:
        """Up to `length` bytes from `start` on; none at the end."""
        ...


class LinkedFiles(Protocol):
    """Checks signed links and opens what they name; an object store does both by itself."""

    def check(self, blob: str, query: Mapping[str, str]) -> Link:
        """What the link says; raises Forbidden where it is expired or was changed."""
        ...

    def open(self, blob: str) -> AbstractAsyncContextManager[OpenFile]:
        """The blob, open while the context is; raises NotFound where it is not kept any more."""
        ...
