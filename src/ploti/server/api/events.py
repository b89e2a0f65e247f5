"""The event log of a subscription, read by pages; a request may wait for what comes next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated

from litestar import Response, Router, get
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter

from ploti.errors import Code, Fault
from ploti.model.event import EventType
from ploti.model.ids import SubscriptionId
from ploti.model.page import EventPage
from ploti.server.api.auth import PERMISSION, Caller
from ploti.server.api.backend import Backend
from ploti.server.api.openapi import ANSWER, PROBLEMS
from ploti.server.api.params import LONGEST_WAIT, PAGE, Limit
from ploti.server.api.problems import refuse
from ploti.server.api.rules import EVENT, TYPES
from ploti.server.membership.principal import FEEDS
from ploti.server.service import read_events
from ploti.server.service.read_events import EventPageText


@get(
    "/{subscription:str}/events",
    opt={
        ANSWER: EventPage,
        PROBLEMS: (Code.NOT_FOUND, Code.EXPIRED, Code.RATE_LIMITED),
    },
)
async def list_events(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    subscription: FromPath[SubscriptionId],
    cursor: Annotated[
        str | None,
        QueryParameter(description="The last event applied: an event id.", schema_extra=EVENT),
    ] = None,
    limit: Limit = PAGE,
    types: Annotated[
        str | None,
        QueryParameter(
            description="Event types, with commas between; all unless given.", schema_extra=TYPES
        ),
    ] = None,
    wait: Annotated[
        int,
        QueryParameter(ge=0, le=LONGEST_WAIT, description="Seconds to wait where nothing is new."),
    ] = 0,
) -> Response[bytes]:
    """The events after a cursor, oldest first."""
    wanted = _parse_types(types)

    async def read() -> EventPageText:
        return await caller.read(
            lambda tx, who: read_events.read_events(
                *(tx, who, subscription),
                cursor=cursor,
                limit=limit,
                types=wanted,
                base=backend.base,
            ),
            briefly=not wanted,
        )

    if wait:
        return _answer(await _read_or_wait(read, caller, backend, subscription, wait))
    return _answer(await read())


async def _read_or_wait(
    read: Callable[[], Awaitable[EventPageText]],
    caller: Caller,
    backend: Backend,
    subscription: SubscriptionId,
    seconds: int,
) -> EventPageText:
    """The first page that moves on, or the last one read when the time is up."""
    who = await caller.admit()
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    with backend.waiters.place(subscription, key=who.key_id) as place:
        while True:
            place.bell.clear()
            page = await read()
            place.after = page.next_cursor
            if page.next_cursor != page.cursor or not await backend.waiters.rung(
                place, within=until - loop.time(), unless=caller.gone
            ):
                return page


def _parse_types(text: str | None) -> frozenset[EventType]:
    names = text.split(",") if text else []
    unknown = [name for name in names if name not in set(EventType)]
    if unknown:
        raise refuse(Fault("types", f"'{unknown[0]}' is no event type; {_TYPES}"))
    return frozenset(EventType(name) for name in names)


def _answer(page: EventPageText) -> Response[bytes]:
    return Response(page.text, media_type="application/json")


_TYPES = "there are " + ", ".join(EventType)

ROUTER = Router(
    "/v1/feeds/subscriptions",
    route_handlers=[list_events],
    opt={PERMISSION: FEEDS},
    tags=["events"],
)
