"""Pages of lists: how much of one, from where, and the cursor of the next."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TypeVar

from ploti.errors import Fault, InvalidInput
from ploti.model.ids import DatasetId, dataset_id
from ploti.model.wire import Instant

T = TypeVar("T")
C = TypeVar("C")

MOST = 500


def check_limit(limit: int) -> None:
    """Raise InvalidInput for a limit outside 1 to 500 (S-41)."""
    if not 1 <= limit <= MOST:
        raise _refused("limit", f"must be from 1 to {MOST}, not {limit}")


def cut(found: Sequence[T], *, limit: int, cursor: Callable[[T], C]) -> tuple[list[T], C | None]:
    """The page out of `limit` + 1 found, and its last one's cursor where there is more."""
    page = list(found[:limit])
    return page, cursor(page[-1]) if len(found) > limit else None


def dataset_cursor(cursor: str | None) -> DatasetId | None:
    """The dataset after which a page begins; raises InvalidInput for what is no cursor."""
    try:
        return None if cursor is None else dataset_id(cursor)
    except ValueError:
        raise _not_given(cursor) from None


def timed_cursor(at: Instant, identity: str) -> str:
    """The cursor of a thing in a list by time."""
    return base64.urlsafe_b64encode(f"{at} {identity}".encode()).decode().rstrip("=")


def read_timed_cursor(cursor: str | None) -> tuple[Instant, str] | None:
    """The time and id that `timed_cursor` put in; raises InvalidInput for what is no cursor."""
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        at, _, identity = (
            base64.b64decode(padded, altchars=b"-_", validate=True).decode().partition(" ")
        )
        if "\0" in identity:  # no database keeps one
            raise _not_given(cursor)
        return Instant.parse(at), identity
    except (binascii.Error, ValueError):
        raise _not_given(cursor) from None


def _not_given(cursor: str | None) -> InvalidInput:
    return _refused("cursor", f"'{cursor}' is not one that a page of this list gave as nextCursor")


def _refused(field: str, message: str) -> InvalidInput:
    return InvalidInput(f"{field} {message}", errors=(Fault(field, message),))
