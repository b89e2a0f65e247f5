"""Pages of a subscription's log, as finished JSON."""

from __future__ import annotations

from ploti.model.event import EventType
from ploti.model.ids import SubscriptionId, event_id, event_number
from ploti.model.wire import Instant, Value
from ploti.server.eventlog.paging import next_position, position, reach
from ploti.server.eventlog.render import Events, render_list
from ploti.server.membership.principal import Principal
from ploti.server.ports.store import Store, Transaction
from ploti.server.service.page_lists import check_limit
from ploti.server.service.read_subscriptions import find_log


class EventPageText(Value, kw_only=True):
    """A page as it is sent, and the positions that it begins after and ends at."""

    text: bytes
    cursor: int
    next_cursor: int

    @property
    def looked_at_any(self) -> bool:
        """Whether there was anything after the cursor, kept by the filter or not."""
        return self.next_cursor > self.cursor


def read_events(
    tx: Transaction,
    principal: Principal,
    subscription_id: SubscriptionId,
    *,
    cursor: str | None,
    limit: int,
    types: frozenset[EventType],
    base: str,
) -> EventPageText:
    """The events after a cursor, oldest first; no types means all (R-128 to R-136).

    Raises NotFound, InvalidInput or Expired.
    """
    check_limit(limit)
    extent = find_log(tx, principal, subscription_id)
    start = position(cursor, extent)
    reached = reach(start, extent)
    found = tx.log.page(subscription_id, after=start, up_to=reached, limit=limit, types=types)
    return _page(found, subscription_id, start=start, reached=reached, limit=limit, base=base)


async def read_events_by_key(
    store: Store,
    digest: str,
    subscription_id: SubscriptionId,
    *,
    cursor: str | None,
    limit: int,
    now: Instant,
    base: str,
) -> tuple[Principal, EventPageText] | None:
    """The same by one statement, and whose key it is; None where it takes more to tell."""
    check_limit(limit)
    after = 0 if cursor is None else event_number(cursor)
    found = await store.log_by_key(digest, subscription_id, after=after, limit=limit, now=now)
    if found is None:
        return None
    who, extent, events = found
    start = position(cursor, extent)
    reached = reach(start, extent)
    page = _page(events, subscription_id, start=start, reached=reached, limit=limit, base=base)
    return who, page


def _page(
    found: Events,
    subscription_id: SubscriptionId,
    *,
    start: int,
    reached: int,
    limit: int,
    base: str,
) -> EventPageText:
    events = render_list(found, subscription_id=subscription_id, base=base)
    end = next_position(reached=reached, kept=found.numbers, limit=limit)
    text = b'{"events":[%b],"nextCursor":"%b"}' % (events, event_id(end).encode())
    return EventPageText(text=text, cursor=start, next_cursor=end)
