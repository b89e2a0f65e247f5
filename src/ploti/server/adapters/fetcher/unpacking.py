"""A gzip body unpacked as it comes, in pieces of bounded size."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator

from ploti.errors import SourceError

_PIECE = 1 << 20
_GZIP = b"\x1f\x8b"
_WITH_HEADER = 31


async def unpack(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The bytes inside a gzip body; of one that was only called so, the bytes as they came.

    The first two bytes tell. Raises SourceError where the packed body is damaged or cut short.
    """
    first = b""
    members: _Members | None = None
    async for chunk in chunks:
        if len(first) < len(_GZIP):
            first += chunk
            if len(first) < len(_GZIP):
                continue
            chunk = first  # noqa: PLW2901
            members = _Members() if first.startswith(_GZIP) else None
        if members is None:
            yield chunk
        else:
            for piece in members.unpack(chunk):
                yield piece
    if members:
        members.end()
    elif len(first) < len(_GZIP):
        yield first


class _Members:
    """The members of a gzip file, which follow one another."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_WITH_HEADER)

    def unpack(self, packed: bytes) -> Iterator[bytes]:
        while packed:
            if self._member.eof:
                self._member = zlib.decompressobj(_WITH_HEADER)
            try:
                piece = self._member.decompress(packed, _PIECE)
            except zlib.error as error:
                raise SourceError(f"the source's packed data is damaged: {error}") from None
            if piece:
                yield piece
            packed = self._member.unconsumed_tail or self._member.unused_data

    def end(self) -> None:
        if not self._member.eof:
            raise SourceError("the source's packed data ends too early: it is cut short")
