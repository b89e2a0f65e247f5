"""What is told to people and to the shell when a command fails."""

from __future__ import annotations

import os
import sys

from cyclopts import CycloptsError

from ploti.errors import ApiError, ExitStatus, Fault, PlotiError

INTERRUPTED = 130
"""What a shell expects of a command that Ctrl-C ended."""


def end_badly(error: BaseException) -> int:
    """Say in one line what went wrong, and give the exit status; a fault of ours is raised on."""
    match error:
        case PlotiError():
            return _say(_words(error), error.exit_status)
        case CycloptsError():
            command = " ".join(["ploti", *(error.command_chain or ()), "--help"])
            return _say(f"{error} See {command}", ExitStatus.USAGE)
        case KeyboardInterrupt():
            return INTERRUPTED
        case BrokenPipeError():  # what reads our output has had enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return ExitStatus.DONE
        case OSError():
            return _say(f"{error.filename or 'system'}: {error.strerror}", ExitStatus.FAILED)
        case ImportError() if (library := _library(error)) is not None:
            advice = "pip install 'ploti[all]' brings what every command needs"
            return _say(f"{library} is not installed: {advice}", ExitStatus.FAILED)
        case _:
            raise error


def _say(message: str, status: ExitStatus) -> int:
    print("Error:", " ".join(message.split()), file=sys.stderr)
    return status


def _words(error: PlotiError) -> str:
    """The error's own words, and the faults that they do not name already."""
    faults = error.errors if isinstance(error, ApiError) else ()
    unsaid = [each for each in faults if not _is_said(each, error.detail)]
    return "; ".join([error.detail, *(f"{each.field} {each.message}" for each in unsaid)])


def _is_said(fault: Fault, detail: str) -> bool:
    """Whether the detail names the fault: faults of two fields may have the same message."""
    return f"{fault.field} {fault.message}" in detail or f"{fault.field}: {fault.message}" in detail


def _library(error: BaseException) -> str | None:
    """The library of others that is missing, below what a lazily loaded command raises."""
    while error.__cause__ is not None:
        error = error.__cause__
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    return None if name is None or name.split(".")[0] == "ploti" else name
