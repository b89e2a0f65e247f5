"""Workspaces, plans and members in tables."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, RowMapping, Table, insert, select, tuple_, update

from ploti.model.account import Plan
from ploti.model.ids import MemberId, PlanId, WorkspaceId
from ploti.server.adapters.store.columns import columns_of, fields_of, value_of
from ploti.server.adapters.store.tables import member, plan, workspace
from ploti.server.ports.accounts import Place
from ploti.server.ports.rows import MemberRow, WorkspaceRow


class SqlWorkspaces:
    """The port's `Workspaces` over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, row: WorkspaceRow) -> None:
        """Keep a new workspace."""
        self._connection.execute(insert(workspace).values(fields_of(row)))

    def save(self, row: WorkspaceRow) -> None:
        """Keep what changed of a workspace."""
        same = workspace.c.id == row.id
        self._connection.execute(update(workspace).where(same).values(fields_of(row)))

    def get(self, workspace_id: WorkspaceId) -> WorkspaceRow | None:
        """A workspace; None where there is none such."""
        wanted = _WORKSPACE.where(workspace.c.id == workspace_id)
        found = self._connection.execute(wanted).mappings().first()
        return None if found is None else value_of(WorkspaceRow, found)

    def page(self, *, after: Place | None, limit: int) -> list[WorkspaceRow]:
        """Workspaces made after another one, oldest first."""
        rows = _page(self._connection, workspace, _WORKSPACE, after=after, limit=limit)
        return [value_of(WorkspaceRow, row) for row in rows]

    def public(self) -> list[WorkspaceId]:
        """The workspaces that can be read without a key, by id."""
        wanted = select(workspace.c.id).where(workspace.c.public).order_by(workspace.c.id)
        return list(self._connection.scalars(wanted))

    def coverage(self, ids: Collection[WorkspaceId]) -> dict[WorkspaceId, list[str] | None]:
        """The coverage of each of these workspaces that there is."""
        wanted = select(workspace.c.id, workspace.c.coverage).where(workspace.c.id.in_(sorted(ids)))
        return {row.id: row.coverage for row in self._connection.execute(wanted)}

    def on_plan(self, plan_id: PlanId) -> list[WorkspaceId]:
        """The workspaces on a plan, by id."""
        wanted = select(workspace.c.id).where(workspace.c.plan_id == plan_id)
        return list(self._connection.scalars(wanted.order_by(workspace.c.id)))


class SqlPlans:
    """The port's `PlanTables` over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, row: Plan) -> None:
        """Keep a new plan."""
        self._connection.execute(insert(plan).values(fields_of(row)))

    def save(self, row: Plan) -> None:
        """Keep what changed of a plan."""
        self._connection.execute(update(plan).where(plan.c.id == row.id).values(fields_of(row)))

    def get(self, plan_id: PlanId) -> Plan | None:
        """A plan; None where there is none such."""
        found = self._connection.execute(_PLAN.where(plan.c.id == plan_id)).mappings().first()
        return None if found is None else value_of(Plan, found)

    def page(self, *, after: PlanId | None, limit: int) -> list[Plan]:
        """Plans by id."""
        wanted = _PLAN if after is None else _PLAN.where(plan.c.id > after)
        ordered = wanted.order_by(plan.c.id).limit(limit)
        return [value_of(Plan, row) for row in self._connection.execute(ordered).mappings()]

    def of(self, ids: Collection[WorkspaceId]) -> dict[WorkspaceId, Plan]:
        """The plan of each of these workspaces that is on one that there is."""
        wanted = (
            _PLAN.add_columns(workspace.c.id.label("of"))
            .join_from(plan, workspace, workspace.c.plan_id == plan.c.id)
            .where(workspace.c.id.in_(sorted(ids)))
        )
        rows = self._connection.execute(wanted).mappings()
        return {row["of"]: value_of(Plan, row) for row in rows}


class SqlMembers:
    """The port's `Members` over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, row: MemberRow) -> None:
        """Keep a new member."""
        self._connection.execute(insert(member).values(fields_of(row)))

    def save(self, row: MemberRow) -> None:
        """Keep what changed of a member."""
        self._connection.execute(update(member).where(member.c.id == row.id).values(fields_of(row)))

    def get(self, member_id: MemberId) -> MemberRow | None:
        """A member; None where there is none such."""
        wanted = _MEMBER.where(member.c.id == member_id)
        found = self._connection.execute(wanted).mappings().first()
        return None if found is None else value_of(MemberRow, found)

    def lock(self, member_id: MemberId) -> MemberRow | None:
        """The same, which does not leave, and gets nothing from others, until this ends."""
        wanted = _MEMBER.where(member.c.id == member_id).with_for_update()
        found = self._connection.execute(wanted).mappings().first()
        return None if found is None else value_of(MemberRow, found)

    def page(
        self, *, workspace: WorkspaceId | None, after: Place | None, limit: int
    ) -> list[MemberRow]:
        """Members added after another one, oldest first; of one workspace where it is given."""
        wanted = _MEMBER
        if workspace is not None:
            wanted = wanted.where(member.c.workspace_id == workspace)
        rows = _page(self._connection, member, wanted, after=after, limit=limit)
        return [value_of(MemberRow, row) for row in rows]

    def names(self, ids: Collection[MemberId]) -> dict[MemberId, str]:
        """The names of these members."""
        wanted = select(member.c.id, member.c.name).where(member.c.id.in_(sorted(set(ids))))
        return {row.id: row.name for row in self._connection.execute(wanted)}


_WORKSPACE = select(*columns_of(workspace, WorkspaceRow))
_PLAN = select(*columns_of(plan, Plan))
_MEMBER = select(*columns_of(member, MemberRow))


def _page(
    connection: Connection,
    table: Table,
    wanted: Any,  # noqa: ANN401  a select of whatever columns
    *,
    after: Place | None,
    limit: int,
) -> list[RowMapping]:
    place = (table.c.created_at, table.c.id)
    if after is not None:
        wanted = wanted.where(tuple_(*place) > after)
    return list(connection.execute(wanted.order_by(*place).limit(limit)).mappings())
