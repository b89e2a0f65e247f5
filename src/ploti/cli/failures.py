"""What is told to people and to the shell when a command fails."""

from __future__ import annotations

import os
import sys
import traceback

from cyclopts import CycloptsError

from ploti.errors import ApiError, ExitStatus, Fault, PlotiError

_SERVERS = ("ploti.server.", "ploti.demo.")
"""Modules that need the libraries of the extra `server`; the others need those of `sync`."""

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
            advice = f"pip install 'ploti[{_extra(error)}]' brings what this command needs"
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
    error = _first(error)
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    return None if name is None or name.split(".")[0] == "ploti" else name


def _extra(error: BaseException) -> str:
    """The extra that brings it: the server's where code of the server's was being loaded."""
    loaded = [
        str(frame.f_globals.get("__name__", ""))
        for frame, _ in traceback.walk_tb(_first(error).__traceback__)
    ]
    return "server" if any(name.startswith(_SERVERS) for name in loaded) else "sync"


def _first(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error
