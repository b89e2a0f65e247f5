"""Requests that are called off because the server ends: answered, not broken off."""

from __future__ import annotations

import asyncio

import structlog
from litestar.types import ASGIApp, HTTPResponseStartEvent, Message, Receive, Scope, Send

from ploti.errors import Unavailable
from ploti.server.api.problems import answer

_LOG = structlog.get_logger()


def with_end(app: ASGIApp) -> ASGIApp:
    """The application; a request that is called off before its answer began gets a 503."""

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def begin(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await app(scope, receive, begin)
        except asyncio.CancelledError:
            _LOG.warning("request called off: the server ends", path=scope.get("path"))
            if not started:
                await _refuse(send)

    return run


async def _refuse(send: Send) -> None:
    response = answer(Unavailable("The server ends: try again in a moment", retry_after=5))
    headers = {**response.headers, "content-type": str(response.media_type), "connection": "close"}
    start: HTTPResponseStartEvent = {
        "type": "http.response.start",
        "status": response.status_code or 0,
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    await send(start)
    await send({"type": "http.response.body", "body": response.content, "more_body": False})
