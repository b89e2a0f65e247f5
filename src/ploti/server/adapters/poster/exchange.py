"""One POST over a connection: a request as bytes, and what answers it.

aiohttp's session does the same, with cookies, redirects and traces, of which a delivery has none
and which cost as much as all the rest of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http_parser import RawResponseMessage
from yarl import URL

from ploti.server.deliver.answers import Answer
from ploti.server.ports.outside import Timer

_READ = 16 << 10
_KEPT = 2 << 10
_SWITCHING = 101


class Target:
    """What is alike in all POSTs to an address; by its `request` aiohttp dials."""

    def __init__(self, url: str, *, headers: Mapping[str, str]) -> None:
        parsed = URL(url)
        if parsed.scheme not in {"http", "https"}:
            raise aiohttp.NonHttpUrlClientError(parsed)
        self.request = aiohttp.ClientRequest(
            "POST", parsed, headers=headers, skip_auto_headers=["Accept-Encoding"]
        )
        del self.request.headers["Content-Length"]
        self._head = (
            f"POST {self.request.url.raw_path_qs} HTTP/1.1\r\n{_lines(self.request.headers)}"
        )

    def message(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        """A whole request, with these headers beside those of all."""
        return f"{self._head}{_lines(headers)}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Reply(NamedTuple):
    """The head of what answers a request, and its body, which may be still to come."""

    head: RawResponseMessage
    body: aiohttp.StreamReader


async def ask(connection: Connection, message: bytes) -> Reply:
    """Send a request, and read the head of what answers it.

    Raises what it broke off by, or TimeoutError of the caller's; then the connection is closed.
    """
    protocol = cast("ResponseHandler", connection.protocol)
    try:
        protocol.set_response_params(read_until_eof=True, auto_decompress=False)
        if protocol.transport is not None:  # else it broke off at once, which reading tells
            protocol.transport.write(message)
        reply = Reply(*await protocol.read())
        while _is_interim(reply.head.code):
            reply = Reply(*await protocol.read())
    except BaseException:
        connection.close()
        raise
    return reply


async def read(connection: Connection, reply: Reply, timer: Timer, *, within: float) -> Answer:
    """An answer with the beginning of its body; then the connection is there for the next POST.

    The head has decided already: a body that is long, or takes longer than so many seconds, is cut
    off, and the connection closed.
    """
    try:
        excerpt = None
        if not reply.body.at_eof():
            excerpt = await _excerpt(reply.body, timer, within=within)
    finally:
        if connection.transport and connection.transport.get_write_buffer_size():
            connection.close()  # answered before the request was read to its end
        connection.release()
    headers = reply.head.headers
    return Answer(
        ms=0,
        status=reply.head.code,
        retry_after=_seconds(headers.get("Retry-After")),
        location=_cut(headers.get("Location")),
        excerpt=excerpt,
    )


async def _excerpt(body: aiohttp.StreamReader, timer: Timer, *, within: float) -> str | None:
    beginning = bytearray()
    try:
        async with timer.timeout(within):
            async for chunk in body.iter_any():
                beginning += chunk
                if len(beginning) >= _READ:
                    break
    except (aiohttp.ClientError, TimeoutError, OSError):
        pass
    return _cut(bytes(beginning[:_KEPT]).decode("utf-8", "replace"))


def _lines(headers: Mapping[str, str]) -> str:
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()])


def _is_interim(status: int) -> bool:
    return 100 <= status < 200 and status != _SWITCHING


def _seconds(text: str | None) -> float | None:
    """The seconds of a `Retry-After`; one that names a date is passed over."""
    return float(text[:12]) if text and text.strip().isdecimal() else None


def _cut(text: str | None) -> str | None:
    return text[:_KEPT].replace("\x00", "") or None if text else None
