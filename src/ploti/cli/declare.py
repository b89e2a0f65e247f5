"""`ploti admin datasets`: datasets and their declarations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import yaml
from cyclopts import App, Parameter

from ploti.cli.building import say_progress
from ploti.cli.datasets import Id, describe
from ploti.cli.declarations import Declared, read_declarations
from ploti.cli.output import Json, print_fields, print_json, print_next, print_table
from ploti.client.connection import Client
from ploti.errors import ApiError
from ploti.model.admin import AdminDataset, AdminDatasetPage, Applied

app = App(
    name="datasets",
    help="Datasets and declarations.",
    help_epilogue="Next: apply FILE, then ploti admin push ID FILE, or: ploti admin check ID",
)


@app.command(name="apply")
def apply_datasets(
    files: Annotated[
        list[Path],
        Parameter(name="FILE", negative=(), help="YAML files, each of one document or several."),
    ],
    /,
    *,
    dry_run: Annotated[
        bool,
        Parameter(
            negative=(), show_default=False, help="Say what would change, and change nothing."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Create or update datasets from their declarations; says what changed."""
    declared = [each for file in files for each in read_declarations(file)]
    with Client() as client:
        applied = [_apply(client, each, dry_run=True) for each in declared]  # all, before any
        if not dry_run:
            applied = [_apply(client, each, dry_run=False) for each in declared]
    if json:
        print_json({"applied": applied})
        return
    for each in applied:
        print(_say(each))
    if applied and not dry_run:
        print_next(_next(declared[0]))


def _next(declared: Declared) -> str:
    """How the dataset gets a state: by a check of its source, or by a push where it has none."""
    source = declared.settings.get("source")
    dataset_id = declared.settings["id"]
    if isinstance(source, dict) and "kind" in source:
        return f"ploti admin check {dataset_id}"
    return f"ploti admin push {dataset_id} FILE"


def _apply(client: Client, declared: Declared, *, dry_run: bool) -> Applied:
    try:
        return client.admin.datasets.apply(declared.settings, dry_run=dry_run)
    except ApiError as error:
        raise type(error)(f"{declared.place}: {error.detail}", errors=error.errors) from error


def _say(applied: Applied) -> str:
    would = "would be " if applied.dry_run else ""
    if applied.created:
        return f"{applied.dataset_id}: {would}created"
    if applied.changed:
        return f"{applied.dataset_id}: {would}changed: {', '.join(applied.changed)}"
    return f"{applied.dataset_id}: as it was"


@app.command(name="list")
def list_datasets(*, json: Json = False) -> None:
    """List all datasets."""
    with Client() as client:
        found = [*client.admin.datasets.list(limit=500)]
    if json:
        print_json(AdminDatasetPage(datasets=found, next_cursor=None))
        return
    print_table(
        ["id", "version", "rows", "last checked", "on hold", "title"],
        [
            [
                each.id,
                each.current and each.current.version,
                each.current and each.current.row_count,
                each.last_checked_at,
                each.hold and each.hold.reason,
                each.title,
            ]
            for each in found
        ],
        empty="No datasets yet. Declare one with: ploti admin datasets apply FILE",
    )


@app.command
def show(dataset: Id, /, *, json: Json = False) -> None:
    """Show a dataset and its declaration."""
    with Client() as client:
        found = client.admin.datasets.show(dataset)
    if json:
        print_json(found)
        return
    building = found.building
    print_fields(
        describe(found)
        | {
            "deliverable": found.deliverable,
            "under way": building and f"version {building.version}, since {building.since}",
            "how far": building and say_progress(building.progress),
        }
    )
    print()
    print(yaml.safe_dump(found.declaration, sort_keys=False, allow_unicode=True).rstrip())
    if found.hold is not None:
        print_next("ploti admin holds list")


@app.command
def pause(dataset: Id, /, *, json: Json = False) -> None:
    """Have no check of a dataset due until it is resumed; pushes go on."""
    with Client() as client:
        found = client.admin.datasets.pause(dataset)
    _tell(found, "is paused: no check of it is due", json=json)


@app.command
def resume(dataset: Id, /, *, json: Json = False) -> None:
    """Have a paused dataset's checks due again, from now on."""
    with Client() as client:
        found = client.admin.datasets.resume(dataset)
    due = found.next_check_by
    told = f"is due its next check by {due}" if due else "goes on, but no check is ever due"
    _tell(found, told, json=json)


@app.command
def remove(dataset: Id, /, *, json: Json = False) -> None:
    """Take a dataset out of delivery: it leaves every subscription; its data stays for now."""
    with Client() as client:
        found = client.admin.datasets.remove(dataset)
    _tell(found, "is delivered no more; declaring it again brings it back", json=json)


def _tell(dataset: AdminDataset, told: str, *, json: bool) -> None:
    if json:
        print_json(dataset)
    else:
        print(f"{dataset.id} {told}")
