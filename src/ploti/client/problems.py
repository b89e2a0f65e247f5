"""What a refusal means: the error that the caller gets, and whether to try again, and when."""

from __future__ import annotations

import math
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import msgspec

from ploti.client.calls import Answer
from ploti.errors import BY_CODE, MEANINGS, ApiError, Code, Fault, PlotiError, TransportError
from ploti.model.wire import Value, decode

TRIES = 4
"""Tries of a call to a server that does not say when to come again."""
FIRST_PAUSE = 0.25
"""Seconds between the first two tries; each later pause is twice the one before."""

_PASSING = {429, 502, 503, 504}


class Broken(TransportError):
    """The connection broke, or something before the server answered in its place; try again."""

    def __init__(self, detail: str, *, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class _Problem(Value, kw_only=True):
    code: str
    detail: str = ""
    title: str = ""
    errors: list[dict[str, str]] = []


def read_refusal(answer: Answer, url: str) -> PlotiError:
    """The error that an answer of status 400 or more stands for; `url` is the API's address."""
    retry_after = read_retry_after(answer)
    try:
        problem = decode(answer.body, _Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _without_problem(answer, url, retry_after)
    kind = BY_CODE[Code(problem.code)] if problem.code in set(Code) else ApiError
    faults = tuple(Fault(each.get("field", ""), each.get("message", "")) for each in problem.errors)
    detail = problem.detail or problem.title or None
    return kind(detail, errors=faults, retry_after=retry_after)


def _without_problem(answer: Answer, url: str, retry_after: float | None) -> TransportError:
    said = f"{answer.status} {_phrase(answer.status)}".rstrip()
    if answer.status in _PASSING:
        return Broken(f"{url} answered {said}; try again later", retry_after=retry_after)
    return TransportError(
        f"{url} answered {said}, but not as a ploti API does: is PLOTI_API_URL right?"
    )


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def read_retry_after(answer: Answer) -> float | None:
    """Seconds to wait as the server asks, by number or by date; None where it asks for nothing."""
    text = answer.headers.get("retry-after", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        seconds = _seconds_until(text, answer.headers.get("date", ""))
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _seconds_until(date: str, answered_at: str) -> float:
    """By the server's own clock, so that a wrong one here does no harm."""
    moments: list[datetime] = []
    for text in (date, answered_at):
        try:
            moments.append(parsedate_to_datetime(text))
        except ValueError:
            return math.nan
    until, answered = moments
    return (until.replace(tzinfo=None) - answered.replace(tzinfo=None)).total_seconds()


def pause_after(error: PlotiError, attempt: int, *, chance: float) -> float | None:
    """Seconds to wait before the next try, or None where another one is in vain.

    `attempt` counts the tries so far, from 1; `chance` (0 to 1) spreads clients that failed at
    the same moment. A server that says when to come again is asked for as long as it says so.
    """
    match error:
        case Broken():
            retry_after = error.retry_after
        case ApiError() if MEANINGS[error.code].retry:
            retry_after = error.retry_after
        case _:
            return None
    if retry_after is None and attempt >= TRIES:
        return None
    pause = FIRST_PAUSE * (1 << min(attempt, TRIES) - 1) * (1 + chance)
    return max(pause, retry_after or 0.0)
