"""A connection to a receiver: one question at a time, and what answers it."""

from __future__ import annotations

import asyncio
from typing import cast

from ploti.server.adapters.poster.reading import NoAnswer, Reading


class BrokenOff(NoAnswer):
    """The connection ended, or was ended, before the head of an answer was there."""


class Connection(asyncio.Protocol):
    """A connection to the address that was judged as it was dialled.

    What comes before its first question is taken for the answer to that: some refuse as soon as
    they accept. Later, what nobody asked for ends it.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.reading = Reading()
        self.is_open = False
        self._is_asked = False
        self._failure: NoAnswer | None = None
        self._news: asyncio.Future[None] | None = None

    @property
    def is_free(self) -> bool:
        """Whether it may be asked again: it was answered to the end, and after it had been read."""
        return (
            self.is_open
            and self.reading.is_over
            and self.reading.is_clean
            and not self._transport.get_write_buffer_size()
        )

    async def ask(self, message: bytes) -> Reading:
        """Send a request, and wait for the head of its answer.

        Raises NoAnswer, or what the caller's deadline raises; then the connection is closed.
        """
        if self._is_asked:
            self.reading = Reading()
        elif self.reading.heard:
            self.reading.is_clean = False
        self._is_asked = True
        if self.is_open:
            self._transport.write(message)
        try:
            while self.reading.status is None:
                await self._more()
        except BaseException:
            self.close()
            raise
        return self.reading

    async def finish(self) -> None:
        """Wait until the answer is over, or nothing more of it can come."""
        while self.is_open and not self.reading.is_over:
            await self._more()

    def close(self) -> None:
        """End it at once: what is not sent yet is not sent any more."""
        if self.is_open:
            self.is_open = False
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The event loop's word that there is a connection."""
        self._transport = cast("asyncio.Transport", transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        """The event loop's word that something came."""
        try:
            self.reading.feed(data)
        except NoAnswer as failure:
            self._failure = failure
            self.close()
        if not self.reading.is_clean:
            self.close()
        self._tell()

    def eof_received(self) -> None:
        """The event loop's word that nothing more will come; so nothing more is sent either."""
        self.close()
        self._tell()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  whatever ended it
        """The event loop's word that it is over."""
        self.is_open = False
        self._tell()

    async def _more(self) -> None:
        """Wait until something has come; raises NoAnswer where nothing will."""
        if self._failure or not self.is_open:
            raise self._failure or BrokenOff("connection: broken off before an answer")
        self._news = asyncio.get_running_loop().create_future()
        await self._news

    def _tell(self) -> None:
        if self._news and not self._news.done():
            self._news.set_result(None)
