"""API keys in a table."""

from __future__ import annotations

import hmac
from functools import lru_cache

from sqlalchemy import Connection, RowMapping, insert, or_, select, tuple_, update

from ploti.model.ids import KeyId, MemberId, WorkspaceId
from ploti.model.wire import Instant, decode
from ploti.server.adapters.store.columns import columns_of, fields_of, value_of
from ploti.server.adapters.store.driver import ask
from ploti.server.adapters.store.tables import api_key, member
from ploti.server.membership.principal import Principal
from ploti.server.ports.accounts import Place
from ploti.server.ports.rows import KeyRow, ListedKey


class SqlKeys:
    """The port's `Keys` over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def is_set_up(self) -> bool:
        """Whether there is any key."""
        return self._connection.scalar(select(api_key.c.id).limit(1)) is not None

    def add(self, key: KeyRow) -> None:
        """Keep a new key."""
        self._connection.execute(insert(api_key).values(fields_of(key)))

    def get(self, key_id: KeyId) -> ListedKey | None:
        """A key; None where there is none such."""
        wanted = _LISTED.where(api_key.c.id == key_id)
        found = self._connection.execute(wanted).mappings().first()
        return None if found is None else _listed(found)

    def page(
        self, *, workspace: WorkspaceId | None, before: Place | None, limit: int
    ) -> list[ListedKey]:
        """Keys made before another one, newest first; of one workspace where it is given."""
        place = (api_key.c.created_at, api_key.c.id)
        wanted = _LISTED
        if workspace is not None:
            wanted = wanted.where(api_key.c.workspace_id == workspace)
        if before is not None:
            wanted = wanted.where(tuple_(*place) < before)
        ordered = wanted.order_by(*(column.desc() for column in place)).limit(limit)
        return [_listed(row) for row in self._connection.execute(ordered).mappings()]

    def principal(self, digest: str, *, now: Instant) -> Principal | None:
        """Who calls with the key of this digest; None where it is unknown, revoked or expired.

        The index is asked for a digest, of which nobody can choose the first letters; what it
        finds is compared in constant time.
        """
        found = ask(self._connection, _PRINCIPAL, (digest, str(now))).fetchone()
        return None if found is None else principal_of(*found, digest=digest)

    def lock(self, key_id: KeyId) -> None:
        """Let nobody else who locks the key go on until the transaction ends."""
        same = api_key.c.id == key_id
        self._connection.execute(select(api_key.c.id).where(same).with_for_update())

    def revoke(self, key_id: KeyId, *, at: Instant) -> None:
        """End a key; one that was ended before stays as it was."""
        alive = (api_key.c.id == key_id, api_key.c.revoked_at.is_(None))
        self._connection.execute(update(api_key).where(*alive).values(revoked_at=at))

    def revoke_of(self, member_id: MemberId, *, at: Instant) -> None:
        """End every key of a member."""
        alive = (api_key.c.member_id == member_id, api_key.c.revoked_at.is_(None))
        self._connection.execute(update(api_key).where(*alive).values(revoked_at=at))

    def note_use(self, used: dict[KeyId, Instant]) -> None:
        """Keep when keys were used last; an earlier time than the one kept changes nothing."""
        for key_id, at in used.items():
            earlier = or_(api_key.c.last_used_at.is_(None), api_key.c.last_used_at < at)
            same = (api_key.c.id == key_id, earlier)
            self._connection.execute(update(api_key).where(*same).values(last_used_at=at))


_LISTED = select(*columns_of(api_key, KeyRow), member.c.name.label("member_name")).join_from(
    api_key, member, member.c.id == api_key.c.member_id
)

_PRINCIPAL = """
SELECT id, workspace_id, member_id, permissions, digest
FROM api_key
WHERE digest = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)
"""


def principal_of(
    key_id: KeyId,
    workspace_id: WorkspaceId,
    member_id: MemberId,
    permissions: str,
    kept: str,
    *,
    digest: str,
) -> Principal | None:
    """The member of a key's row whose digest is `kept`; None where that is another digest."""
    if not hmac.compare_digest(kept, digest):
        return None
    return Principal(
        key_id=key_id,
        workspace_id=workspace_id,
        member_id=member_id,
        permissions=_permissions(permissions),
    )


@lru_cache
def _permissions(text: str) -> frozenset[str]:
    return frozenset(decode(text, list[str]))


def _listed(row: RowMapping) -> ListedKey:
    return ListedKey(key=value_of(KeyRow, row), member_name=row["member_name"])
