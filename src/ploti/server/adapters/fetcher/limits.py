"""How long and how often a web source is asked, in seconds."""

from __future__ import annotations

from ploti.model.wire import Value


class Limits(Value, kw_only=True):
    """Limits of one fetch: `pauses` are those between its tries, which are one more.

    `at_once` is how many requests one host gets at a time; the others wait for their turn.
    """

    connect: float = 10
    silence: float = 60
    total: float = 3600
    redirects: int = 5
    pauses: tuple[float, ...] = (1, 5)
    longest_pause: float = 60
    at_once: int = 4
