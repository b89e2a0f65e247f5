"""`ploti admin workspaces`: the accounts, what they may have, and whether they are public."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from ploti.cli.output import Json, print_fields, print_json, print_next, print_table
from ploti.client.connection import Client
from ploti.model.account import DEFAULT_PLAN, Workspace, WorkspacePage
from ploti.model.wire import UNSET

app = App(
    name="workspaces",
    help="The accounts that own keys, subscriptions and webhooks.",
    help_epilogue="Next: create NAME, then ploti admin members add WORKSPACE NAME",
)

Id = Annotated[str, Parameter(help="A workspace's id: ws_…")]
Coverage = Annotated[
    list[str] | None,
    Parameter(
        name="--coverage",
        negative="--everywhere",
        help="A place that it may have, with all below it: us/fl. None given is everywhere.",
    ),
]
Public = Annotated[
    bool | None,
    Parameter(help="Its catalogue and files can be read without a key.", show_default=False),
]


@app.command
def create(
    name: Annotated[str, Parameter(help="What to call it.")],
    /,
    *,
    coverage: Coverage = None,
    plan: Annotated[str, Parameter(help="The plan that it is on.")] = DEFAULT_PLAN,
    public: Public = None,
    json: Json = False,
) -> None:
    """Create a workspace."""
    with Client() as client:
        made = client.admin.workspaces.create(
            name, coverage=coverage or None, plan=plan, public=bool(public)
        )
    _print(made, json=json)
    if not json:
        print_next(f"ploti admin members add {made.id} NAME")


@app.command(name="list")
def list_workspaces(*, json: Json = False) -> None:
    """List all workspaces, oldest first."""
    with Client() as client:
        found = [*client.admin.workspaces.list(limit=500)]
    if json:
        print_json(WorkspacePage(workspaces=found, next_cursor=None))
        return
    print_table(
        ["id", "name", "coverage", "plan", "public", "created"],
        [
            [each.id, each.name, _places(each), each.plan_id, each.public, each.created_at]
            for each in found
        ],
        empty="No workspaces.",
    )


@app.command
def show(workspace: Id, /, *, json: Json = False) -> None:
    """Show a workspace."""
    with Client() as client:
        found = client.admin.workspaces.show(workspace)
    _print(found, json=json)


@app.command
def update(
    workspace: Id,
    /,
    *,
    name: Annotated[str | None, Parameter(help="What to call it.")] = None,
    coverage: Coverage = None,
    plan: Annotated[str | None, Parameter(help="The plan that it is on.")] = None,
    public: Public = None,
    json: Json = False,
) -> None:
    """Change what is given; the workspace's subscriptions follow, with their events."""
    with Client() as client:
        changed = client.admin.workspaces.update(
            workspace,
            name=UNSET if name is None else name,
            coverage=UNSET if coverage is None else coverage or None,
            plan=UNSET if plan is None else plan,
            public=UNSET if public is None else public,
        )
    _print(changed, json=json)


def _places(workspace: Workspace) -> object:
    return "everywhere" if workspace.coverage is None else workspace.coverage


def _print(workspace: Workspace, *, json: bool) -> None:
    if json:
        print_json(workspace)
        return
    print_fields(
        {
            "id": workspace.id,
            "name": workspace.name,
            "coverage": _places(workspace),
            "plan": workspace.plan_id,
            "public": workspace.public,
            "created": workspace.created_at,
        }
    )
