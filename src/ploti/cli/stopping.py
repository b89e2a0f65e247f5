"""SIGTERM ends a command as Ctrl-C does: what it has opened is closed on the way out."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stopped(BaseException):
    """The process was asked to end."""


@contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the block by Stopped, once: a second one must not break the way out.

    A block that lets Stopped through ends the process with status 143.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Stopped

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except Stopped:
        sys.exit(128 + signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
