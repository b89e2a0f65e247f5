"""Stage: the limits of a matching, each of which a release of what broke it takes away (S-26)."""

from __future__ import annotations

from enum import StrEnum


class Limit(StrEnum):
    """What a matching may have at the most: pairs to compare, seconds, memory."""

    PAIRS = "pairs"
    SECONDS = "seconds"
    MEMORY = "memory"
