"""A new key for staff who lost theirs, made beside a server that is stopped."""

from __future__ import annotations

from ploti.errors import Conflict
from ploti.model.account import KeyWithSecret, NewKey, NewMember
from ploti.model.ids import MemberId
from ploti.model.wire import Instant
from ploti.server.membership.principal import ADMIN, FEEDS, WEBHOOKS
from ploti.server.ports.outside import Ids
from ploti.server.ports.rows import AuditRow
from ploti.server.ports.store import Transaction
from ploti.server.service.manage_members import add_member, create_key

NAME = "made by hand"
"""What the key is called in the list of keys."""


def make_staff_key(tx: Transaction, *, ids: Ids, now: Instant) -> KeyWithSecret:
    """Make a key with every permission, for the oldest member of the oldest workspace.

    Where nobody is left there, a member `staff` is added. It is in the audit. Raises Conflict
    where nothing is set up yet.
    """
    member = _find_member(tx, ids=ids, now=now)
    new = NewKey(member_id=member, name=NAME, permissions=[FEEDS, WEBHOOKS, ADMIN])
    made = create_key(tx, new, ids=ids, now=now)
    tx.audit.add(
        AuditRow(
            at=now,
            member_id=made.member_id,
            key_id=made.id,
            action="make_staff_key",
            subject=made.id,
            query={},
        )
    )
    return made


def _find_member(tx: Transaction, *, ids: Ids, now: Instant) -> MemberId:
    oldest = tx.workspaces.page(after=None, limit=1)
    if not oldest:
        raise Conflict("Nothing is set up there yet: start it once with ploti serve --data DIR")
    workspace = oldest[0].id
    present = [
        member
        for member in tx.members.page(workspace=workspace, after=None, limit=500)
        if member.left_at is None
    ]
    if present:
        return present[0].id
    return add_member(tx, NewMember(workspace_id=workspace, name="staff"), ids=ids, now=now).id
