"""What an answer means for its delivery: done, tried again, given up, or the end of the webhook."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from ploti.model.wire import Instant, Value
from ploti.server.deliver.schedule import next_try_after

_GONE = 410
_TOO_LARGE = 413
_MAY_ASK_TO_WAIT = {429, 503}
LONGEST_ASKED = timedelta(hours=1)
"""A `Retry-After` counts for no more than this (S-52)."""


class Answer(Value, kw_only=True):
    """What came of one POST: a status, or the error that there was instead.

    `retry_after` is in seconds; `address` is where it was sent to, `excerpt` the body's beginning.
    """

    ms: int
    address: str | None = None
    status: int | None = None
    error: str | None = None
    retry_after: float | None = None
    location: str | None = None
    excerpt: str | None = None


class Result(StrEnum):
    """What becomes of a delivery."""

    DELIVERED = "delivered"
    AGAIN = "again"
    FAILED = "failed"
    GONE = "gone"


class Verdict(Value, kw_only=True):
    """The result of an attempt, when the next one is due, and how long the whole lane pauses."""

    result: Result
    next_at: Instant | None = None
    paused_until: Instant | None = None


def is_success(answer: Answer) -> bool:
    """Whether the status is 2xx: nothing else is a success (R-152)."""
    return answer.status is not None and 200 <= answer.status < 300


def judge(answer: Answer, *, attempts: int, at: Instant, chance: float) -> Verdict:
    """The verdict on a delivery's attempt number `attempts`, which ended at `at`.

    `chance` is from 0 to 1 and spreads the next attempts (delivery, 'Delivering').
    """
    if is_success(answer):
        return Verdict(result=Result.DELIVERED)
    if answer.status == _GONE:
        return Verdict(result=Result.GONE)
    asked = _asked(answer)
    paused_until = Instant.of(at + asked) if asked else None
    after = None if answer.status == _TOO_LARGE else next_try_after(attempts, chance, least=asked)
    if after is None:
        return Verdict(result=Result.FAILED, paused_until=paused_until)
    return Verdict(result=Result.AGAIN, next_at=Instant.of(at + after), paused_until=paused_until)


def _asked(answer: Answer) -> timedelta:
    """How long the receiver asks to be left alone."""
    if answer.status not in _MAY_ASK_TO_WAIT or answer.retry_after is None:
        return timedelta(0)
    seconds = min(max(answer.retry_after, 0.0), LONGEST_ASKED.total_seconds())
    return timedelta(seconds=seconds)
