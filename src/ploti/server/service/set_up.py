"""The first workspace with its two keys, in an empty database."""

from __future__ import annotations

from ploti.model.account import DEFAULT_PLAN, Plan
from ploti.model.ids import KeyId, MemberId, WorkspaceId
from ploti.model.wire import Instant, Value
from ploti.server.membership.principal import ADMIN, FEEDS, WEBHOOKS
from ploti.server.ports.outside import Ids
from ploti.server.ports.rows import KeyRow, MemberRow, WorkspaceRow
from ploti.server.ports.store import Transaction
from ploti.server.service.authenticate import key_digest
from ploti.server.service.manage_members import SHOWN


class NewKeys(Value, kw_only=True):
    """The keys of a new set-up, shown this once."""

    staff: str
    subscriber: str


def set_up(tx: Transaction, *, ids: Ids, now: Instant) -> NewKeys | None:
    """Make the workspace `default`, a member and two keys; None where it is set up already."""
    if tx.keys.is_set_up():
        return None
    workspace_id = WorkspaceId(ids.token("ws_"))
    member_id = MemberId(ids.token("mem_"))
    keys = NewKeys(staff=ids.secret("ploti_"), subscriber=ids.secret("ploti_"))
    tx.plans.add(Plan(id=DEFAULT_PLAN, created_at=now))
    tx.workspaces.add(
        WorkspaceRow(
            id=workspace_id,
            name="default",
            coverage=None,
            plan_id=DEFAULT_PLAN,
            public=False,
            created_at=now,
        )
    )
    tx.members.add(
        MemberRow(id=member_id, workspace_id=workspace_id, name="default", created_at=now)
    )
    for secret, permissions in (
        (keys.staff, [FEEDS, WEBHOOKS, ADMIN]),
        (keys.subscriber, [FEEDS, WEBHOOKS]),
    ):
        tx.keys.add(
            KeyRow(
                id=KeyId(ids.token("key_")),
                workspace_id=workspace_id,
                member_id=member_id,
                permissions=permissions,
                prefix=secret[:SHOWN],
                digest=key_digest(secret),
                created_at=now,
            )
        )
    return keys
