"""Pages of a subscription's log, as finished JSON."""

from __future__ import annotations

from ploti.model.event import EventType
from ploti.model.ids import SubscriptionId, event_id
from ploti.model.wire import Value
from ploti.server.eventlog.paging import next_position, position, reach
from ploti.server.eventlog.render import render_list
from ploti.server.membership.principal import Principal
from ploti.server.ports.store import Transaction
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
    events = render_list(found, subscription_id=subscription_id, base=base)
    end = next_position(reached=reached, kept=found.numbers, limit=limit)
    text = b'{"events":[' + events + b'],"nextCursor":"' + event_id(end).encode() + b'"}'
    return EventPageText(text=text, cursor=start, next_cursor=end)
