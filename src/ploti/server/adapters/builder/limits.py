"""What a build may use, and how the child binds itself to it before it reads a byte."""

from __future__ import annotations

import os
import resource

from ploti.model.wire import Value
from ploti.server.build.candidate import Order

OPEN_FILES = 256
PATIENCE = 10
"""How much later than the soft limit on CPU seconds the hard one is, which cannot be caught."""

NICENESS = 10
"""Builds give way to the server, which must answer at once while they use every core."""


class Limits(Value, kw_only=True):
    """Data size in bytes, CPU and wall seconds, and the size of one file in bytes."""

    memory: int
    seconds: int
    file_size: int


class Task(Value, kw_only=True):
    """What the child gets on its standard input: one line."""

    limits: Limits
    order: Order


def bind(limits: Limits) -> None:
    """Bind this process for good: data (not address space, of which DuckDB maps far more), CPU."""
    for kind, soft, hard in (
        (resource.RLIMIT_DATA, limits.memory, limits.memory),
        (resource.RLIMIT_CPU, limits.seconds, limits.seconds + PATIENCE),
        (resource.RLIMIT_FSIZE, limits.file_size, limits.file_size),
        (resource.RLIMIT_NOFILE, OPEN_FILES, OPEN_FILES),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        resource.setrlimit(kind, (soft, hard))
    os.nice(NICENESS)
