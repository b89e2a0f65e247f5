"""`ploti admin versions`: versions released again."""

from __future__ import annotations

from cyclopts import App

from ploti.cli.datasets import Id
from ploti.cli.output import Json
from ploti.cli.states import tell_outcome
from ploti.client.connection import Client
from ploti.errors import ExitStatus

app = App(
    name="versions",
    help="Versions released again.",
    help_epilogue="Next: rebuild ID, when what read the source was wrong",
)


@app.command
def rebuild(dataset: Id, /, *, json: Json = False) -> ExitStatus:
    """Build the current version again, as a new one that subscribers load."""
    with Client() as client:
        outcome = client.admin.versions.rebuild(dataset)
    return tell_outcome(dataset, outcome, json=json)
