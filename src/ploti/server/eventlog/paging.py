"""Where a reading of a log starts and ends, and which cursors are refused."""

from __future__ import annotations

from collections.abc import Sequence

from ploti.errors import Expired, Fault, InvalidInput
from ploti.model.ids import START, event_id, event_number
from ploti.model.wire import Value

WINDOW = 5000
"""A page looks at no more positions than this, however few of them the filter keeps."""


class Extent(Value, kw_only=True):
    """A log's oldest kept number, and the newest ever given (0 before the first)."""

    first: int
    last: int


def position(cursor: str | None, extent: Extent) -> int:
    """The number after which a page begins (delivery, 'Reading'; S-38, S-39).

    Raises InvalidInput for a cursor that is malformed or past the newest event, Expired for one
    whose following events are pruned.
    """
    number = 0 if cursor is None else _number(cursor)
    if number > extent.last:
        raise _refused(f"{cursor} is past this log's newest event, {event_id(extent.last)}")
    if number < extent.first - 1:
        raise Expired(
            f"The events after {cursor or START} are past retention: "
            "load the datasets of the subscription's manifest and read on from its eventCursor"
        )
    return number


def reach(start: int, extent: Extent) -> int:
    """The last position that a page beginning after `start` looks at."""
    return min(extent.last, start + WINDOW)


def next_position(*, reached: int, kept: Sequence[int], limit: int) -> int:
    """The last position looked at: where the page is full, that of its last event (S-40)."""
    return kept[-1] if len(kept) == limit else reached


def _number(cursor: str) -> int:
    try:
        return event_number(cursor)
    except ValueError as error:
        raise _refused(str(error)) from error


def _refused(message: str) -> InvalidInput:
    return InvalidInput(message, errors=(Fault("cursor", message),))
