"""What is measured of a server: what happens, told as it does, and how things stand, when asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ploti.model.admin import OutcomeKind, Queue
from ploti.model.wire import Instant, Value
from ploti.server.deliver.answers import Result


class Measures(Value, kw_only=True):
    """How things stand in the database, at one moment.

    `events_behind` counts what the webhooks that are on have not come to; `undelivered_since` is
    the time of the oldest event that one of them has not got. `webhooks` are counted by the reason
    why they are off, or as `on`; versions and holds by their states.
    """

    events_behind: int
    undelivered_since: Instant | None
    waiting: int
    webhooks: Mapping[str, int]
    versions: Mapping[str, int]
    holds: Mapping[str, int]
    building: int
    failing_sources: int
    jobs: Sequence[Queue]


class Meters(Protocol):
    """Takes what happens in this process; every call is cheap and may be made in the event loop."""

    def attempted(self, result: Result, *, ms: int) -> None:
        """A delivery was attempted: what became of it, and how long the answer took."""
        ...

    def serving(self, lanes: int) -> None:
        """So many lanes have a turn now."""
        ...

    def ended(self, outcome: OutcomeKind) -> None:
        """A check, a push or a build again came to its end."""
        ...

    def text(self, measures: Measures, *, now: Instant) -> bytes:
        """All of it in the text format of Prometheus."""
        ...
