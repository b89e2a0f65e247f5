"""What staff did, for staff."""

from __future__ import annotations

import re

from ploti.errors import Fault, InvalidInput
from ploti.model.account import AuditEntry, AuditPage
from ploti.server.ports.rows import ListedAudit
from ploti.server.ports.store import Transaction
from ploti.server.service.page_lists import check_limit, cut

_NUMBER = re.compile(r"[0-9]{1,18}")
_LARGEST = (1 << 31) - 1
"""What the ids of entries go up to."""


def list_audit(
    tx: Transaction, *, subject: str | None, cursor: str | None, limit: int
) -> AuditPage:
    """Entries, newest first, of one subject where it is given; raises InvalidInput."""
    check_limit(limit)
    found = tx.audit.page(before=_position(cursor), limit=limit + 1, subject=subject)
    page, next_cursor = cut(found, limit=limit, cursor=lambda listed: str(listed.entry.id))
    return AuditPage(entries=[_show(listed) for listed in page], next_cursor=next_cursor)


def _position(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if _NUMBER.fullmatch(cursor) is None or int(cursor) > _LARGEST:
        message = f"'{cursor}' is not one that a page of this list gave as nextCursor"
        raise InvalidInput(f"cursor {message}", errors=(Fault("cursor", message),))
    return int(cursor)


def _show(listed: ListedAudit) -> AuditEntry:
    entry = listed.entry
    return AuditEntry(
        at=entry.at,
        member_id=entry.member_id,
        member_name=listed.member_name,
        key_id=entry.key_id,
        action=entry.action,
        subject=entry.subject,
        query=entry.query,
    )
