"""The staff's side of workspaces, plans, members and keys, and what staff did."""

from __future__ import annotations

from typing import Annotated

from litestar import Router, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter

from ploti.errors import Code
from ploti.model.account import (
    AuditPage,
    Key,
    KeyPage,
    KeyWithSecret,
    Member,
    MemberPage,
    NewKey,
    NewMember,
    NewPlan,
    NewWorkspace,
    Plan,
    PlanPage,
    PlanPatch,
    Workspace,
    WorkspacePage,
    WorkspacePatch,
)
from ploti.model.ids import KeyId, MemberId, PlanId, WorkspaceId
from ploti.server.api.auth import PERMISSION, Caller
from ploti.server.api.backend import Backend
from ploti.server.api.openapi import BODY, PROBLEMS
from ploti.server.api.params import PAGE, Cursor, Limit
from ploti.server.membership.principal import ADMIN
from ploti.server.service import manage_members, manage_workspaces, read_audit

_ONE = {PROBLEMS: (Code.NOT_FOUND,)}
OfWorkspace = Annotated[
    WorkspaceId | None, QueryParameter(name="workspace", description="Only those of this one.")
]


@post("/workspaces", opt={BODY: NewWorkspace, **_ONE})
async def create_workspace(
    caller: NamedDependency[Caller], *, backend: NamedDependency[Backend]
) -> Workspace:
    """Create a workspace: the places that it may have (null is everything), and its plan."""
    new, ids, now = await caller.body(NewWorkspace), backend.ids, backend.clock.now()
    return await caller.write(
        lambda tx, _: manage_workspaces.create_workspace(tx, new, ids=ids, now=now)
    )


@get("/workspaces")
async def list_workspaces(
    caller: NamedDependency[Caller], *, cursor: Cursor = None, limit: Limit = PAGE
) -> WorkspacePage:
    """All workspaces, oldest first."""
    return await caller.read(
        lambda tx, _: manage_workspaces.list_workspaces(tx, cursor=cursor, limit=limit)
    )


@get("/workspaces/{workspace:str}", opt=_ONE)
async def get_workspace(
    caller: NamedDependency[Caller], *, workspace: FromPath[WorkspaceId]
) -> Workspace:
    """A workspace."""
    return await caller.read(lambda tx, _: manage_workspaces.get_workspace(tx, workspace))


@patch("/workspaces/{workspace:str}", opt={BODY: WorkspacePatch, **_ONE})
async def update_workspace(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    workspace: FromPath[WorkspaceId],
) -> Workspace:
    """Change a workspace by a JSON merge patch; its subscriptions follow, one after another."""
    wanted, now = await caller.body(WorkspacePatch), backend.clock.now()
    return await caller.write(
        lambda tx, _: manage_workspaces.update_workspace(tx, workspace, wanted, now=now)
    )


@post("/plans", opt={BODY: NewPlan})
async def create_plan(
    caller: NamedDependency[Caller], *, backend: NamedDependency[Backend]
) -> Plan:
    """Create a plan: the topics and datasets that it opens, everything where both are null."""
    new, now = await caller.body(NewPlan), backend.clock.now()
    return await caller.write(lambda tx, _: manage_workspaces.create_plan(tx, new, now=now))


@get("/plans")
async def list_plans(
    caller: NamedDependency[Caller], *, cursor: Cursor = None, limit: Limit = PAGE
) -> PlanPage:
    """All plans, by id."""
    return await caller.read(
        lambda tx, _: manage_workspaces.list_plans(tx, cursor=cursor, limit=limit)
    )


@get("/plans/{plan:str}", opt=_ONE)
async def get_plan(caller: NamedDependency[Caller], *, plan: FromPath[PlanId]) -> Plan:
    """A plan."""
    return await caller.read(lambda tx, _: manage_workspaces.get_plan(tx, plan))


@patch("/plans/{plan:str}", opt={BODY: PlanPatch, **_ONE})
async def update_plan(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    plan: FromPath[PlanId],
) -> Plan:
    """Change a plan by a JSON merge patch; the workspaces on it follow, one after another."""
    wanted, now = await caller.body(PlanPatch), backend.clock.now()
    return await caller.write(
        lambda tx, _: manage_workspaces.update_plan(tx, plan, wanted, now=now)
    )


@post("/members", opt={BODY: NewMember, **_ONE})
async def add_member(
    caller: NamedDependency[Caller], *, backend: NamedDependency[Backend]
) -> Member:
    """Add a person or a service to a workspace."""
    new, ids, now = await caller.body(NewMember), backend.ids, backend.clock.now()
    return await caller.write(lambda tx, _: manage_members.add_member(tx, new, ids=ids, now=now))


@get("/members")
async def list_members(
    caller: NamedDependency[Caller],
    *,
    of: OfWorkspace = None,
    cursor: Cursor = None,
    limit: Limit = PAGE,
) -> MemberPage:
    """Members, oldest first, those who left too."""
    return await caller.read(
        lambda tx, _: manage_members.list_members(tx, workspace=of, cursor=cursor, limit=limit)
    )


@delete("/members/{member:str}", status_code=200, opt=_ONE)
async def remove_member(
    caller: NamedDependency[Caller],
    *,
    backend: NamedDependency[Backend],
    member: FromPath[MemberId],
) -> Member:
    """Have a member leave: its keys are revoked, and its webhooks turned off."""
    now = backend.clock.now()
    return await caller.write(lambda tx, _: manage_members.remove_member(tx, member, now=now))


@post("/keys", opt={BODY: NewKey, PROBLEMS: (Code.NOT_FOUND, Code.CONFLICT)})
async def create_key(
    caller: NamedDependency[Caller], *, backend: NamedDependency[Backend]
) -> KeyWithSecret:
    """Make a key for a member; the key itself is in this answer and in no other."""
    new, ids, now = await caller.body(NewKey), backend.ids, backend.clock.now()
    return await caller.write(lambda tx, _: manage_members.create_key(tx, new, ids=ids, now=now))


@get("/keys")
async def list_keys(
    caller: NamedDependency[Caller],
    *,
    of: OfWorkspace = None,
    cursor: Cursor = None,
    limit: Limit = PAGE,
) -> KeyPage:
    """Keys by their first letters, newest first, with their last use."""
    return await caller.read(
        lambda tx, _: manage_members.list_keys(tx, workspace=of, cursor=cursor, limit=limit)
    )


@delete("/keys/{key:str}", status_code=200, opt=_ONE)
async def revoke_key(
    caller: NamedDependency[Caller], *, backend: NamedDependency[Backend], key: FromPath[KeyId]
) -> Key:
    """Revoke a key at once."""
    now = backend.clock.now()
    return await caller.write(lambda tx, _: manage_members.revoke_key(tx, key, now=now))


@get("/audit")
async def list_audit(
    caller: NamedDependency[Caller],
    *,
    subject: Annotated[
        str | None, QueryParameter(description="Only what was done to this: an id.")
    ] = None,
    cursor: Cursor = None,
    limit: Limit = PAGE,
) -> AuditPage:
    """What staff did, newest first."""
    return await caller.read(
        lambda tx, _: read_audit.list_audit(tx, subject=subject, cursor=cursor, limit=limit)
    )


ROUTER = Router(
    "/v1/admin",
    route_handlers=[
        *(create_workspace, list_workspaces, get_workspace, update_workspace),
        *(create_plan, list_plans, get_plan, update_plan),
        *(add_member, list_members, remove_member),
        *(create_key, list_keys, revoke_key, list_audit),
    ],
    opt={PERMISSION: ADMIN},
    tags=["admin"],
)
