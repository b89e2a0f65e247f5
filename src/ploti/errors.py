"""The error tree, and the one table that gives each code its HTTP status, exit status and retry."""

# PlotiError
#   ApiError                  an answer of the server, one class a code
#     InvalidInput, Unauthenticated, Forbidden, NotFound, MethodNotAllowed, TooSlow,
#     NotSubscribed, OutsideCoverage, NotDeliverable, Conflict, Expired, TooLarge,
#     RateLimited, InternalError, Unavailable
#   TransportError            no answer: the server cannot be reached, or broke off
#   ConfigError               what was given to this side is missing or wrong
#   InvalidSignature          a webhook's body is not what its sender signed
#   SourceError               a source cannot be read as it stands
#   SyncError                 a destination cannot be kept in step
#     DestinationBusy, VerificationFailed

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import ClassVar, NamedTuple


class ExitStatus(IntEnum):
    """What a command tells the shell."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    BEHIND = 3
    BUSY = 4
    DIFFERS = 5
    REFUSED = 6
    UNREACHABLE = 7


class Code(StrEnum):
    """The stable names of what can go wrong, as `code` in a problem (contract, 'Errors')."""

    INVALID_INPUT = "invalid_input"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    TOO_SLOW = "too_slow"
    NOT_SUBSCRIBED = "not_subscribed"
    OUTSIDE_COVERAGE = "outside_coverage"
    NOT_DELIVERABLE = "not_deliverable"
    CONFLICT = "conflict"
    EXPIRED = "expired"
    TOO_LARGE = "too_large"
    RATE_LIMITED = "rate_limited"
    INTERNAL = "internal"
    UNAVAILABLE = "unavailable"


class Meaning(NamedTuple):
    """What a code means on each side: HTTP status, title, exit status, whether to try again."""

    status: int
    title: str
    exit_status: ExitStatus
    retry: bool


MEANINGS: dict[Code, Meaning] = {
    Code.INVALID_INPUT: Meaning(400, "Invalid input", ExitStatus.FAILED, retry=False),
    Code.UNAUTHENTICATED: Meaning(401, "Key refused", ExitStatus.REFUSED, retry=False),
    Code.FORBIDDEN: Meaning(403, "Not allowed", ExitStatus.REFUSED, retry=False),
    Code.NOT_FOUND: Meaning(404, "Not found", ExitStatus.FAILED, retry=False),
    Code.METHOD_NOT_ALLOWED: Meaning(405, "Method not allowed", ExitStatus.FAILED, retry=False),
    Code.TOO_SLOW: Meaning(408, "Too slow", ExitStatus.FAILED, retry=False),
    Code.NOT_SUBSCRIBED: Meaning(409, "Not subscribed", ExitStatus.FAILED, retry=False),
    Code.OUTSIDE_COVERAGE: Meaning(409, "Outside coverage", ExitStatus.FAILED, retry=False),
    Code.NOT_DELIVERABLE: Meaning(409, "Not deliverable", ExitStatus.FAILED, retry=False),
    Code.CONFLICT: Meaning(409, "Conflict", ExitStatus.FAILED, retry=False),
    Code.EXPIRED: Meaning(410, "Expired", ExitStatus.FAILED, retry=False),
    Code.TOO_LARGE: Meaning(413, "Too large", ExitStatus.FAILED, retry=False),
    Code.RATE_LIMITED: Meaning(429, "Too many requests", ExitStatus.FAILED, retry=True),
    Code.INTERNAL: Meaning(500, "Server error", ExitStatus.FAILED, retry=False),
    Code.UNAVAILABLE: Meaning(503, "Not available now", ExitStatus.FAILED, retry=True),
}


class Fault(NamedTuple):
    """What is wrong with one field of the input."""

    field: str
    message: str


class PlotiError(Exception):
    """Something that ploti was asked to do could not be done."""

    exit_status: ClassVar[ExitStatus] = ExitStatus.FAILED

    def __init__(self, detail: str | None = None) -> None:
        self.detail = detail or (type(self).__doc__ or "").partition("\n")[0]
        super().__init__(self.detail)


class ApiError(PlotiError):
    """The server answered with a problem."""

    code: ClassVar[Code] = Code.INTERNAL

    def __init__(
        self,
        detail: str | None = None,
        *,
        errors: tuple[Fault, ...] = (),
        retry_after: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.errors = errors
        self.retry_after = retry_after

    def __init_subclass__(cls) -> None:
        cls.exit_status = MEANINGS[cls.code].exit_status


class InvalidInput(ApiError):
    """A value that cannot be meant."""

    code = Code.INVALID_INPUT


class Unauthenticated(ApiError):
    """No key was given, or it is not known or was revoked."""

    code = Code.UNAUTHENTICATED


class Forbidden(ApiError):
    """The key lacks the permission for this."""

    code = Code.FORBIDDEN


class NotFound(ApiError):
    """There is no such thing in this workspace."""

    code = Code.NOT_FOUND


class MethodNotAllowed(ApiError):
    """The address does not take this method."""

    code = Code.METHOD_NOT_ALLOWED


class TooSlow(ApiError):
    """A request took too long to come in."""

    code = Code.TOO_SLOW


class NotSubscribed(ApiError):
    """No subscription of the workspace delivers this dataset."""

    code = Code.NOT_SUBSCRIBED


class OutsideCoverage(ApiError):
    """The dataset lies outside the workspace's coverage or plan."""

    code = Code.OUTSIDE_COVERAGE


class NotDeliverable(ApiError):
    """The dataset is no longer delivered."""

    code = Code.NOT_DELIVERABLE


class Conflict(ApiError):
    """The thing is in another state than the call needs."""

    code = Code.CONFLICT


class Expired(ApiError):
    """What was asked for is past retention."""

    code = Code.EXPIRED


class TooLarge(ApiError):
    """A body or a listing is over its limit."""

    code = Code.TOO_LARGE


class RateLimited(ApiError):
    """Too many requests: wait, then try again."""

    code = Code.RATE_LIMITED


class InternalError(ApiError):
    """The server failed; its log says why."""

    code = Code.INTERNAL


class Unavailable(ApiError):
    """Not available at this moment: wait, then try again."""

    code = Code.UNAVAILABLE


class TransportError(PlotiError):
    """The server cannot be reached."""

    exit_status = ExitStatus.UNREACHABLE


class ConfigError(PlotiError):
    """A setting is missing or wrong."""

    exit_status = ExitStatus.USAGE


class InvalidSignature(PlotiError):
    """The body is not what the holder of the secret signed, or not a message."""

    exit_status = ExitStatus.REFUSED


class SourceError(PlotiError):
    """The source cannot be read as it stands."""


class SyncError(PlotiError):
    """The destination cannot be kept in step."""


class DestinationBusy(SyncError):
    """The destination is locked or busy."""

    exit_status = ExitStatus.BUSY


class VerificationFailed(SyncError):
    """The copy differs from the version that it is held to be."""

    exit_status = ExitStatus.DIFFERS


BY_CODE: dict[Code, type[ApiError]] = {kind.code: kind for kind in ApiError.__subclasses__()}
"""The error class of each code, as the SDK raises it and the server answers it."""
