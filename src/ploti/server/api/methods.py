"""HEAD wherever GET is, and no OPTIONS: what a request's method means to the routes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from litestar.types import ASGIApp, Receive, Scope, Send

_ASKED = "ploti.method"
_NOT_TAKEN = "NONE"
_MEANT = {
    "HEAD": "GET",  # the same answer: uvicorn leaves its body out
    "OPTIONS": _NOT_TAKEN,  # Litestar's own answer names only the methods of one handler
}


def with_methods(app: ASGIApp) -> ASGIApp:
    """The application, with each request's method as it is meant."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        asked = scope.get("method")
        if asked in _MEANT:
            scope = cast("Scope", {**scope, "method": _MEANT[asked], _ASKED: asked})
        await app(scope, receive, send)

    return answer


def method_of(scope: Mapping[str, object]) -> str:
    """The method that the client asked with."""
    return str(scope.get(_ASKED) or scope["method"])


def is_head(scope: Mapping[str, object]) -> bool:
    """Whether only the head of the answer is wanted, so that no body need be made."""
    return method_of(scope) == "HEAD"


def tell_allowed(methods: set[str]) -> str:
    """The value of `Allow` for an address with routes for these methods."""
    return ", ".join(sorted((methods | ({"HEAD"} if "GET" in methods else set())) - {"OPTIONS"}))
