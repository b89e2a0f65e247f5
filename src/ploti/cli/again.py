"""`ploti admin versions`: versions released again."""

from __future__ import annotations

from cyclopts import App

from ploti.cli.building import following
from ploti.cli.datasets import Id, Number
from ploti.cli.output import Json, print_line
from ploti.cli.states import tell_outcome
from ploti.client.connection import Client
from ploti.errors import ExitStatus

app = App(
    name="versions",
    help="Versions released again.",
    help_epilogue="Next: rebuild ID when a reader was wrong, restore ID VERSION to go back to one",
)


@app.command
def rebuild(dataset: Id, /, *, json: Json = False) -> ExitStatus:
    """Build the current version again, as a new one that subscribers load."""
    with Client() as client, following(dataset, quiet=json):
        outcome = client.admin.versions.rebuild(dataset)
    return tell_outcome(dataset, outcome, json=json)


@app.command
def restore(dataset: Id, version: Number, /, *, json: Json = False) -> ExitStatus:
    """Make an older version's content current again, as a new one; checks pause until resumed."""
    with Client() as client, following(dataset, quiet=json):
        outcome = client.admin.versions.restore(dataset, version)
    if not json:
        print_line(f"Checks of {dataset} are paused: ploti admin datasets resume {dataset}")
    return tell_outcome(dataset, outcome, json=json)
