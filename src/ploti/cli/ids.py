"""`ploti admin ids`: record ids, and proposals to replace them."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from ploti.cli.building import following
from ploti.cli.datasets import Id
from ploti.cli.output import Json, print_fields, print_json, print_next, print_table, text
from ploti.cli.states import tell_outcome
from ploti.client.connection import Client
from ploti.errors import ExitStatus
from ploti.model.admin import Proposal, ProposalPage, ProposalState

app = App(
    name="ids",
    help="Record ids, and proposals to replace them.",
    help_epilogue="Next: proposals ID, then approve PROPOSAL or reject PROPOSAL, with --note",
)

ProposalArgument = Annotated[str, Parameter(help="A proposal's id: prop_…")]
Note = Annotated[str, Parameter(help="Why, for those who look later.")]
From = Annotated[
    str | None,
    Parameter(
        name="--from",
        help="Number the records in this column's order: it must tell them apart.",
    ),
]


@app.command
def proposals(dataset: Id, /, *, json: Json = False) -> None:
    """List what is proposed for a dataset: records that may go on under other ids, ids anew."""
    with Client() as client:
        found = [*client.admin.ids.proposals(dataset, limit=500)]
    if json:
        print_json(ProposalPage(proposals=found, next_cursor=None))
        return
    print_table(
        ["id", "state", "kind", "version", "records", "likely false", "made"],
        [
            [each.id, each.state, each.kind, each.version, each.records, _share(each), each.made_at]
            for each in found
        ],
        empty="Nothing is proposed.",
    )
    for each in found:
        if each.state is ProposalState.OPEN:
            _show_examples(each)


@app.command
def show(proposal: ProposalArgument, /, *, json: Json = False) -> None:
    """Show a proposal: what it would change, and examples of rows as they were and as they are."""
    with Client() as client:
        found = client.admin.ids.show(proposal)
    if json:
        print_json(found)
        return
    print_fields(
        {
            "id": found.id,
            "state": found.state,
            "kind": found.kind,
            "dataset": found.dataset_id,
            "version": found.version,
            "records": found.records,
            "likely false": _share(found),
            "in the order of": found.column,
            "made": found.made_at,
            "decided": found.decided_at,
            "note": found.note or None,
        }
    )
    if found.state is ProposalState.OPEN:
        _show_examples(found)


@app.command
def replace(dataset: Id, /, *, from_: From = None, json: Json = False) -> None:
    """Propose to deal all record ids of a dataset anew; nothing changes before it is approved."""
    with Client() as client:
        made = client.admin.ids.replace(dataset, from_column=from_)
    if json:
        print_json(made)
        return
    print_fields(
        {
            "id": made.id,
            "dataset": made.dataset_id,
            "version": made.version,
            "records": made.records,
            "in the order of": made.column,
        }
    )
    _say_next(made)


@app.command
def approve(proposal: ProposalArgument, /, *, note: Note = "", json: Json = False) -> ExitStatus:
    """Replace ids as proposed: a version that subscribers load, with a map from the ids before."""
    with Client() as client:
        dataset = client.admin.ids.show(proposal).dataset_id
        with following(dataset, quiet=json):
            outcome = client.admin.ids.approve(proposal, note=note)
    return tell_outcome(proposal, outcome, json=json)


@app.command
def reject(proposal: ProposalArgument, /, *, note: Note = "", json: Json = False) -> None:
    """Put a proposal aside: the ids stay as they are."""
    with Client() as client:
        found = client.admin.ids.reject(proposal, note=note)
    if json:
        print_json(found)
        return
    print_fields({"id": found.id, "state": found.state, "note": found.note or None})


def _share(proposal: Proposal) -> str | None:
    return None if proposal.estimate is None else f"{proposal.estimate:.0%}"


def _show_examples(proposal: Proposal) -> None:
    for example in proposal.examples:
        print(f"  {text(example)}")
    _say_next(proposal)


def _say_next(proposal: Proposal) -> None:
    print_next(f"ploti admin ids approve {proposal.id}", f"ploti admin ids reject {proposal.id}")
