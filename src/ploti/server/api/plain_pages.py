"""Pages of logs that are asked for as plainly as clients do: answered ahead of the routes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from litestar.types import ASGIApp, Receive, Scope, Send

from ploti.model.ids import SubscriptionId
from ploti.server.api.auth import COUNTED, key_in, let_in
from ploti.server.api.backend import Backend
from ploti.server.api.params import PAGE
from ploti.server.api.problems import NO_STORE
from ploti.server.membership.principal import FEEDS
from ploti.server.service.authenticate import key_digest
from ploti.server.service.read_events import EventPageText, read_events_by_key

_PATH = re.compile(r"/v1/feeds/subscriptions/([a-z0-9_]+)/events")
_PARAMETERS = {
    "cursor": re.compile(r"evt_[0-9]{12}"),
    "limit": re.compile(r"[1-9][0-9]{0,2}"),
    "wait": re.compile(r"[0-9]|[12][0-9]|30"),
}
_HEADERS = [
    (b"content-type", b"application/json"),
    *((name.encode(), value.encode()) for name, value in NO_STORE.items()),
]


class Asked(NamedTuple):
    """A page that is asked for: by the key of which digest, of which log, and how."""

    digest: str
    subscription: SubscriptionId
    query: Mapping[str, str]


def with_plain_pages(app: ASGIApp, backend: Backend) -> ASGIApp:
    """The application, which hears only of what is not simply a page with something to tell.

    A page costs a third on this way. Whatever is refused, fails or waits goes through the routes,
    where all of that is decided and told.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        asked = read_plainly(scope)
        page = None if asked is None else await _find(backend, asked, scope)
        if page is None:
            await app(scope, receive, send)
        else:
            await _send(page.text, send)

    return answer


def read_plainly(scope: Mapping[str, Any]) -> Asked | None:
    """What a request asks for; None where it is no page of a log, or in another form."""
    path = _PATH.fullmatch(scope["path"]) if scope.get("method") == "GET" else None
    if path is None:
        return None
    keys = [value for name, value in scope["headers"] if name == b"authorization"]
    key = key_in(keys[0].decode("latin-1")) if len(keys) == 1 else None
    query = _read_query(scope["query_string"].decode("latin-1"))
    if key is None or query is None:
        return None
    return Asked(key_digest(key), SubscriptionId(path[1]), query)


def _read_query(text: str) -> dict[str, str] | None:
    found: dict[str, str] = {}
    for part in text.split("&") if text else ():
        name, _, value = part.partition("=")
        form = _PARAMETERS.get(name)
        if form is None or name in found or form.fullmatch(value) is None:
            return None
        found[name] = value
    return found


async def _find(backend: Backend, asked: Asked, scope: Scope) -> EventPageText | None:
    """The page, counted for its key; None where there is nothing new to wait for, or an error."""
    if not backend.limits.take_known(asked.digest):
        return None
    cast("dict[str, object]", scope)[COUNTED] = True

    query, now = asked.query, backend.clock.now()
    try:
        found = await read_events_by_key(
            *(backend.store, asked.digest, asked.subscription),
            cursor=query.get("cursor"),
            limit=int(query.get("limit", PAGE)),
            now=now,
            base=backend.base,
        )
        if found is None:
            return None
        who, page = found
        let_in(backend, who, asked.digest, permission=FEEDS, now=now)
    except Exception:  # noqa: BLE001  the routes meet it again, and tell of it
        return None
    is_to_wait = int(asked.query.get("wait", 0)) > 0 and not page.looked_at_any
    return None if is_to_wait else page


async def _send(text: bytes, send: Send) -> None:
    headers = [*_HEADERS, (b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": text, "more_body": False})
