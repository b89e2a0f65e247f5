"""The catalogue: datasets, their schemas, versions and files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

from litestar import Response, Router, get
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, QueryParameter

from ploti.errors import Code
from ploti.model.dataset import Dataset
from ploti.model.ids import DatasetId
from ploti.model.page import ChangePage, DatasetPage, VersionPage
from ploti.model.schema import SchemaDocument
from ploti.model.version import Version, VersionDigest
from ploti.server.api.auth import OPEN, PERMISSION, Caller
from ploti.server.api.backend import Backend
from ploti.server.api.openapi import ANSWER, PROBLEMS
from ploti.server.api.params import LARGEST_NUMBER, PAGE, Cursor, FileFormat, Limit, check_number
from ploti.server.api.rules import PATH
from ploti.server.membership.principal import FEEDS, Reader
from ploti.server.ports.store import Transaction
from ploti.server.service import read_catalogue, read_version
from ploti.server.service.export_version import plan_export
from ploti.server.service.show_version import NotMade

T = TypeVar("T")

Path = Annotated[
    str | None, QueryParameter(description="A path, with all below it.", schema_extra=PATH)
]
Number = Annotated[int | None, QueryParameter(ge=1, description="A version's number.")]

_CATALOGUE = {PROBLEMS: (Code.NOT_FOUND, Code.OUTSIDE_COVERAGE, Code.NOT_DELIVERABLE)}
_VERSION = {
    PROBLEMS: (
        *(Code.NOT_FOUND, Code.NOT_SUBSCRIBED, Code.OUTSIDE_COVERAGE, Code.NOT_DELIVERABLE),
        Code.EXPIRED,
    )
}

_FILES = {PROBLEMS: (*_VERSION[PROBLEMS], Code.UNAVAILABLE)}


@get("/")
async def list_datasets(
    caller: NamedDependency[Caller],
    *,
    place: Path = None,
    topic: Path = None,
    cursor: Cursor = None,
    limit: Limit = PAGE,
) -> DatasetPage:
    """The datasets that the workspace may have, by id; a place or topic takes in all below it."""
    return await caller.look(
        lambda tx, who: read_catalogue.list_datasets(
            tx, who, place=place, topic=topic, cursor=cursor, limit=limit
        )
    )


@get("/{dataset:str}", opt=_CATALOGUE)
async def get_dataset(caller: NamedDependency[Caller], *, dataset: FromPath[DatasetId]) -> Dataset:
    """A dataset, its current version, and whether one waits for review."""
    return await caller.look(lambda tx, who: read_catalogue.get_dataset(tx, who, dataset))


@get("/{dataset:str}/schema", opt=_CATALOGUE)
async def get_schema(
    caller: NamedDependency[Caller], *, dataset: FromPath[DatasetId], version: Number = None
) -> SchemaDocument:
    """The schema of a version, the current one unless a number is given."""
    if version is not None:
        check_number(version)
    return await caller.look(
        lambda tx, who: read_catalogue.get_schema(tx, who, dataset, version=version)
    )


@get("/{dataset:str}/versions", opt=_CATALOGUE)
async def list_versions(
    caller: NamedDependency[Caller],
    *,
    dataset: FromPath[DatasetId],
    after: Annotated[int | None, QueryParameter(ge=0, description="List those above it.")] = None,
    limit: Limit = PAGE,
) -> VersionPage:
    """The released versions, oldest first."""
    last = None if after is None else min(after, LARGEST_NUMBER)
    return await caller.look(
        lambda tx, who: read_catalogue.list_versions(tx, who, dataset, after=last, limit=limit)
    )


@get("/{dataset:str}/versions/{version:int}", opt=_FILES)
async def get_version(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    dataset: FromPath[DatasetId],
    version: FromPath[int],
    format: FromQuery[FileFormat] = FileFormat.GEOPARQUET,
) -> Version:
    """A version with links to its files, good for an hour."""
    now = backend.clock.now()
    return await _read(
        *(caller, backend),
        lambda tx, who: read_version.get_version(
            tx, who, dataset, version, format=format, blobs=backend.blobs, now=now
        ),
    )


@get("/{dataset:str}/versions/{version:int}/digest", opt=_VERSION)
async def get_digest(
    caller: NamedDependency[Caller], *, dataset: FromPath[DatasetId], version: FromPath[int]
) -> VersionDigest:
    """A version's content digest with its 256 buckets, kept for good."""
    return await caller.fetch(lambda tx, who: read_version.get_digest(tx, who, dataset, version))


@get(
    "/{dataset:str}/versions/{version:int}/changes",
    opt={
        ANSWER: ChangePage,
        PROBLEMS: (*_VERSION[PROBLEMS], Code.CONFLICT, Code.TOO_LARGE),
    },
)
async def list_changes(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    dataset: FromPath[DatasetId],
    version: FromPath[int],
    cursor: Cursor = None,
    limit: Limit = PAGE,
) -> Response[bytes]:
    """A version's changes as JSON, of versions with up to 10,000 changes."""
    name = await caller.fetch(lambda tx, who: read_version.find_listing(tx, who, dataset, version))
    page = await read_version.list_changes(backend.blobs, name, cursor=cursor, limit=limit)
    return Response(page, media_type="application/json")


@get("/{dataset:str}/current/snapshot", status_code=307, opt={ANSWER: None, **_FILES})
async def get_current_snapshot(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    dataset: FromPath[DatasetId],
    format: FromQuery[FileFormat] = FileFormat.GEOPARQUET,
) -> Response[bytes]:
    """A redirect to the newest snapshot, from an address that never changes."""
    now = backend.clock.now()
    link = await _read(
        *(caller, backend),
        lambda tx, who: read_version.current_snapshot(
            tx, who, dataset, format=format, blobs=backend.blobs, now=now
        ),
    )
    return Response(b"", status_code=307, headers={"location": link})


async def _read(caller: Caller, backend: Backend, work: Callable[[Transaction, Reader], T]) -> T:
    """Read files of a version; CSV that is not made yet is made from now on."""
    try:
        return await caller.fetch(work)
    except NotMade as missing:
        dataset, number = missing.dataset_id, missing.version
        now = backend.clock.now()
        await backend.store.write(lambda tx: plan_export(tx, dataset, number, now=now))
        raise


ROUTER = Router(
    "/v1/feeds/datasets",
    route_handlers=[
        *(list_datasets, get_dataset, get_schema, list_versions, get_version, get_digest),
        *(list_changes, get_current_snapshot),
    ],
    opt={PERMISSION: FEEDS, OPEN: True},
    tags=["datasets"],
)
