"""How a paged source is asked: one address, its answer decoded, again where that may help."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypeVar

import msgspec
from yarl import URL

from ploti.errors import SourceError
from ploti.server.sources.json_tokens import replaced
from ploti.server.sources.pages import Pages

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)

_SHOWN = 200


class TryAgain(SourceError):
    """This try failed in a way that the next may not; `pause` is the least wait before it."""

    def __init__(self, detail: str, *, pause: float = 0) -> None:
        super().__init__(detail)
        self.pause = pause


class TooLargeAPage(SourceError):
    """A page has more bytes than are kept in memory; one of fewer rows may do."""


class Reply(NamedTuple):
    """An answer that was read whole."""

    body: bytes
    headers: Mapping[str, str]


class Ask(Protocol):
    """Asks an address, and again where `read` or the source says to try again."""

    async def __call__(self, address: URL, read: Callable[[Reply], T]) -> T:
        """What `read` makes of the answer; raises SourceError once the tries are over."""
        ...


class Page(NamedTuple):
    """Some rows as their source wrote them, what tells each from all others, and what they are."""

    rows: list[msgspec.Raw]
    ids: list[bytes]
    pages: Pages


def decoded(body: bytes, kind: type[T]) -> T:
    """An answer as a value; raises SourceError where it is none of this kind.

    A bare NaN or Infinity, which some servers write, becomes a text.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        quoted = replaced(body, number=lambda bare: b'"' + bare + b'"')
        return msgspec.json.decode(quoted, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        said = body[:_SHOWN].decode(errors="replace")
        raise SourceError(f"the source answered no rows ({error}): {said}") from None


def failure(said: bytes | str) -> str:
    """The sentence for an error that stands inside an answer that is ok."""
    text = said if isinstance(said, str) else said.decode(errors="replace")
    return f"the source answered that it failed: {text[:_SHOWN] or 'without a reason'}"
