"""Members of workspaces and their keys, made and ended by staff."""

from __future__ import annotations

from msgspec.structs import asdict, replace

from ploti.errors import Conflict, Fault, InvalidInput, NotFound
from ploti.model.account import (
    Key,
    KeyPage,
    KeyWithSecret,
    Member,
    MemberPage,
    NewKey,
    NewMember,
)
from ploti.model.ids import KeyId, MemberId, WorkspaceId
from ploti.model.webhook import OffReason
from ploti.model.wire import UNSET, Instant
from ploti.server.membership.principal import ADMIN, FEEDS, WEBHOOKS
from ploti.server.ports.outside import Ids
from ploti.server.ports.rows import KeyRow, ListedKey, MemberRow
from ploti.server.ports.store import Transaction
from ploti.server.service.authenticate import key_digest
from ploti.server.service.manage_workspaces import checked_name, find_workspace
from ploti.server.service.page_lists import check_limit, cut, read_timed_cursor, timed_cursor

SHOWN = 12
"""Letters of a key that its list shows."""

PERMISSIONS = (FEEDS, WEBHOOKS, ADMIN)


def add_member(tx: Transaction, new: NewMember, *, ids: Ids, now: Instant) -> Member:
    """Add a member to a workspace; raises NotFound for the workspace, or InvalidInput."""
    row = MemberRow(
        id=MemberId(ids.token("mem_")),
        workspace_id=find_workspace(tx, new.workspace_id).id,
        name=checked_name(new.name),
        created_at=now,
    )
    tx.members.add(row)
    return _show_member(row)


def remove_member(tx: Transaction, member_id: MemberId, *, now: Instant) -> Member:
    """Have a member leave: its keys are revoked and its webhooks turned off (R-159).

    Raises NotFound; one that left before stays as it was.
    """
    before = _lock_member(tx, member_id)
    if before.left_at is not None:
        return _show_member(before)
    after = replace(before, left_at=now)
    tx.members.save(after)
    tx.keys.revoke_of(member_id, at=now)
    tx.webhooks.turn_off(OffReason.MEMBER_LEFT, at=now, member=member_id)
    return _show_member(after)


def list_members(
    tx: Transaction, *, workspace: WorkspaceId | None, cursor: str | None, limit: int
) -> MemberPage:
    """Members, oldest first, those who left too; of one workspace where it is given."""
    check_limit(limit)
    found = tx.members.page(workspace=workspace, after=read_timed_cursor(cursor), limit=limit + 1)
    page, next_cursor = cut(
        found, limit=limit, cursor=lambda row: timed_cursor(row.created_at, row.id)
    )
    return MemberPage(members=[_show_member(row) for row in page], next_cursor=next_cursor)


def create_key(tx: Transaction, new: NewKey, *, ids: Ids, now: Instant) -> KeyWithSecret:
    """Make a key for a member, with `feeds` and `webhooks` unless told otherwise (R-170).

    Raises NotFound for the member, Conflict where it has left, InvalidInput for what cannot be
    meant.
    """
    member = _lock_member(tx, new.member_id)
    if member.left_at is not None:
        raise Conflict(f"{member.id} has left its workspace: add a member, and make the key for it")
    secret = ids.secret("ploti_")
    row = KeyRow(
        id=KeyId(ids.token("key_")),
        workspace_id=member.workspace_id,
        member_id=member.id,
        name=_checked_key_name(new.name),
        permissions=_checked_permissions(new),
        prefix=secret[:SHOWN],
        digest=key_digest(secret),
        created_at=now,
        expires_at=_checked_end(new.expires_at, now=now),
    )
    tx.keys.add(row)
    return KeyWithSecret(**asdict(_show_key(row, member.name)), secret=secret)


def revoke_key(tx: Transaction, key_id: KeyId, *, now: Instant) -> Key:
    """End a key at once; its webhooks go on (S-48). Raises NotFound."""
    _find_key(tx, key_id)
    tx.keys.revoke(key_id, at=now)
    return _show_listed(_find_key(tx, key_id))


def list_keys(
    tx: Transaction, *, workspace: WorkspaceId | None, cursor: str | None, limit: int
) -> KeyPage:
    """Keys by their first letters, newest first; of one workspace where it is given."""
    check_limit(limit)
    found = tx.keys.page(workspace=workspace, before=read_timed_cursor(cursor), limit=limit + 1)
    page, next_cursor = cut(
        found,
        limit=limit,
        cursor=lambda listed: timed_cursor(listed.key.created_at, listed.key.id),
    )
    return KeyPage(keys=[_show_listed(listed) for listed in page], next_cursor=next_cursor)


def _lock_member(tx: Transaction, member_id: MemberId) -> MemberRow:
    found = tx.members.lock(member_id)
    if found is None:
        raise NotFound(f"There is no member {member_id}: the list of members has their ids")
    return found


def _find_key(tx: Transaction, key_id: KeyId) -> ListedKey:
    found = tx.keys.get(key_id)
    if found is None:
        raise NotFound(f"There is no key {key_id}: the list of keys has their ids")
    return found


def _checked_key_name(name: str) -> str:
    return checked_name(name) if name else name


def _checked_permissions(new: NewKey) -> list[str]:
    if new.permissions is UNSET:
        return [FEEDS, WEBHOOKS]
    unknown = sorted(set(new.permissions) - set(PERMISSIONS))
    if unknown or not new.permissions:
        told = ", ".join(PERMISSIONS)
        raise _refused("permissions", f"{unknown or 'nothing'} is none of {told}")
    return [each for each in PERMISSIONS if each in new.permissions]


def _checked_end(end: Instant | None, *, now: Instant) -> Instant | None:
    if end is not None and end <= now:
        raise _refused("expiresAt", f"{end} is past: give a time ahead")
    return end


def _refused(field: str, message: str) -> InvalidInput:
    return InvalidInput(f"{field} {message}", errors=(Fault(field, message),))


def _show_member(row: MemberRow) -> Member:
    return Member(
        id=row.id,
        workspace_id=row.workspace_id,
        name=row.name,
        created_at=row.created_at,
        left_at=row.left_at,
    )


def _show_listed(listed: ListedKey) -> Key:
    return _show_key(listed.key, listed.member_name)


def _show_key(row: KeyRow, member_name: str) -> Key:
    return Key(
        id=row.id,
        workspace_id=row.workspace_id,
        member_id=row.member_id,
        member_name=member_name,
        name=row.name,
        prefix=row.prefix,
        permissions=row.permissions,
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        last_used_at=row.last_used_at,
    )
