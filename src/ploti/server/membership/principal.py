"""Who calls: a member by a key with its permissions, or somebody who only reads."""

from __future__ import annotations

from ploti.errors import Forbidden
from ploti.model.ids import KeyId, MemberId, WorkspaceId
from ploti.model.wire import Value
from ploti.server.membership.rights import NOT_READ, PlanReading

FEEDS = "feeds"
WEBHOOKS = "webhooks"
ADMIN = "admin"


class Principal(Value, kw_only=True):
    """The member behind a key, and what the key permits."""

    workspace_id: WorkspaceId
    member_id: MemberId
    key_id: KeyId
    permissions: frozenset[str]


class Reader(Value, kw_only=True):
    """Who reads the catalogue: for which workspaces, and what their plans open.

    Without a key these are the public workspaces.
    """

    workspaces: tuple[WorkspaceId, ...]
    plans: PlanReading = NOT_READ


def require(principal: Principal, permission: str) -> None:
    """Raise Forbidden, naming the permission, where the key lacks it."""
    if permission not in principal.permissions:
        raise Forbidden(f"This key lacks the permission '{permission}': use one that has it")
