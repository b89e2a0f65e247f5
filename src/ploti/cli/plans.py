"""`ploti admin plans`: which topics and datasets are open to the workspaces on a plan."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from ploti.cli.output import Json, print_fields, print_json, print_next, print_table
from ploti.client.connection import Client
from ploti.model.account import Plan, PlanPage
from ploti.model.wire import UNSET

app = App(
    name="plans",
    help="Named lists of the topics and datasets that are open inside a workspace's coverage.",
    help_epilogue="Next: create ID --topic T, then ploti admin workspaces update WS --plan ID",
)

Id = Annotated[str, Parameter(help="A plan's id, as it was chosen: permits-only.")]
Topics = Annotated[
    list[str] | None,
    Parameter(name="--topic", negative="--no-topics", help="A topic and all below it: permits."),
]
Datasets = Annotated[
    list[str] | None, Parameter(name="--dataset", negative="--no-datasets", help="A dataset's id.")
]


@app.command
def create(
    plan: Id, /, *, topics: Topics = None, datasets: Datasets = None, json: Json = False
) -> None:
    """Create a plan; one without topics and datasets opens everything."""
    with Client() as client:
        made = client.admin.plans.create(plan, topics=topics or None, datasets=datasets or None)
    _print(made, json=json)
    if not json:
        print_next(f"ploti admin workspaces update WORKSPACE --plan {made.id}")


@app.command(name="list")
def list_plans(*, json: Json = False) -> None:
    """List all plans."""
    with Client() as client:
        found = [*client.admin.plans.list(limit=500)]
    if json:
        print_json(PlanPage(plans=found, next_cursor=None))
        return
    print_table(
        ["id", "opens", "created"],
        [[each.id, _opens(each), each.created_at] for each in found],
        empty="No plans.",
    )


@app.command
def show(plan: Id, /, *, json: Json = False) -> None:
    """Show a plan."""
    with Client() as client:
        found = client.admin.plans.show(plan)
    _print(found, json=json)


@app.command
def update(
    plan: Id, /, *, topics: Topics = None, datasets: Datasets = None, json: Json = False
) -> None:
    """Replace the topics or the datasets; the workspaces on the plan follow, with their events."""
    with Client() as client:
        changed = client.admin.plans.update(
            plan,
            topics=UNSET if topics is None else topics or None,
            datasets=UNSET if datasets is None else datasets or None,
        )
    _print(changed, json=json)


def _opens(plan: Plan) -> object:
    if plan.topics is None and plan.datasets is None:
        return "everything"
    return [*(plan.topics or []), *(plan.datasets or [])]


def _print(plan: Plan, *, json: bool) -> None:
    if json:
        print_json(plan)
    else:
        print_fields({"id": plan.id, "opens": _opens(plan), "created": plan.created_at})
