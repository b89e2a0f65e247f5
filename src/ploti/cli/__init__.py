"""The command `ploti`: its groups, and what the shell is told at the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from cyclopts import App, CycloptsError

from ploti.cli.groups import add_groups
from ploti.errors import ApiError, ExitStatus, PlotiError

INTERRUPTED = 130
"""What a shell expects of a command that Ctrl-C ended."""


def main() -> None:
    """Run the command of this process's arguments, and end the process with its status."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command; an error is told on one line, and gives the status of its table."""
    app = App(
        name="ploti",
        version=lambda: version("ploti"),
        help_format="plaintext",
        suppress_keyboard_interrupt=False,
    )
    add_groups(app)
    try:
        status = app(
            arguments, exit_on_error=False, print_error=False, result_action="return_value"
        )
        sys.stdout.flush()
    except CycloptsError as error:
        command = " ".join(["ploti", *(error.command_chain or ()), "--help"])
        return _fail(f"{error} See {command}", ExitStatus.USAGE)
    except PlotiError as error:
        return _fail(_say(error), error.exit_status)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # what reads our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitStatus.DONE
    except OSError as error:
        return _fail(f"{error.filename or 'system'}: {error.strerror}", ExitStatus.FAILED)
    return status if isinstance(status, int) else ExitStatus.DONE


def _fail(message: str, status: ExitStatus) -> int:
    print("Error:", " ".join(message.split()), file=sys.stderr)
    return status


def _say(error: PlotiError) -> str:
    """The problem's own words, and the faults that they do not name already."""
    faults = error.errors if isinstance(error, ApiError) else ()
    unsaid = [f"{each.field} {each.message}" for each in faults if each.message not in error.detail]
    return "; ".join([error.detail, *unsaid])
