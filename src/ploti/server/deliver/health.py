"""How a webhook fares: its failures, its pauses, and when it is turned off for them."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from ploti.model.wire import Instant, Value
from ploti.server.deliver.answers import Result, Verdict

FAILING_FOR = timedelta(days=5)
GIVEN_UP = 3
"""So many deliveries are given up, in five days without one success, before a webhook is off."""

SLOW = 2000
"""Milliseconds of the usual answer from which a webhook counts as slow."""

IN_FLIGHT = 4
_LONGEST_PACE = 30
_WEIGHT = 0.3


class Health(Value, kw_only=True):
    """A lane's state: failures in a row and deliveries given up since the last success.

    First attempts are paced until `paced_until`; nothing at all is sent before `paused_until`,
    which a receiver asked for. `average_ms` is a moving average.
    """

    failures: int = 0
    given_up: int = 0
    failing_since: Instant | None = None
    last_success_at: Instant | None = None
    average_ms: int = 0
    paced_until: Instant | None = None
    paused_until: Instant | None = None

    @property
    def is_slow(self) -> bool:
        """Whether the lane shares its slots with others that fail or answer slowly."""
        return self.failing_since is not None or self.average_ms > SLOW

    @property
    def in_flight(self) -> int:
        """How many deliveries may be under way at once, of different datasets."""
        return 1 if self.is_slow else IN_FLIGHT

    def begins_at(self, at: Instant) -> Instant:
        """When a first attempt may be made: `at` or later."""
        return max(self.sends_at(at), self.paced_until or at)

    def sends_at(self, at: Instant) -> Instant:
        """When anything may be sent: `at` or later."""
        return max(at, self.paused_until or at)

    def may_begin(self, at: Instant) -> bool:
        """Whether a first attempt may be made."""
        return self.begins_at(at) == at

    def may_send(self, at: Instant) -> bool:
        """Whether anything may be sent."""
        return self.sends_at(at) == at

    @property
    def is_given_up(self) -> bool:
        """Whether enough deliveries were given up for the webhook to be turned off."""
        return self.given_up >= GIVEN_UP


def after(health: Health, verdict: Verdict, *, ms: int, at: Instant) -> Health:
    """The state after an attempt that took `ms` and ended at `at`."""
    average = round(health.average_ms + _WEIGHT * (ms - health.average_ms))
    if verdict.result is Result.DELIVERED:
        return Health(last_success_at=at, average_ms=average)
    failures = health.failures + 1
    return msgspec.structs.replace(
        health,
        failures=failures,
        given_up=health.given_up + (verdict.result is Result.FAILED),
        failing_since=health.failing_since or at,
        average_ms=average,
        paced_until=Instant.of(at + _pace(failures)),
        paused_until=max(
            (each for each in (health.paused_until, verdict.paused_until) if each), default=None
        ),
    )


def is_failing(health: Health, *, at: Instant) -> bool:
    """Whether nothing got through for so long that the webhook is turned off."""
    since = health.failing_since
    return health.is_given_up and since is not None and since + FAILING_FOR <= at


def _pace(failures: int) -> timedelta:
    """The pause before the next first attempt: 0, 1, 2, 4 … 30 seconds."""
    return timedelta(seconds=min(2 ** (failures - 2), _LONGEST_PACE) if failures > 1 else 0)
