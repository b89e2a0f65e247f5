"""`ploti admin check` and `push`: a source's new state, and what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ploti.cli.building import following
from ploti.cli.datasets import Id
from ploti.cli.output import Json, print_fields, print_json, print_next, say_counts
from ploti.client.connection import Client
from ploti.errors import ExitStatus
from ploti.model.admin import Outcome, OutcomeKind


def check(
    dataset: Id,
    /,
    *,
    full: Annotated[
        bool,
        Parameter(
            negative=(),
            show_default=False,
            help="Read the source whole, whatever it says of its last change.",
        ),
    ] = False,
    json: Json = False,
) -> ExitStatus:
    """Check a dataset's source now, and wait for the outcome."""
    with Client() as client, following(dataset, quiet=json):
        outcome = client.admin.check(dataset, full=full)
    return tell_outcome(dataset, outcome, json=json)


def push(
    dataset: Id,
    file: Annotated[Path, Parameter(help="The file that is the source's new state.")],
    /,
    *,
    dry_run: Annotated[
        bool,
        Parameter(negative=(), show_default=False, help="Do the whole build, and store nothing."),
    ] = False,
    json: Json = False,
) -> ExitStatus:
    """Upload a file as the source's new state, and wait for the outcome.

    It is released, held for review (both are exit status 0), unchanged, or it failed.
    """
    with (
        Client() as client,
        following(dataset, sending=file.name, quiet=json) as progress,
    ):
        outcome = client.admin.push(dataset, file, dry_run=dry_run, progress=progress)
    if dry_run and not json:
        print("What a push would come to; nothing is stored:\n")
    return tell_outcome(dataset, outcome, json=json, kept=not dry_run)


def tell_outcome(dataset: str, outcome: Outcome, *, json: bool, kept: bool = True) -> ExitStatus:
    """Print what came of a state, and give the exit status of it."""
    if json:
        print_json(outcome)
    else:
        _print(outcome)
        if kept:
            _print_next(dataset, outcome)
    failed = outcome.outcome is OutcomeKind.FAILED
    return ExitStatus.FAILED if failed else ExitStatus.DONE


def _print(outcome: Outcome) -> None:
    hold = outcome.hold
    print_fields(
        {
            "outcome": outcome.outcome,
            "version": outcome.version,
            "changes": say_counts(outcome.counts),
            "hold": hold and f"{hold.id}, {hold.reason}",
            "detail": outcome.detail or None,
        }
    )


def _print_next(dataset: str, outcome: Outcome) -> None:
    match outcome.outcome:
        case OutcomeKind.HELD if outcome.hold is not None:
            print_next(f"ploti admin holds show {outcome.hold.id}")
        case OutcomeKind.RELEASED:
            print_next(f"ploti feeds datasets versions {dataset}")
        case _:
            pass
