"""Workspaces, members and keys in tables."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, insert, select

from ploti.model.ids import MemberId, WorkspaceId
from ploti.model.wire import Instant
from ploti.server.adapters.store.columns import fields_of
from ploti.server.adapters.store.tables import api_key, member, workspace
from ploti.server.membership.principal import Principal
from ploti.server.ports.rows import KeyRow


class SqlKeys:
    """The port's `Keys` over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def is_set_up(self) -> bool:
        """Whether there is any workspace."""
        return self._connection.scalar(select(workspace.c.id).limit(1)) is not None

    def add_workspace(self, workspace_id: WorkspaceId, *, name: str, now: Instant) -> None:
        """Keep a new workspace."""
        self._connection.execute(
            insert(workspace).values(id=workspace_id, name=name, created_at=now)
        )

    def add_member(self, member_id: MemberId, *, of: WorkspaceId, name: str, now: Instant) -> None:
        """Keep a new member of a workspace."""
        self._connection.execute(
            insert(member).values(id=member_id, workspace_id=of, name=name, created_at=now)
        )

    def add(self, key: KeyRow) -> None:
        """Keep a new key."""
        self._connection.execute(insert(api_key).values(fields_of(key)))

    def principal(self, digest: str) -> Principal | None:
        """Who calls with the key of this digest; None where it is not known."""
        found = self._connection.execute(_PRINCIPAL, {"sought": digest}).first()
        if found is None:
            return None
        return Principal(
            workspace_id=found.workspace_id,
            member_id=found.member_id,
            key_id=found.id,
            permissions=frozenset(found.permissions),
        )


# Asked with every request: made once, with a parameter, it costs half as much.
_PRINCIPAL = select(
    api_key.c.id, api_key.c.workspace_id, api_key.c.member_id, api_key.c.permissions
).where(api_key.c.digest == bindparam("sought"))
