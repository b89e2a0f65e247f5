"""Pages of lists: each has its own items, and iterating over it goes on through all that follow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Generic

from ploti.client.calls import Cursor, Item, ListCall, Listed
from ploti.client.sides import AsyncSide, BlockingSide
from ploti.client.transport import Transport
from ploti.model.event import Event, UnknownEvent
from ploti.model.wire import Value


class AnyPage(Generic[Item, Cursor]):
    """What pages of both sides have."""

    def __init__(self, call: ListCall[Item, Cursor], listed: Listed[Item, Cursor]) -> None:
        self._call = call
        self._listed = listed

    @property
    def value(self) -> Value:
        """The answer as it came."""
        return self._listed.page

    @property
    def items(self) -> list[Item]:
        """This page's own items."""
        return self._listed.items

    @property
    def events(self: AnyPage[Event | UnknownEvent, Cursor]) -> list[Event | UnknownEvent]:
        """This page's own items, by their name in an event log."""
        return self.items

    @property
    def next_cursor(self) -> Cursor:
        """Where the next page begins; None at the end, which an event log has not."""
        return self._listed.next_cursor

    def __repr__(self) -> str:
        return f"<page of {len(self.items)}, next cursor {self.next_cursor}>"


class Page(AnyPage[Item, Cursor]):
    """A page; iterating over it yields its items and those of all pages after it."""

    def __init__(
        self, call: ListCall[Item, Cursor], listed: Listed[Item, Cursor], side: BlockingSide
    ) -> None:
        super().__init__(call, listed)
        self._side = side

    @classmethod
    def first(cls, call: ListCall[Item, Cursor], side: BlockingSide) -> Page[Item, Cursor]:
        """The page that this call answers."""
        return cls(call, side.run(Transport.send, call), side)

    def following(self) -> Page[Item, Cursor] | None:
        """The page after this one, or None at the end."""
        call = self._call.after(self._listed)
        return None if call is None else self.first(call, self._side)

    def __iter__(self) -> Iterator[Item]:
        page: Page[Item, Cursor] | None = self
        while page is not None:
            yield from page.items
            page = page.following()


class AsyncPage(AnyPage[Item, Cursor]):
    """A page; iterating over it (`async for`) yields its items and those of all pages after it."""

    def __init__(
        self, call: ListCall[Item, Cursor], listed: Listed[Item, Cursor], side: AsyncSide
    ) -> None:
        super().__init__(call, listed)
        self._side = side

    @classmethod
    async def first(cls, call: ListCall[Item, Cursor], side: AsyncSide) -> AsyncPage[Item, Cursor]:
        """The page that this call answers."""
        return cls(call, await side.run(Transport.send, call), side)

    async def following(self) -> AsyncPage[Item, Cursor] | None:
        """The page after this one, or None at the end."""
        call = self._call.after(self._listed)
        return None if call is None else await self.first(call, self._side)

    async def __aiter__(self) -> AsyncIterator[Item]:
        page: AsyncPage[Item, Cursor] | None = self
        while page is not None:
            for item in page.items:
                yield item
            page = await page.following()
