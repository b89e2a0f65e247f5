"""Workspaces with their coverage, plans, members and keys, as the operator's staff see them."""

from __future__ import annotations

from ploti.model.ids import DatasetId, KeyId, MemberId, PlanId, WorkspaceId
from ploti.model.wire import UNSET, Instant, Unset, Value

DEFAULT_PLAN = PlanId("default")
"""The plan that a workspace is on unless another one is named: it opens everything at first."""


class PlanTerms(Value, kw_only=True):
    """What a plan opens: topics with all below them, and datasets by id.

    Where both are null that is everything; a list has 200 topics or 1,000 datasets at most.
    """

    topics: list[str] | None = None
    datasets: list[DatasetId] | None = None


class NewPlan(PlanTerms, kw_only=True):
    """The body that creates a plan; its id is chosen, such as `permits-only`."""

    id: PlanId


class PlanPatch(Value, kw_only=True):
    """A JSON merge patch of a plan: what is left out stays, null is no list."""

    topics: list[str] | Unset | None = UNSET
    datasets: list[DatasetId] | Unset | None = UNSET


class Plan(PlanTerms, kw_only=True):
    """A named list of what it opens inside a workspace's coverage (R-202)."""

    id: PlanId
    created_at: Instant


class PlanPage(Value, kw_only=True):
    """Plans by id."""

    plans: list[Plan]
    next_cursor: str | None


class NewWorkspace(Value, kw_only=True):
    """The body that creates a workspace; a `coverage` of null is everything."""

    name: str
    coverage: list[str] | None = None
    plan_id: PlanId = DEFAULT_PLAN
    public: bool = False


class WorkspacePatch(Value, kw_only=True):
    """A JSON merge patch of a workspace: what is left out stays."""

    name: str | Unset = UNSET
    coverage: list[str] | Unset | None = UNSET
    plan_id: PlanId | Unset = UNSET
    public: bool | Unset = UNSET


class Workspace(Value, kw_only=True):
    """The account that owns keys, subscriptions and webhooks.

    `coverage` is the places that it may have, with all below them; null is everything. The
    catalogue and files of a `public` one can be read without a key.
    """

    id: WorkspaceId
    name: str
    coverage: list[str] | None
    plan_id: PlanId
    public: bool
    created_at: Instant


class WorkspacePage(Value, kw_only=True):
    """Workspaces, oldest first."""

    workspaces: list[Workspace]
    next_cursor: str | None


class NewMember(Value, kw_only=True):
    """The body that adds a member to a workspace."""

    workspace_id: WorkspaceId
    name: str


class Member(Value, kw_only=True):
    """A person or a service in a workspace; its keys act for it."""

    id: MemberId
    workspace_id: WorkspaceId
    name: str
    created_at: Instant
    left_at: Instant | None


class MemberPage(Value, kw_only=True):
    """Members, oldest first."""

    members: list[Member]
    next_cursor: str | None


class NewKey(Value, kw_only=True):
    """The body that makes a key for a member; it has both `feeds` and `webhooks` unless told."""

    member_id: MemberId
    name: str = ""
    permissions: list[str] | Unset = UNSET
    expires_at: Instant | None = None


class Key(Value, kw_only=True):
    """An API key as it is listed: its first letters, and not the secret.

    `last_used_at` is right to a minute or so.
    """

    id: KeyId
    workspace_id: WorkspaceId
    member_id: MemberId
    member_name: str
    name: str
    prefix: str
    permissions: list[str]
    created_at: Instant
    expires_at: Instant | None
    revoked_at: Instant | None
    last_used_at: Instant | None


class KeyWithSecret(Key, kw_only=True):
    """A new key with its secret, which is shown this once."""

    secret: str


class KeyPage(Value, kw_only=True):
    """Keys, newest first."""

    keys: list[Key]
    next_cursor: str | None


class AuditEntry(Value, kw_only=True):
    """What one of the staff did: which call, of what, and with which parameters."""

    at: Instant
    member_id: MemberId
    member_name: str
    key_id: KeyId
    action: str
    subject: str
    query: dict[str, str]


class AuditPage(Value, kw_only=True):
    """What staff did, newest first."""

    entries: list[AuditEntry]
    next_cursor: str | None
