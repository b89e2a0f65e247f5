"""Workspaces and plans made and changed by staff; what follows is carried out by a job."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from ploti.errors import Conflict, Fault, InvalidInput, NotFound
from ploti.model.account import (
    NewPlan,
    NewWorkspace,
    Plan,
    PlanPage,
    PlanPatch,
    Workspace,
    WorkspacePage,
    WorkspacePatch,
)
from ploti.model.ids import PlanId, WorkspaceId, dataset_id, plan_id
from ploti.model.wire import UNSET, Instant
from ploti.server.ports.outside import Ids
from ploti.server.ports.rows import JobKind, WorkspaceRow
from ploti.server.ports.store import Transaction
from ploti.server.service.page_lists import check_limit, cut, read_timed_cursor, timed_cursor
from ploti.server.sources import fields

T = TypeVar("T")

_STEERS = r"\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
NAME_FORM = re.compile(rf"[^{_STEERS}]*[^{_STEERS}\s][^{_STEERS}]*")
"""A name: something that is seen, on one line, without what steers a terminal or turns a line."""

LONGEST_NAME = 200
MOST_PATHS = 200
"""Of a coverage, and topics of a plan: each is looked for in every listing of the catalogue."""
MOST_DATASETS = 1_000


def create_workspace(tx: Transaction, new: NewWorkspace, *, ids: Ids, now: Instant) -> Workspace:
    """Make a workspace; raises NotFound for the plan, and InvalidInput for the rest."""
    row = WorkspaceRow(
        id=WorkspaceId(ids.token("ws_")),
        name=checked_name(new.name),
        coverage=_paths("coverage", new.coverage),
        plan_id=get_plan(tx, new.plan_id).id,
        public=new.public,
        created_at=now,
    )
    tx.workspaces.add(row)
    return _show(row)


def update_workspace(
    tx: Transaction, workspace_id: WorkspaceId, patch: WorkspacePatch, *, now: Instant
) -> Workspace:
    """Change a workspace by a merge patch; another coverage or plan is carried out by a job.

    Raises NotFound for it or the plan, and InvalidInput for the rest.
    """
    tx.datasets.lock_catalogue(exclusive=True)
    before = find_workspace(tx, workspace_id)
    after = replace(
        before,
        name=before.name if patch.name is UNSET else checked_name(patch.name),
        coverage=before.coverage if patch.coverage is UNSET else _paths("coverage", patch.coverage),
        plan_id=before.plan_id if patch.plan_id is UNSET else get_plan(tx, patch.plan_id).id,
        public=before.public if patch.public is UNSET else patch.public,
    )
    tx.workspaces.save(after)
    if (after.coverage, after.plan_id) != (before.coverage, before.plan_id):
        _carry_out(tx, [workspace_id], now=now)
    return _show(after)


def list_workspaces(tx: Transaction, *, cursor: str | None, limit: int) -> WorkspacePage:
    """All workspaces, oldest first."""
    check_limit(limit)
    found = tx.workspaces.page(after=read_timed_cursor(cursor), limit=limit + 1)
    page, next_cursor = cut(
        found, limit=limit, cursor=lambda row: timed_cursor(row.created_at, row.id)
    )
    return WorkspacePage(workspaces=[_show(row) for row in page], next_cursor=next_cursor)


def get_workspace(tx: Transaction, workspace_id: WorkspaceId) -> Workspace:
    """One workspace; raises NotFound."""
    return _show(find_workspace(tx, workspace_id))


def find_workspace(tx: Transaction, workspace_id: WorkspaceId) -> WorkspaceRow:
    """A workspace; raises NotFound."""
    found = tx.workspaces.get(workspace_id)
    if found is None:
        raise NotFound(
            f"There is no workspace {workspace_id}: the list of workspaces has their ids"
        )
    return found


def create_plan(tx: Transaction, new: NewPlan, *, now: Instant) -> Plan:
    """Make a plan; raises Conflict where its id is taken, InvalidInput for what cannot be meant."""
    row = Plan(
        id=_read("id", new.id, plan_id),
        topics=_paths("topics", new.topics),
        datasets=_many("datasets", new.datasets, dataset_id, most=MOST_DATASETS),
        created_at=now,
    )
    if tx.plans.get(row.id) is not None:
        raise Conflict(f"There is a plan {row.id} already: update it, or choose another id")
    tx.plans.add(row)
    return row


def update_plan(tx: Transaction, which: PlanId, patch: PlanPatch, *, now: Instant) -> Plan:
    """Change a plan by a merge patch, which jobs carry out for every workspace on it.

    Raises NotFound, and InvalidInput as `create_plan`.
    """
    tx.datasets.lock_catalogue(exclusive=True)
    before = get_plan(tx, which)
    after = replace(
        before,
        topics=before.topics if patch.topics is UNSET else _paths("topics", patch.topics),
        datasets=before.datasets
        if patch.datasets is UNSET
        else _many("datasets", patch.datasets, dataset_id, most=MOST_DATASETS),
    )
    if after != before:
        tx.plans.save(after)
        _carry_out(tx, tx.workspaces.on_plan(which), now=now)
    return after


def list_plans(tx: Transaction, *, cursor: str | None, limit: int) -> PlanPage:
    """All plans, by id."""
    check_limit(limit)
    after = None if cursor is None else _read("cursor", cursor, plan_id)
    found = tx.plans.page(after=after, limit=limit + 1)
    page, next_cursor = cut(found, limit=limit, cursor=lambda plan: plan.id)
    return PlanPage(plans=page, next_cursor=next_cursor)


def get_plan(tx: Transaction, which: PlanId) -> Plan:
    """One plan; raises NotFound."""
    found = tx.plans.get(which)
    if found is None:
        raise NotFound(f"There is no plan {which}: the list of plans has their ids")
    return found


def checked_name(name: str) -> str:
    """A name as it is kept; raises InvalidInput for one that is empty, too long or steers."""
    if len(name) > LONGEST_NAME or NAME_FORM.fullmatch(name) is None:
        raise _refused("name", f"is needed, of {LONGEST_NAME} characters on one line at most")
    return name


def _carry_out(tx: Transaction, workspaces: Sequence[WorkspaceId], *, now: Instant) -> None:
    """Count the change, and have each workspace's subscriptions brought by a job."""
    tx.datasets.revise()
    for each in workspaces:
        tx.jobs.put(JobKind.MEMBERSHIP, each, at=now)


def _paths(field: str, listed: Sequence[str] | None) -> list[str] | None:
    return _many(field, listed, fields.path, most=MOST_PATHS)


def _many(
    field: str, listed: Sequence[str] | None, read: Callable[[str], T], *, most: int
) -> list[T] | None:
    """A list with each entry once; None stays, since it is everything."""
    if listed is None:
        return None
    if not 1 <= len(listed) <= most:
        raise _refused(field, f"has {len(listed)} entries: 1 to {most}, or null for everything")
    return list(dict.fromkeys(_read(field, each, read) for each in listed))


def _read(field: str, text: str, read: Callable[[str], T]) -> T:
    try:
        return read(text)
    except ValueError as error:
        raise _refused(field, f"cannot be taken: {error}") from error


def _refused(field: str, message: str) -> InvalidInput:
    return InvalidInput(f"{field} {message}", errors=(Fault(field, message),))


def _show(row: WorkspaceRow) -> Workspace:
    return Workspace(
        id=row.id,
        name=row.name,
        coverage=row.coverage,
        plan_id=row.plan_id,
        public=row.public,
        created_at=row.created_at,
    )
