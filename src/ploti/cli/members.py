"""`ploti admin members`: the people and services in workspaces."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from ploti.cli.output import Json, print_fields, print_json, print_next, print_table
from ploti.client.connection import Client
from ploti.model.account import Member, MemberPage

app = App(
    name="members",
    help="The people and services in workspaces.",
    help_epilogue="Next: add WORKSPACE NAME, then ploti admin keys create MEMBER",
)


@app.command
def add(
    workspace: Annotated[str, Parameter(help="A workspace's id: ws_…")],
    name: Annotated[str, Parameter(help="Who it is.")],
    /,
    *,
    json: Json = False,
) -> None:
    """Add a person or a service to a workspace."""
    with Client() as client:
        made = client.admin.members.add(workspace, name)
    _print(made, json=json)
    if not json:
        print_next(f"ploti admin keys create {made.id}")


@app.command(name="list")
def list_members(
    *,
    workspace: Annotated[str | None, Parameter(help="Only those of this one.")] = None,
    json: Json = False,
) -> None:
    """List members, oldest first, those who left too."""
    with Client() as client:
        found = [*client.admin.members.list(workspace=workspace, limit=500)]
    if json:
        print_json(MemberPage(members=found, next_cursor=None))
        return
    print_table(
        ["id", "workspace", "name", "since", "left"],
        [[each.id, each.workspace_id, each.name, each.created_at, each.left_at] for each in found],
        empty="No members.",
    )


@app.command
def remove(
    member: Annotated[str, Parameter(help="A member's id: mem_…")], /, *, json: Json = False
) -> None:
    """Have a member leave: its keys are revoked, and its webhooks turned off."""
    with Client() as client:
        gone = client.admin.members.remove(member)
    _print(gone, json=json)


def _print(member: Member, *, json: bool) -> None:
    if json:
        print_json(member)
        return
    print_fields(
        {
            "id": member.id,
            "workspace": member.workspace_id,
            "name": member.name,
            "since": member.created_at,
            "left": member.left_at,
        }
    )
