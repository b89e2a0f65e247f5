"""`ploti admin holds`: versions kept back for review, and how their review ends."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from ploti.cli.building import following
from ploti.cli.output import (
    Json,
    print_fields,
    print_json,
    print_next,
    print_table,
    say_counts,
    text,
)
from ploti.client.connection import Client
from ploti.model.admin import AcceptedPage, Hold, HoldPage, HoldState

app = App(
    name="holds",
    help="Versions kept back for review.",
    help_epilogue="Next: list, then show HOLD, then release HOLD or discard HOLD, with --note",
)

Id = Annotated[str, Parameter(help="A hold's id: hold_…")]
DatasetId = Annotated[str, Parameter(help="A dataset's id: ds_…")]
Note = Annotated[str, Parameter(help="Why, for those who look later.")]
State = Annotated[
    HoldState | None, Parameter(help="Only those that stand so; `open` ones wait for review.")
]


@app.command(name="list")
def list_holds(*, state: State = None, json: Json = False) -> None:
    """List holds, newest first."""
    with Client() as client:
        found = [*client.admin.holds.list(state=state, limit=500)]
    if json:
        print_json(HoldPage(holds=found, next_cursor=None))
        return
    print_table(
        ["id", "state", "dataset", "version", "reason", "since"],
        [
            [each.id, each.state, each.dataset_id, each.version, each.reason, each.since]
            for each in found
        ],
        empty="No holds.",
    )
    for each in found:
        if each.state is HoldState.OPEN:
            print_next(f"ploti admin holds show {each.id}")
            break


@app.command
def show(hold: Id, /, *, json: Json = False) -> None:
    """Show a hold: what was found, the schema change, the counts and examples."""
    with Client() as client:
        found = client.admin.holds.show(hold)
    _print(found, json=json)


@app.command
def release(hold: Id, /, *, note: Note = "", json: Json = False) -> None:
    """Send the held version to its subscribers; one that is not matched is matched first."""
    with Client() as client:
        shown = client.admin.holds.show(hold)
        with following(shown.dataset_id, quiet=json or shown.matched):
            found = client.admin.holds.release(hold, note=note)
    _print(found, json=json)


@app.command
def discard(hold: Id, /, *, note: Note = "", json: Json = False) -> None:
    """Throw the held version away; the current one stays."""
    with Client() as client:
        found = client.admin.holds.discard(hold, note=note)
    _print(found, json=json)


@app.command
def accepted(
    dataset: DatasetId,
    /,
    *,
    withdraw: Annotated[
        str | None, Parameter(help="The id of a finding that is to hold versions again.")
    ] = None,
    json: Json = False,
) -> None:
    """List what releases of a dataset accepted: it holds no version again that is not worse."""
    with Client() as client:
        if withdraw is not None:
            client.admin.holds.withdraw(dataset, withdraw)
        found = [*client.admin.holds.accepted(dataset, limit=500)]
    if json:
        print_json(AcceptedPage(findings=found, next_cursor=None))
        return
    print_table(
        ["id", "kind", "finding", "accepted", "by", "note"],
        [
            [
                *(each.id, each.kind, each.message, each.accepted_at),
                *(each.accepted_by_name or each.accepted_by, each.note),
            ]
            for each in found
        ],
        empty="Nothing is accepted.",
    )


def _print(hold: Hold, *, json: bool) -> None:
    if json:
        print_json(hold)
        return
    print_fields(
        {
            "id": hold.id,
            "state": hold.state,
            "dataset": hold.dataset_id,
            "version": hold.version,
            "base version": hold.current_version,
            "reason": hold.reason,
            "since": hold.since,
            "rows": hold.row_count,
            "base rows": hold.current_row_count,
            "changes": say_counts(hold.counts),
            "schema change": _schema_change(hold),
            "decided": hold.decided_at,
            "by": hold.decided_by_name or hold.decided_by,
            "note": hold.note or None,
        }
    )
    for finding in hold.findings:
        weight = finding.reason or ("accepted before" if finding.accepted else "noted")
        print(f"\n{text(weight)}: {text(finding.message)}")
        for example in finding.examples:
            print(f"  {text(example)}")
    if hold.state is HoldState.OPEN:
        print_next(f"ploti admin holds release {hold.id}", f"ploti admin holds discard {hold.id}")


def _schema_change(hold: Hold) -> str | None:
    change = hold.schema_change
    if change is None:
        return None
    return f"{change.level}, {change.from_} to {change.to}"
