"""Clients: one API address and key, with every call that they open."""

from __future__ import annotations

from typing import Self

from ploti.client.admin import Admin, AsyncAdmin
from ploti.client.feeds import AsyncFeeds, Feeds
from ploti.client.sides import AsyncSide, BlockingSide
from ploti.client.transport import TIMEOUT
from ploti.client.webhooks import AsyncWebhooks, Webhooks


class Client(BlockingSide):
    """The API for programs that wait; `key` and `url` come from the environment unless given.

    `timeout` is the deadline of a call in seconds, with all its tries. Safe from any thread; close
    it, or use it in a `with` block, where connections must not outlive their use.
    """

    def __init__(
        self, key: str | None = None, *, url: str | None = None, timeout: float = TIMEOUT
    ) -> None:
        super().__init__(key, url=url, timeout=timeout)
        self.feeds = Feeds(self)
        self.webhooks = Webhooks(self)
        self.admin = Admin(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(AsyncSide):
    """The API for asynchronous programs; `key` and `url` come from the environment unless given.

    `timeout` is the deadline of a call in seconds, with all its tries. It belongs to the event
    loop of its first call; close it, or use it in an `async with` block.
    """

    def __init__(
        self, key: str | None = None, *, url: str | None = None, timeout: float = TIMEOUT
    ) -> None:
        super().__init__(key, url=url, timeout=timeout)
        self.feeds = AsyncFeeds(self)
        self.webhooks = AsyncWebhooks(self)
        self.admin = AsyncAdmin(self)

    async def close(self) -> None:
        """Close the connections; a later call opens them anew."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
