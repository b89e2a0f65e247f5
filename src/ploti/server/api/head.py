"""HEAD wherever GET is: the same answer, of which the server sends no body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from litestar.types import ASGIApp, Receive, Scope, Send

_IS_HEAD = "ploti.head"


def with_head(app: ASGIApp) -> ASGIApp:
    """The application, answering HEAD as GET; uvicorn leaves the body of the answer out."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("method") == "HEAD":
            scope = cast("Scope", {**scope, "method": "GET", _IS_HEAD: True})
        await app(scope, receive, send)

    return answer


def is_head(scope: Mapping[str, object]) -> bool:
    """Whether only the head of the answer is wanted, so that no body need be made."""
    return _IS_HEAD in scope
