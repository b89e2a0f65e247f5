"""The staff's side of datasets and holds: declare, check, push, review."""

from __future__ import annotations

from typing import Annotated

from litestar import Router, delete, get, post, put
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter

from ploti.errors import Code
from ploti.model.admin import (
    AcceptedPage,
    AdminDataset,
    AdminDatasetPage,
    Applied,
    Decision,
    Hold,
    HoldPage,
    HoldState,
    Outcome,
    Status,
)
from ploti.model.ids import DatasetId, HoldId
from ploti.server.api.auth import PERMISSION, Caller
from ploti.server.api.backend import Backend
from ploti.server.api.openapi import BODY, DECLARATION, FILE, PROBLEMS
from ploti.server.api.params import PAGE, Cursor, DryRun, Limit
from ploti.server.membership.principal import ADMIN
from ploti.server.service import apply_dataset as applying
from ploti.server.service import check_source as checking
from ploti.server.service import match_again, read_datasets, read_status, review_hold, steer_dataset
from ploti.server.service import rebuild_version as rebuilding
from ploti.server.service import restore_version as restoring
from ploti.server.service.watch_disk import read_disk

_ONE = {PROBLEMS: (Code.NOT_FOUND,)}
_DECIDED = {PROBLEMS: (Code.NOT_FOUND, Code.CONFLICT), BODY: Decision}
Full = Annotated[
    bool, QueryParameter(description="Read the source whole, whatever it says of its last change.")
]
FileName = Annotated[
    str,
    QueryParameter(
        pattern=r"^[^/\x00-\x1f]{1,255}$",
        description="What the file is called; its ending tells the format.",
    ),
]


@get("/datasets")
async def list_admin_datasets(
    caller: NamedDependency[Caller], *, cursor: Cursor = None, limit: Limit = PAGE
) -> AdminDatasetPage:
    """All datasets with their declarations, by id."""
    return await caller.read(
        lambda tx, _: read_datasets.list_admin_datasets(tx, cursor=cursor, limit=limit)
    )


@get("/datasets/{dataset:str}", opt=_ONE)
async def get_admin_dataset(
    caller: NamedDependency[Caller], *, dataset: FromPath[DatasetId]
) -> AdminDataset:
    """A dataset with its declaration."""
    return await caller.read(lambda tx, _: read_datasets.get_admin_dataset(tx, dataset))


@put("/datasets/{dataset:str}", opt={BODY: DECLARATION, PROBLEMS: (Code.CONFLICT,)})
async def apply_dataset(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    dataset: FromPath[DatasetId],
    dry_run: DryRun = False,
) -> Applied:
    """Create or change a dataset by its declaration; says what changed."""
    declared = await caller.json()
    now = backend.clock.now()
    return await caller.change_all(
        lambda tx, plans: applying.apply_dataset(
            tx, dataset, declared, plans=plans, dry_run=dry_run, now=now
        )
    )


@post(
    "/datasets/{dataset:str}/check",
    status_code=200,
    opt={PROBLEMS: (Code.NOT_FOUND, Code.CONFLICT, Code.UNAVAILABLE)},
)
async def check_dataset(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    dataset: FromPath[DatasetId],
    full: Full = False,
) -> Outcome:
    """Look at the source now, and answer once what it brought is built and decided."""
    return await caller.once(lambda: checking.check_source(backend.parts, dataset, full=full))


@post(
    "/datasets/{dataset:str}/push",
    status_code=200,
    opt={BODY: FILE, PROBLEMS: (Code.NOT_FOUND, Code.UNAVAILABLE)},
)
async def push_state(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    dataset: FromPath[DatasetId],
    name: FileName,
    dry_run: DryRun = False,
) -> Outcome:
    """Take the body, a file, as the source's new state, and answer once it is decided."""
    return await caller.once(
        lambda: checking.push_state(
            *(backend.parts, dataset),
            name=name,
            chunks=caller.chunks(),
            dry_run=dry_run,
        )
    )


@post("/datasets/{dataset:str}/pause", status_code=200, opt=_ONE)
async def pause_dataset(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    dataset: FromPath[DatasetId],
) -> AdminDataset:
    """Have no check of the dataset due until it is resumed."""
    now = backend.clock.now()
    return await caller.write(lambda tx, _: steer_dataset.pause_dataset(tx, dataset, now=now))


@post("/datasets/{dataset:str}/resume", status_code=200, opt=_ONE)
async def resume_dataset(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    dataset: FromPath[DatasetId],
) -> AdminDataset:
    """Have a paused dataset's checks due again, from now on."""
    now = backend.clock.now()
    return await caller.write(lambda tx, _: steer_dataset.resume_dataset(tx, dataset, now=now))


