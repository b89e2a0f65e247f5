"""Port of the database for workspaces, plans, members and keys, and for what staff did."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from ploti.model.account import Plan
from ploti.model.ids import KeyId, MemberId, PlanId, WorkspaceId
from ploti.model.wire import Instant
from ploti.server.membership.principal import Principal
from ploti.server.ports.rows import (
    AnswerRow,
    AuditRow,
    KeyRow,
    ListedAudit,
    ListedKey,
    MemberRow,
    WorkspaceRow,
)

Place = tuple[Instant, str]
"""Where a page of a list by time begins: the time and id of the last one of the page before."""


class Workspaces(Protocol):
    """Workspaces, each with its coverage and the plan that it is on."""

    def add(self, workspace: WorkspaceRow) -> None:
        """Keep a new workspace."""
        ...

    def save(self, workspace: WorkspaceRow) -> None:
        """Keep what changed of a workspace."""
        ...

    def get(self, workspace_id: WorkspaceId) -> WorkspaceRow | None:
        """A workspace; None where there is none such."""
        ...

    def page(self, *, after: Place | None, limit: int) -> list[WorkspaceRow]:
        """Workspaces made after another one, oldest first."""
        ...

    def public(self) -> list[WorkspaceId]:
        """The workspaces that can be read without a key, by id."""
        ...

    def coverage(self, ids: Collection[WorkspaceId]) -> dict[WorkspaceId, list[str] | None]:
        """The coverage of each of these workspaces that there is."""
        ...

    def on_plan(self, plan_id: PlanId) -> list[WorkspaceId]:
        """The workspaces on a plan, by id."""
        ...


class PlanTables(Protocol):
    """Plans that are kept here."""

    def add(self, plan: Plan) -> None:
        """Keep a new plan."""
        ...

    def save(self, plan: Plan) -> None:
        """Keep what changed of a plan."""
        ...

    def get(self, plan_id: PlanId) -> Plan | None:
        """A plan; None where there is none such."""
        ...

    def page(self, *, after: PlanId | None, limit: int) -> list[Plan]:
        """Plans by id."""
        ...

    def of(self, ids: Collection[WorkspaceId]) -> dict[WorkspaceId, Plan]:
        """The plan of each of these workspaces that is on one that there is."""
        ...


class Members(Protocol):
    """Members of workspaces; one that left stays for what it did."""

    def add(self, member: MemberRow) -> None:
        """Keep a new member."""
        ...

    def save(self, member: MemberRow) -> None:
        """Keep what changed of a member."""
        ...

    def get(self, member_id: MemberId) -> MemberRow | None:
        """A member; None where there is none such."""
        ...

    def lock(self, member_id: MemberId) -> MemberRow | None:
        """The same, which does not leave, and gets nothing from others, until this ends."""
        ...

    def page(
        self, *, workspace: WorkspaceId | None, after: Place | None, limit: int
    ) -> list[MemberRow]:
        """Members added after another one, oldest first; of one workspace where it is given."""
        ...

    def names(self, ids: Collection[MemberId]) -> dict[MemberId, str]:
        """The names of these members."""
        ...


class Keys(Protocol):
    """API keys, of which only digests are kept."""

    def is_set_up(self) -> bool:
        """Whether there is any key."""
        ...

    def add(self, key: KeyRow) -> None:
        """Keep a new key."""
        ...

    def get(self, key_id: KeyId) -> ListedKey | None:
        """A key; None where there is none such."""
        ...

    def page(
        self, *, workspace: WorkspaceId | None, before: Place | None, limit: int
    ) -> list[ListedKey]:
        """Keys made before another one, newest first; of one workspace where it is given."""
        ...

    def principal(self, digest: str, *, now: Instant) -> Principal | None:
        """Who calls with the key of this digest; None where it is unknown, revoked or expired."""
        ...

    def lock(self, key_id: KeyId) -> None:
        """Let nobody else who locks the key go on until the transaction ends."""
        ...

    def revoke(self, key_id: KeyId, *, at: Instant) -> None:
        """End a key; one that was ended before stays as it was."""
        ...

    def revoke_of(self, member_id: MemberId, *, at: Instant) -> None:
        """End every key of a member."""
        ...

    def note_use(self, used: dict[KeyId, Instant]) -> None:
        """Keep when keys were used last; an earlier time than the one kept changes nothing."""
        ...


class Audit(Protocol):
    """What staff did."""

    def add(self, entry: AuditRow) -> None:
        """Keep a new entry; its id is given here."""
        ...

    def page(self, *, before: int | None, limit: int, subject: str | None) -> list[ListedAudit]:
        """Entries before another one, newest first; of one subject where it is given."""
        ...


class Answers(Protocol):
    """What requests with an `Idempotency-Key` were answered."""

    def add(self, answer: AnswerRow) -> None:
        """Keep an answer, in place of an older one of the same key and name."""
        ...

    def find(self, key_id: KeyId, name: str, *, since: Instant) -> AnswerRow | None:
        """The answer that a request of this key was given under the name, kept since then."""
        ...

    def prune(self, *, before: Instant) -> None:
        """Forget answers that are older."""
        ...
