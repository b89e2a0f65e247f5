"""The child's side: bind itself, do the order, tell how far it is, and end when the server does."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO

from ploti.errors import SourceError
from ploti.model.wire import decode
from ploti.server.adapters.builder import reports
from ploti.server.adapters.builder.limits import Limits, Task, bind
from ploti.server.build.candidate import Broken, Order, Result
from ploti.server.build.progress import Telling

Work = Callable[[Order, Limits, Telling], Result]
"""A build or an export: the order, what the whole process may take, and where to tell of it."""

ABANDONED = 70


def run_child(work: Work, *, is_out_of_memory: Callable[[Exception], bool]) -> None:
    """Do the one order on standard input and write its result to the descriptor in argv.

    `is_out_of_memory` knows the errors by which the libraries say that memory ran out.
    """
    pipe = os.fdopen(int(sys.argv[1]), "wb", buffering=0)
    task = decode(sys.stdin.buffer.readline(), Task)
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    bind(task.limits)
    telling = Telling(lambda progress: _send(pipe, reports.told(progress)))
    with pipe:
        _send(pipe, reports.result(_attempt(work, task, telling, is_out_of_memory)))


def _send(pipe: BinaryIO, message: bytes) -> None:
    """Write it whole: an unbuffered pipe may take a part."""
    rest = memoryview(message)
    while rest:
        rest = rest[pipe.write(rest) :]


def _attempt(
    work: Work, task: Task, telling: Telling, is_out_of_memory: Callable[[Exception], bool]
) -> Result:
    try:
        return work(task.order, task.limits, telling)
    except SourceError as error:
        return Broken(detail=error.detail)
    except Exception as error:
        if is_out_of_memory(error):
            return Broken(detail=say_out_of_memory(task.limits.memory))
        raise


def say_out_of_memory(limit: int) -> str:
    """The reason of a build that took more than it may."""
    return f"the build needs more memory than the {limit >> 20} MiB of PLOTI_BUILD_MEMORY"


def _end_with_the_server() -> None:
    """Nobody is left to take the result once the server's end of the pipe is closed."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(ABANDONED)
