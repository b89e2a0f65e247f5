"""What a build may use, and how the child binds itself to it before it reads a byte."""

from __future__ import annotations

import os
import resource

from msgspec.structs import replace

from ploti.model.wire import Value
from ploti.server.build.candidate import Order
from ploti.server.build.limits import Limit

OPEN_FILES = 256
PATIENCE = 10
"""How much later than the soft limit on CPU seconds the hard one is, which cannot be caught."""

NICENESS = 10
"""Builds give way to the server, which must answer at once while they use every core."""


class Limits(Value, kw_only=True):
    """Data size in bytes, CPU and wall seconds (None for any), the size of one file in bytes.

    `match_seconds` are those of the matching alone: what comes before and after it needs some too.
    """

    memory: int
    seconds: int | None
    file_size: int
    match_seconds: float | None = None

    def without(self, lifted: Limit | None) -> Limits:
        """These limits, of which one does not bind: memory is all that the machine has then."""
        match lifted:
            case Limit.MEMORY:
                return replace(self, memory=max(self.memory, _machine_memory()))
            case Limit.SECONDS:
                return replace(self, seconds=None, match_seconds=None)
            case _:
                return self


def _machine_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class Task(Value, kw_only=True):
    """What the child gets on its standard input: one line."""

    limits: Limits
    order: Order


def bind(limits: Limits) -> None:
    """Bind this process for good: data (not address space, of which DuckDB maps far more), CPU."""
    seconds = [] if limits.seconds is None else [limits.seconds]
    for kind, soft, hard in (
        (resource.RLIMIT_DATA, limits.memory, limits.memory),
        *((resource.RLIMIT_CPU, most, most + PATIENCE) for most in seconds),
        (resource.RLIMIT_FSIZE, limits.file_size, limits.file_size),
        (resource.RLIMIT_NOFILE, OPEN_FILES, OPEN_FILES),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        resource.setrlimit(kind, (soft, hard))
    os.nice(NICENESS)
