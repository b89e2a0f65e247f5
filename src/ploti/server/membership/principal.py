"""Who calls: a member of a workspace, by one of its keys, with the key's permissions."""

from __future__ import annotations

from ploti.errors import Forbidden
from ploti.model.ids import KeyId, MemberId, WorkspaceId
from ploti.model.wire import Value

FEEDS = "feeds"
WEBHOOKS = "webhooks"
ADMIN = "admin"


class Principal(Value, kw_only=True):
    """The member behind a key, and what the key permits."""

    workspace_id: WorkspaceId
    member_id: MemberId
    key_id: KeyId
    permissions: frozenset[str]


def require(principal: Principal, permission: str) -> None:
    """Raise Forbidden, naming the permission, where the key lacks it."""
    if permission not in principal.permissions:
        raise Forbidden(f"This key lacks the permission '{permission}': use one that has it")
