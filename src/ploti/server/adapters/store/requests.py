"""What was asked, in tables: the staff's audit, and answers kept for requests that come again."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select

from ploti.model.ids import KeyId
from ploti.model.wire import Instant
from ploti.server.adapters.store.columns import columns_of, fields_of, value_of
from ploti.server.adapters.store.tables import audit_entry, kept_answer, member
from ploti.server.ports.rows import AnswerRow, AuditRow, ListedAudit


class SqlAudit:
    """The port's `Audit` over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, entry: AuditRow) -> None:
        """Keep a new entry; its id is given here."""
        fields = fields_of(entry)
        del fields["id"]
        self._connection.execute(insert(audit_entry).values(fields))

    def page(self, *, before: int | None, limit: int, subject: str | None) -> list[ListedAudit]:
        """Entries before another one, newest first; of one subject where it is given."""
        wanted = _LISTED
        if before is not None:
            wanted = wanted.where(audit_entry.c.id < before)
        if subject is not None:
            wanted = wanted.where(audit_entry.c.subject == subject)
        ordered = wanted.order_by(audit_entry.c.id.desc()).limit(limit)
        return [
            ListedAudit(entry=value_of(AuditRow, row), member_name=row["member_name"])
            for row in self._connection.execute(ordered).mappings()
        ]


class SqlAnswers:
    """The port's `Answers` over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, answer: AnswerRow) -> None:
        """Keep an answer, in place of an older one of the same key and name."""
        same = (kept_answer.c.key_id == answer.key_id, kept_answer.c.name == answer.name)
        self._connection.execute(delete(kept_answer).where(*same))
        self._connection.execute(insert(kept_answer).values(fields_of(answer)))

    def find(self, key_id: KeyId, name: str, *, since: Instant) -> AnswerRow | None:
        """The answer that a request of this key was given under the name, kept since then."""
        same = (kept_answer.c.key_id == key_id, kept_answer.c.name == name)
        wanted = _ANSWER.where(*same, kept_answer.c.at >= since)
        found = self._connection.execute(wanted).mappings().first()
        return None if found is None else value_of(AnswerRow, found)

    def prune(self, *, before: Instant) -> None:
        """Forget answers that are older."""
        self._connection.execute(delete(kept_answer).where(kept_answer.c.at < before))


_ANSWER = select(*columns_of(kept_answer, AnswerRow))
_LISTED = select(*columns_of(audit_entry, AuditRow), member.c.name.label("member_name")).join_from(
    audit_entry, member, member.c.id == audit_entry.c.member_id
)
