"""A call of the API as a value: what to send, and how to read the answer; no IO."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import BinaryIO, Generic, Protocol, TypeVar
from urllib.parse import quote

from ploti.model.wire import Value, decode

T = TypeVar("T")
Item = TypeVar("Item")
Cursor = TypeVar("Cursor", bound="str | int | None")

BUILDING = 3600.0
"""Seconds that a call may take which waits for a version to be built."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the server said: status, headers (names in small letters) and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Progress(Protocol):
    """Is told how far a transfer is, in bytes; `total` is None where it is not known."""

    def __call__(self, done: int, total: int | None) -> None:
        """So many bytes are through."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A body that is read while it is sent: the path of a file, or an open binary file."""

    source: str | BinaryIO
    progress: Progress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """One request and how its answer is read.

    `timeout` is the whole call's deadline in seconds, where it is another than the client's;
    `extra` is added to the client's own. `redirects` says that a redirect is an answer.
    """

    method: str
    path: str
    read: Callable[[Answer], T]
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | Upload | None = None
    timeout: float | None = None
    extra: float = 0.0
    redirects: bool = False

    @property
    def repeatable(self) -> bool:
        """Whether it can be sent again, and then does no more than once.

        A POST goes with an `Idempotency-Key`; an open file is read only once.
        """
        return not isinstance(self.body, Upload) or isinstance(self.body.source, str)


@dataclass(frozen=True, slots=True)
class Listed(Generic[Item, Cursor]):
    """One page of a list: the answer as it came, its items, and the cursor of what follows."""

    page: Value
    items: list[Item]
    next_cursor: Cursor


@dataclass(frozen=True, slots=True, kw_only=True)
class ListCall(Call[Listed[Item, Cursor]]):
    """A call for one page of a list.

    `cursor` is the name of the parameter to go on by, `start` what it means to leave it out.
    """

    cursor: str = "cursor"
    start: str | None = None

    def after(self, listed: Listed[Item, Cursor]) -> ListCall[Item, Cursor] | None:
        """The call for the page after this one, or None at the end.

        The end is where the next cursor is null or the one that was given; a page without items
        is not the end, since a filter may have kept none of them (R-132).
        """
        given = self.query.get(self.cursor, self.start)
        following = listed.next_cursor
        if following is None or str(following) == given:
            return None
        return replace(self, query={**self.query, self.cursor: str(following)})


def reads(kind: type[T]) -> Callable[[Answer], T]:
    """Read the body as JSON of this type."""
    return lambda answer: decode(answer.body, kind)


def reads_list(
    kind: type[T], take: Callable[[T], Listed[Item, Cursor]]
) -> Callable[[Answer], Listed[Item, Cursor]]:
    """Read the body as JSON of this type of page, and take the list out of it."""
    return lambda answer: take(decode(answer.body, kind))


def path(*parts: str | int) -> str:
    """A path below `/v1`, with every part made safe."""
    return "/v1/" + "/".join(quote(str(part), safe="") for part in parts)


def query(**values: str | float | bool | None) -> dict[str, str]:
    """The query's parameters; those that are None are left out."""
    return {name: _text(value) for name, value in values.items() if value is not None}


def _text(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
