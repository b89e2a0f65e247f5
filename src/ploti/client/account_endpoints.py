"""The staff's calls on workspaces, plans, members and keys, and on what staff did."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from ploti.client.calls import Call, ListCall, Listed, path, query, reads, reads_list
from ploti.model.account import (
    DEFAULT_PLAN,
    AuditEntry,
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
from ploti.model.ids import DatasetId, MemberId, PlanId, WorkspaceId
from ploti.model.wire import UNSET, Instant, Unset, encode


def create_workspace(
    name: str,
    *,
    coverage: Iterable[str] | None = None,
    plan: str = DEFAULT_PLAN,
    public: bool = False,
) -> Call[Workspace]:
    """Create a workspace that may have the places of its coverage, all of them where it is None.

    The catalogue and files of a public one can be read without a key.
    """
    new = NewWorkspace(
        name=name,
        coverage=None if coverage is None else [*coverage],
        plan_id=PlanId(plan),
        public=public,
    )
    return Call(
        method="POST", path=path("admin", "workspaces"), body=encode(new), read=reads(Workspace)
    )


def list_workspaces(
    *, cursor: str | None = None, limit: int | None = None
) -> ListCall[Workspace, str | None]:
    """All workspaces, oldest first."""
    return ListCall(
        method="GET",
        path=path("admin", "workspaces"),
        query=query(cursor=cursor, limit=limit),
        read=reads_list(
            WorkspacePage, lambda page: Listed(page, page.workspaces, page.next_cursor)
        ),
    )


def get_workspace(workspace_id: str) -> Call[Workspace]:
    """One workspace."""
    return Call(method="GET", path=path("admin", "workspaces", workspace_id), read=reads(Workspace))


def update_workspace(
    workspace_id: str,
    *,
    name: str | Unset = UNSET,
    coverage: Iterable[str] | Unset | None = UNSET,
    plan: str | Unset = UNSET,
    public: bool | Unset = UNSET,
) -> Call[Workspace]:
    """Change what is given; a coverage of None is everything. Its subscriptions follow soon."""
    patch = WorkspacePatch(
        name=name,
        coverage=coverage if coverage is UNSET or coverage is None else [*coverage],
        plan_id=UNSET if plan is UNSET else PlanId(plan),
        public=public,
    )
    return Call(
        method="PATCH",
        path=path("admin", "workspaces", workspace_id),
        body=encode(patch),
        read=reads(Workspace),
    )


def create_plan(
    plan_id: str, *, topics: Iterable[str] | None = None, datasets: Iterable[str] | None = None
) -> Call[Plan]:
    """Create a plan that opens topics, with all below them, and datasets; all where both are None.

    You choose its id, such as `permits-only`.
    """
    new = NewPlan(id=PlanId(plan_id), topics=_listed(topics), datasets=_dataset_ids(datasets))
    return Call(method="POST", path=path("admin", "plans"), body=encode(new), read=reads(Plan))


def list_plans(
    *, cursor: str | None = None, limit: int | None = None
) -> ListCall[Plan, str | None]:
    """All plans, by id."""
    return ListCall(
        method="GET",
        path=path("admin", "plans"),
        query=query(cursor=cursor, limit=limit),
        read=reads_list(PlanPage, lambda page: Listed(page, page.plans, page.next_cursor)),
    )


def get_plan(plan_id: str) -> Call[Plan]:
    """One plan."""
    return Call(method="GET", path=path("admin", "plans", plan_id), read=reads(Plan))


def update_plan(
    plan_id: str,
    *,
    topics: Iterable[str] | Unset | None = UNSET,
    datasets: Iterable[str] | Unset | None = UNSET,
) -> Call[Plan]:
    """Replace what is given; a list of None is no list. The workspaces on the plan follow soon."""
    patch = PlanPatch(
        topics=UNSET if topics is UNSET else _listed(topics),
        datasets=UNSET if datasets is UNSET else _dataset_ids(datasets),
    )
    return Call(
        method="PATCH", path=path("admin", "plans", plan_id), body=encode(patch), read=reads(Plan)
    )


def add_member(workspace_id: str, name: str) -> Call[Member]:
    """Add a person or a service to a workspace."""
    new = NewMember(workspace_id=WorkspaceId(workspace_id), name=name)
    return Call(method="POST", path=path("admin", "members"), body=encode(new), read=reads(Member))


def list_members(
    *, workspace: str | None = None, cursor: str | None = None, limit: int | None = None
) -> ListCall[Member, str | None]:
    """Members, oldest first, those who left too."""
    return ListCall(
        method="GET",
        path=path("admin", "members"),
        query=query(workspace=workspace, cursor=cursor, limit=limit),
        read=reads_list(MemberPage, lambda page: Listed(page, page.members, page.next_cursor)),
    )


def remove_member(member_id: str) -> Call[Member]:
    """Have a member leave: its keys are revoked, and its webhooks turned off."""
    return Call(method="DELETE", path=path("admin", "members", member_id), read=reads(Member))


def create_key(
    member_id: str,
    *,
    name: str = "",
    permissions: Iterable[str] | None = None,
    expires_at: datetime | None = None,
) -> Call[KeyWithSecret]:
    """Make a key for a member, with `feeds` and `webhooks` unless told; shown in this answer alone.

    `expires_at` needs a time zone.
    """
    new = NewKey(
        member_id=MemberId(member_id),
        name=name,
        permissions=UNSET if permissions is None else [*permissions],
        expires_at=None if expires_at is None else Instant.of(expires_at),
    )
    return Call(
        method="POST", path=path("admin", "keys"), body=encode(new), read=reads(KeyWithSecret)
    )


def list_keys(
    *, workspace: str | None = None, cursor: str | None = None, limit: int | None = None
) -> ListCall[Key, str | None]:
    """Keys by their first letters, newest first, with their last use."""
    return ListCall(
        method="GET",
        path=path("admin", "keys"),
        query=query(workspace=workspace, cursor=cursor, limit=limit),
        read=reads_list(KeyPage, lambda page: Listed(page, page.keys, page.next_cursor)),
    )


def revoke_key(key_id: str) -> Call[Key]:
    """Revoke a key at once."""
    return Call(method="DELETE", path=path("admin", "keys", key_id), read=reads(Key))


def list_audit(
    *, subject: str | None = None, cursor: str | None = None, limit: int | None = None
) -> ListCall[AuditEntry, str | None]:
    """What staff did, newest first; `subject` is the id of what it was done to."""
    return ListCall(
        method="GET",
        path=path("admin", "audit"),
        query=query(subject=subject, cursor=cursor, limit=limit),
        read=reads_list(AuditPage, lambda page: Listed(page, page.entries, page.next_cursor)),
    )


def _listed(entries: Iterable[str] | None) -> list[str] | None:
    return None if entries is None else [*entries]


def _dataset_ids(entries: Iterable[str] | None) -> list[DatasetId] | None:
    return None if entries is None else [DatasetId(each) for each in entries]
