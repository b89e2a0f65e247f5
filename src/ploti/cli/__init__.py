"""The command `ploti`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ploti.cli.failures import end_badly
from ploti.cli.groups import make_app
from ploti.cli.profile import profile_chosen
from ploti.errors import ExitStatus


def main() -> None:
    """Run the command of this process's arguments, and end the process with its status."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command; a failure is told on one line, and has its status from the errors' table."""
    try:
        with profile_chosen(arguments) as rest:
            status = make_app()(rest)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - what is a fault of ours goes on
        return end_badly(error)
    return status if isinstance(status, int) else ExitStatus.DONE