@post("/datasets/{dataset:str}/remove", status_code=200, opt=_ONE)
async def remove_dataset(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    dataset: FromPath[DatasetId],
) -> AdminDataset:
    """Take the dataset out of delivery; declaring it again brings it back."""
    now = backend.clock.now()
    return await caller.change_all(
        lambda tx, plans: steer_dataset.remove_dataset(tx, dataset, plans=plans, now=now)
    )


@get("/status")
async def get_status(
    caller: NamedDependency[Caller], *, backend: NamedDependency[Backend]
) -> Status:
    """How the server does: queues, failing sources, builds under way, room, sizes."""
    now = backend.clock.now()
    disk = await read_disk(backend.parts.blobs, needed=backend.parts.min_free)
    return await caller.read(lambda tx, _: read_status.read_status(tx, disk=disk, now=now))


@post(
    "/datasets/{dataset:str}/rebuild",
    status_code=200,
    opt={PROBLEMS: (Code.NOT_FOUND, Code.CONFLICT, Code.UNAVAILABLE)},
)
async def rebuild_version(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    dataset: FromPath[DatasetId],
) -> Outcome:
    """Build the current version again, as a new one to be loaded; answers once it is decided."""
    return await caller.once(lambda: rebuilding.rebuild_version(backend.parts, dataset))


@post(
    "/datasets/{dataset:str}/versions/{version:int}/restore",
    status_code=200,
    opt={PROBLEMS: (Code.NOT_FOUND, Code.CONFLICT, Code.EXPIRED, Code.UNAVAILABLE)},
)
async def restore_version(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    dataset: FromPath[DatasetId],
    version: FromPath[int],
) -> Outcome:
    """Make an older version's content current again, as a new version to be loaded."""
    return await caller.once(lambda: restoring.restore_version(backend.parts, dataset, version))


@get("/holds")
async def list_holds(
    caller: NamedDependency[Caller],
    *,
    state_is: Annotated[HoldState | None, QueryParameter(name="state")] = None,
    cursor: Cursor = None,
    limit: Limit = PAGE,
) -> HoldPage:
    """Versions kept back for review, newest first."""
    return await caller.read(
        lambda tx, _: review_hold.list_holds(tx, state=state_is, cursor=cursor, limit=limit)
    )


@get("/holds/{hold:str}", opt=_ONE)
async def get_hold(caller: NamedDependency[Caller], *, hold: FromPath[HoldId]) -> Hold:
    """A hold with its findings."""
    return await caller.read(lambda tx, _: review_hold.get_hold(tx, hold))


@post("/holds/{hold:str}/release", status_code=200, opt=_DECIDED)
async def release_hold(
    caller: NamedDependency[Caller], *, backend: NamedDependency[Backend], hold: FromPath[HoldId]
) -> Hold:
    """Release what is held: its events follow.

    Records that could not be matched are matched first, without the limit that this broke.
    """
    decision = await caller.body(Decision)
    await match_again.match_held(backend.parts, hold)
    now = backend.clock.now()
    return await caller.write(
        lambda tx, who: review_hold.release_hold(tx, hold, by=who, note=decision.note, now=now)
    )


@post("/holds/{hold:str}/discard", status_code=200, opt=_DECIDED)
async def discard_hold(
    caller: NamedDependency[Caller], *, backend: NamedDependency[Backend], hold: FromPath[HoldId]
) -> Hold:
    """Discard what is held: the current version stays."""
    decision = await caller.body(Decision)
    now = backend.clock.now()
    return await caller.write(
        lambda tx, who: review_hold.discard_hold(tx, hold, by=who, note=decision.note, now=now)
    )


@get("/datasets/{dataset:str}/accepted", opt=_ONE)
async def list_accepted(
    caller: NamedDependency[Caller],
    *,
    dataset: FromPath[DatasetId],
    cursor: Cursor = None,
    limit: Limit = PAGE,
) -> AcceptedPage:
    """Findings that a release accepted: they hold no version again that is not worse."""
    return await caller.read(
        lambda tx, _: review_hold.list_accepted(tx, dataset, cursor=cursor, limit=limit)
    )


@delete("/datasets/{dataset:str}/accepted/{finding:str}", opt=_ONE)
async def withdraw_accepted(
    caller: NamedDependency[Caller], *, dataset: FromPath[DatasetId], finding: FromPath[str]
) -> None:
    """Have an accepted finding hold versions again."""
    await caller.write(lambda tx, _: review_hold.withdraw_accepted(tx, dataset, finding))


ROUTER = Router(
    "/v1/admin",
    route_handlers=[
        *(list_admin_datasets, get_admin_dataset, apply_dataset, check_dataset, push_state),
        *(
            pause_dataset,
            resume_dataset,
            remove_dataset,
            get_status,
            rebuild_version,
            restore_version,
        ),
        *(list_holds, get_hold, release_hold, discard_hold, list_accepted, withdraw_accepted),
    ],
    opt={PERMISSION: ADMIN},
    tags=["admin"],
)
