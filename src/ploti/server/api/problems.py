"""Every error as `application/problem+json` (RFC 9457), and nothing of the inside in any."""

from __future__ import annotations

import errno
import math
import re
from collections.abc import Mapping

import structlog
from litestar import Request, Response
from litestar.exceptions import (
    ClientException,
    HTTPException,
    MethodNotAllowedException,
    NotFoundException,
    ValidationException,
)
from litestar.types import ExceptionHandlersMap

from ploti.errors import (
    MEANINGS,
    ApiError,
    Fault,
    InternalError,
    InvalidInput,
    MethodNotAllowed,
    NotFound,
    PlotiError,
    TooLarge,
    Unavailable,
)
from ploti.model.wire import UNSET, Unset, Value, encode
from ploti.server.api.methods import method_of, tell_allowed

MEDIA_TYPE = "application/problem+json"

_LOG = structlog.get_logger()
_UNAUTHENTICATED = 401
_TOO_LARGE = 413
_TOO_SLOW = 408
_QUOTES = re.compile(r"[`']")
_LONG_QUOTE = re.compile(r"('[^']{80})[^']+(?=')")
_LONG_WORD = re.compile(r"(\S{90})\S+")
_LONGEST_DETAIL = 1_000
_MOST_FAULTS = 20
_PLAINER = (
    (re.compile(r"Expected `\w+` >= (\S+)"), r"must be \1 or more"),
    (re.compile(r"Expected `\w+` <= (\S+)"), r"must be \1 or less"),
    (re.compile(r"Expected `(.+)`, got `(\w+)`"), r"must be \1, not \2"),
)
_NO_ROOM = Unavailable("The server's disk is full: make room on it, then try again")
NO_STORE = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


class FieldFault(Value, kw_only=True):
    """What is wrong with one field or parameter."""

    field: str
    message: str


class Problem(Value, kw_only=True):
    """What a client reads of an error; `errors` names the fields at fault where there are any."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: list[FieldFault] | Unset = UNSET


class ClientGone(ConnectionError):
    """The client went away before its request was read whole."""


def answer(error: ApiError, *, headers: Mapping[str, str] | None = None) -> Response[bytes]:
    """The response that tells of an error."""
    problem = problem_of(error)
    return respond(problem, headers=_own_headers(error, problem.status) | dict(headers or {}))


def problem_of(error: ApiError) -> Problem:
    """The problem that an error is, with the status of its code."""
    meaning = MEANINGS[error.code]
    return Problem(
        type=f"urn:ploti:problem:{error.code}",
        title=meaning.title,
        status=meaning.status,
        detail=_brief(error.detail),
        code=error.code,
        errors=[_told(fault) for fault in error.errors[:_MOST_FAULTS]] or UNSET,
    )


def respond(problem: Problem, *, headers: dict[str, str]) -> Response[bytes]:
    """The response that a problem is."""
    return Response(
        encode(problem),
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers=NO_STORE | headers,
    )


def explain(message: str) -> str:
    """What msgspec says of a value, in plainer words."""
    for pattern, plainer in _PLAINER:
        message = pattern.sub(plainer, message)
    return _QUOTES.sub("'", message)


def _told(fault: Fault) -> FieldFault:
    return FieldFault(field=_brief(fault.field), message=_brief(fault.message))


def _brief(text: str) -> str:
    """A text in which nothing that came in is repeated at length."""
    text = _LONG_WORD.sub(r"\1…", _LONG_QUOTE.sub(r"\1…", text))
    return text if len(text) <= _LONGEST_DETAIL else f"{text[:_LONGEST_DETAIL]}…"


def _own_headers(error: ApiError, status: int) -> dict[str, str]:
    headers = {}
    if error.retry_after is not None:
        headers["retry-after"] = str(math.ceil(error.retry_after))
    if status == _UNAUTHENTICATED:
        headers["www-authenticate"] = "Bearer"
    if status == _TOO_SLOW:
        headers["connection"] = "close"  # what is still to come is not waited for
    return headers


def _answer_ploti(_: _Request, error: PlotiError) -> Response[bytes]:
    return answer(error if isinstance(error, ApiError) else InvalidInput(error.detail))


def _answer_http(request: _Request, error: HTTPException) -> Response[bytes]:
    headers = error.headers or {}
    match error:
        case NotFoundException():
            return answer(NotFound(f"There is nothing at {request.url.path}: see /openapi.json"))
        case MethodNotAllowedException():
            return answer(_refuse_method(request), headers=_allowed(headers))
        case ValidationException():
            return answer(_refuse_values(error))
        case _ if error.status_code == _TOO_LARGE:
            return answer(TooLarge("The body is over its limit"))
        case ClientException():
            return answer(InvalidInput(explain(error.detail)))
        case _:
            return _answer_unknown(request, error)


def _answer_unknown(request: _Request, error: Exception) -> Response[bytes]:
    _LOG.error("request failed", method=request.method, path=request.url.path, exc_info=error)
    return answer(_NO_ROOM if _is_no_room(error) else InternalError())


def _is_no_room(error: BaseException) -> bool:
    """Whether a full disk is behind an error; the database says so by its text alone."""
    return any(
        (isinstance(each, OSError) and each.errno in {errno.ENOSPC, errno.EDQUOT})
        or "database or disk is full" in str(each)
        for each in _causes(error)
    )


def _causes(error: BaseException) -> list[BaseException]:
    """An error and what is behind it, each once: an error may be said to be its own cause."""
    found: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in found:
        found.append(cause)
        cause = cause.__cause__
    return found


def _answer_gone(_: _Request, error: ClientGone) -> Response[bytes]:
    return answer(InvalidInput(str(error)))


def _refuse_method(request: _Request) -> MethodNotAllowed:
    return MethodNotAllowed(f"{request.url.path} does not take {method_of(request.scope)}")


def _allowed(headers: Mapping[str, str]) -> dict[str, str]:
    methods = {method.strip() for method in headers.get("allow", "").split(",")}
    return {"allow": tell_allowed(methods)}


def _refuse_values(error: ValidationException) -> InvalidInput:
    found = error.extra if isinstance(error.extra, list) else []
    faults = tuple(Fault(str(item.get("key", "")), explain(str(item["message"]))) for item in found)
    return refuse(*faults) if faults else InvalidInput(error.detail)


def refuse(*faults: Fault) -> InvalidInput:
    """The error that these faults of fields are, told in one line."""
    told = "; ".join(f"{fault.field}: {fault.message}" for fault in faults)
    return InvalidInput(told, errors=faults)


_Request = Request[object, object, object]  # type: ignore[type-var]

HANDLERS: ExceptionHandlersMap = {
    PlotiError: _answer_ploti,
    ClientGone: _answer_gone,
    HTTPException: _answer_http,
    Exception: _answer_unknown,
}
