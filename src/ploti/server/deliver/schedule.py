"""When a failed delivery is tried again: six times, in a day and a half (R-153)."""

from __future__ import annotations

from datetime import timedelta

STEPS = (
    timedelta(seconds=30),
    timedelta(minutes=5),
    timedelta(minutes=45),
    timedelta(hours=3),
    timedelta(hours=10),
    timedelta(hours=22),
)
"""The waits before the retries; chance only ever adds to them."""

_FIRST_SPREAD = timedelta(seconds=30)
_SPREAD = 0.1


def next_try_after(
    attempts: int, chance: float, *, least: timedelta = timedelta(0)
) -> timedelta | None:
    """How long to wait after attempt number `attempts`; None where it was the last.

    Receivers that failed together are spread by `chance`, 0 to 1: over 30 seconds the first time,
    over a tenth of the step from then on. `least` is what the receiver asked for (S-52).
    """
    if attempts > len(STEPS):
        return None
    step = STEPS[attempts - 1]
    spread = _FIRST_SPREAD if attempts == 1 else step * _SPREAD
    return max(step, least) + spread * chance
