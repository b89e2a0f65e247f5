"""`ploti feeds datasets`: the catalogue and its files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from ploti.cli.output import (
    Json,
    print_fields,
    print_json,
    print_line,
    print_next,
    print_table,
    say_counts,
    transfer,
)
from ploti.client.connection import Client
from ploti.client.files import Role, fetch_file
from ploti.errors import NotFound
from ploti.model.dataset import Dataset
from ploti.model.page import DatasetPage, VersionPage
from ploti.model.version import Version
from ploti.model.wire import encode

app = App(
    name="datasets",
    help="The catalogue and its files.",
    help_epilogue="Next: ploti feeds datasets list, then show ID, versions ID, download ID --to .",
)

Id = Annotated[str, Parameter(help="A dataset's id, such as ds_orange_fl_building_permits.")]
Number = Annotated[int, Parameter(help="A version's number.")]
Format = Annotated[
    Literal["geoparquet", "csv"] | None,
    Parameter(help="geoparquet (without geometry plain parquet) unless this says csv."),
]
MOST = 500


@app.command(name="list")
def list_datasets(
    *,
    place: Annotated[str | None, Parameter(help="Only those in it or below: us/fl.")] = None,
    topic: Annotated[str | None, Parameter(help="Only those under it: permits.")] = None,
    json: Json = False,
) -> None:
    """List the datasets that your workspace may have."""
    with Client() as client:
        datasets = [*client.feeds.datasets.list(place=place, topic=topic, limit=MOST)]
    if json:
        print_json(DatasetPage(datasets=datasets, next_cursor=None))
        return
    heads = ["id", "version", "rows", "subscribed", "place", "topic", "title"]
    print_table(heads, map(_row, datasets), empty="No datasets.")
    if datasets:
        print_next(f"ploti feeds datasets show {datasets[0].id}")


def _row(dataset: Dataset) -> list[object]:
    current = dataset.current
    return [
        dataset.id,
        current and current.version,
        current and current.row_count,
        dataset.subscribed is True,
        dataset.place,
        dataset.topic,
        dataset.title,
    ]


@app.command
def show(dataset: Id, /, *, json: Json = False) -> None:
    """Show a dataset, its current version, and whether one waits for review."""
    with Client() as client:
        found = client.feeds.datasets.show(dataset)
    if json:
        print_json(found)
        return
    print_fields(describe(found))
    if found.current is not None:
        print_next(f"ploti feeds datasets versions {found.id}")


def describe(dataset: Dataset) -> dict[str, object]:
    """What people want to know of a dataset."""
    current, hold = dataset.current, dataset.hold
    return {
        "id": dataset.id,
        "title": dataset.title,
        "place": dataset.place,
        "topic": dataset.topic,
        "license": dataset.license,
        "attribution": dataset.attribution,
        "key columns": dataset.key_columns,
        "version": current.version if current else "none yet",
        "schema version": current and current.schema_version,
        "rows": current and current.row_count,
        "published": current and current.published_at,
        "last checked": dataset.last_checked_at,
        "next check by": dataset.next_check_by,
        "on hold": hold and f"{hold.reason}, since {hold.since}",
    }


@app.command
def versions(dataset: Id, /, *, json: Json = False) -> None:
    """List a dataset's released versions, oldest first."""
    with Client() as client:
        found = [*client.feeds.datasets.versions(dataset, limit=MOST)]
    if json:
        print_json(VersionPage(versions=found, next_cursor=None))
        return
    print_table(
        ["version", "follows", "schema", "published", "rows", "changes", "to load"],
        [
            [
                each.version,
                each.previous_version,
                each.schema_version,
                each.published_at,
                each.row_count,
                say_counts(each.counts),
                each.resync_required,
            ]
            for each in found
        ],
        empty="No version is released yet.",
    )
    if found:
        print_next(f"ploti feeds datasets version {dataset} {found[-1].version}")


@app.command
def version(dataset: Id, number: Number, /, *, format: Format = None, json: Json = False) -> None:
    """Show a version, with signed links to its files that are good for an hour."""
    with Client() as client:
        found = client.feeds.datasets.version(dataset, number, format=format)
    if json:
        print_json(found)
        return
    print_fields(_describe(found))
    print_next(f"ploti feeds datasets download {dataset} {number} --to .")


def _describe(version: Version) -> dict[str, object]:
    files = version.files
    return {
        "dataset": version.dataset_id,
        "version": version.version,
        "follows": version.previous_version,
        "schema version": version.schema_version,
        "published": version.published_at,
        "rows": version.row_count,
        "changes": say_counts(version.counts),
        "to load, since": version.reason,
        "content digest": version.content_digest,
        "snapshot": files.snapshot and [file.url for file in files.snapshot],
        "changes file": files.changes and [file.url for file in files.changes],
        "id map": files.id_map and [file.url for file in files.id_map],
        "schema file": files.schema.url,
        "links expire": files.expires_at,
    }


@app.command
def schema(
    dataset: Id,
    /,
    *,
    version: Annotated[int | None, Parameter(help="Of this version, not the current one.")] = None,
    json: Json = False,
) -> None:
    """Show the columns of a dataset, its key and its geometry."""
    with Client() as client:
        found = client.feeds.datasets.schema(dataset, version=version)
    if json:
        print_json(found)
        return
    geometry = found.geometry
    print_fields(
        {
            "schema version": found.schema_version,
            "key columns": found.key_columns,
            "geometry": geometry and f"{geometry.column}, {geometry.crs}",
        }
    )
    print()
    print_table(
        ["column", "type", "may be null", "in the source", "description"],
        [
            [each.name, each.type, each.nullable, each.source_name, each.description]
            for each in found.columns
        ],
        empty="No columns.",
    )


@app.command
def changes(dataset: Id, number: Number, /, *, json: Json = False) -> None:
    """List the records that a version added, changed and removed; with --json one a line."""
    with Client() as client:
        for row in client.feeds.datasets.changes(dataset, number, limit=MOST):
            if json:
                print_json(row)
            else:
                record = "" if row.record is None else encode(row.record).decode()
                print_line(row.change, row.record_id, record)


@app.command
def download(
    dataset: Id,
    number: Annotated[int | None, Parameter(help="A version's number; the current one's.")] = None,
    /,
    *,
    to: Annotated[Path, Parameter(help="The folder to put the file into; made where needed.")],
    file: Annotated[Role, Parameter(help="Which of the version's files.")] = "snapshot",
    format: Format = None,
    json: Json = False,
) -> None:
    """Download a file of a version, checked against its sha256; a broken download goes on."""
    with Client() as client:
        if number is None:
            number = _current(client, dataset)
        to.mkdir(parents=True, exist_ok=True)
        path = to / _file_name(dataset, number, file, format)
        with transfer(path.name, then="checked", quiet=json) as progress:
            fetch_file(client, dataset, number, file, format=format, to=path, progress=progress)
    if json:
        print_json({"datasetId": dataset, "version": number, "file": file, "path": str(path)})
    else:
        print(path)


def _current(client: Client, dataset: str) -> int:
    current = client.feeds.datasets.show(dataset).current
    if current is None:
        raise NotFound(f"{dataset} has no released version yet")
    return current.version


def _file_name(dataset: str, number: int, file: Role, format: str | None) -> str:
    kind = {"snapshot": "", "changes": "_changes", "schema": "_schema"}[file]
    ending = "json" if file == "schema" else "csv" if format == "csv" else "parquet"
    return f"{dataset.removeprefix('ds_')}_v{number}{kind}.{ending}"
