"""The first tables: accounts, datasets with their versions, subscriptions with their logs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


# Ids, times and words compare by their bytes, whatever the database's own order of texts is.
_BY_BYTES = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Make all tables."""
    _accounts()
    _requests()
    _datasets()
    _versions()
    _reviews()
    _subscriptions()
    _logs()
    _webhooks()


def _word(name: str, *, null: bool = False, key: bool = False) -> sa.Column[str]:
    return sa.Column(name, _BY_BYTES, nullable=null, primary_key=key)


def _text(name: str, *, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=null)


def _number(name: str, *, null: bool = False, key: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=null, primary_key=key)


def _accounts() -> None:
    op.create_table(
        "workspace",
        _word("id", key=True),
        _word("name"),
        _text("coverage", null=True),
        _word("plan_id"),
        sa.Column("public", sa.Boolean, nullable=False),
        _word("created_at"),
    )
    op.create_index("workspace_plan", "workspace", ["plan_id"])
    op.create_table(
        "plan",
        _word("id", key=True),
        _text("topics", null=True),
        _text("datasets", null=True),
        _word("created_at"),
    )
    op.create_table(
        "member",
        _word("id", key=True),
        _word("workspace_id"),
        _word("name"),
        _word("created_at"),
        _word("left_at", null=True),
    )
    op.create_index("member_of", "member", ["workspace_id", "created_at", "id"])
    op.create_table(
        "api_key",
        _word("id", key=True),
        _word("workspace_id"),
        _word("member_id"),
        _word("name"),
        _text("permissions"),
        _word("prefix"),
        _word("digest"),
        _word("created_at"),
        _word("expires_at", null=True),
        _word("revoked_at", null=True),
        _word("last_used_at", null=True),
        sa.UniqueConstraint("digest"),
    )
    op.create_index("api_key_newest", "api_key", ["created_at", "id"])


def _requests() -> None:
    op.create_table(
        "audit_entry",
        _number("id", key=True),
        _word("at"),
        _word("member_id"),
        _word("key_id"),
        _word("action"),
        _word("subject"),
        _text("query"),
    )
    op.create_table(
        "kept_answer",
        _word("key_id", key=True),
        _word("name", key=True),
        _word("request"),
        _text("answer"),
        _word("at"),
    )
    op.create_index("kept_answer_at", "kept_answer", ["at"])


def _datasets() -> None:
    catalogue = op.create_table("catalogue", _number("id", key=True), _number("revision"))
    op.bulk_insert(catalogue, [{"id": 1, "revision": 0}])
    op.create_table(
        "dataset",
        _word("id", key=True),
        _word("place"),
        _word("topic"),
        _text("declaration"),
        sa.Column("deliverable", sa.Boolean, nullable=False),
        _number("next_number"),
        _number("current_version", null=True),
        _word("last_checked_at", null=True),
        _word("due_since", null=True),
        _word("stale_for", null=True),
        _word("failing_since", null=True),
        _number("failures"),
        _word("failure", null=True),
        _number("released_again", null=True),
        _number("looked_back"),
    )
    op.create_index(
        "dataset_failing",
        "dataset",
        ["failing_since", "id"],
        sqlite_where=sa.text("failing_since IS NOT NULL"),
        postgresql_where=sa.text("failing_since IS NOT NULL"),
    )
    op.create_table(
        "job",
        _word("kind", key=True),
        _word("subject", key=True),
        _word("run_at"),
        _word("token", null=True),
    )
    op.create_index("job_due", "job", ["run_at"])
    op.create_index(
        "job_leased",
        "job",
        ["kind"],
        sqlite_where=sa.text("token IS NOT NULL"),
        postgresql_where=sa.text("token IS NOT NULL"),
    )
    op.create_table(
        "alert",
        _word("id", key=True),
        *map(_word, ("type", "body", "raised_at")),
        _number("tries"),
        _word("ended_at", null=True),
    )
    op.create_table(
        "upkeep",
        _number("id", key=True),
        *map(_word, ("run_at", "pruned_to")),
        _word("stopped", null=True),
    )


def _versions() -> None:
    op.create_table(
        "version",
        _word("dataset_id", key=True),
        _number("version", key=True),
        _word("state"),
        _word("attempt_id"),
        _number("previous_version", null=True),
        _word("schema_version"),
        _text("schema_change", null=True),
        sa.Column("row_count", sa.BigInteger, nullable=False),
        _text("counts", null=True),
        _word("reason", null=True),
        _word("content_digest", null=True),
        _word("built_at"),
        _word("published_at", null=True),
        _word("source_fetched_at"),
        _text("schema"),
        _text("buckets"),
    )
    op.create_table(
        "version_file",
        _word("blob", key=True),
        _word("dataset_id"),
        _number("version"),
        _word("role"),
        _word("format"),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        _word("sha256"),
    )
    op.create_index("version_file_of", "version_file", ["dataset_id", "version"])
    op.create_table(
        "source_state",
        _word("dataset_id", key=True),
        _word("role", key=True),
        _word("attempt_id"),
        _word("sha256"),
        _word("records"),
        _word("settings"),
        _word("blob", null=True),
        _word("name"),
        _word("fetched_at"),
        _text("validators", null=True),
        _word("whole_at", null=True),
    )


def _reviews() -> None:
    op.create_table(
        "hold",
        _word("id", key=True),
        _word("dataset_id"),
        _number("version"),
        _word("reason"),
        _word("state"),
        _word("since"),
        _text("findings"),
        sa.Column("matched", sa.Boolean, nullable=False),
        _word("decided_at", null=True),
        _word("decided_by", null=True),
        _word("note", null=True),
    )
    is_open = sa.text("state = 'open'")
    op.create_index(
        "hold_open",
        "hold",
        ["dataset_id"],
        unique=True,
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
    op.create_index("hold_newest", "hold", ["since", "id"])
    op.create_table(
        "accepted_finding",
        _word("id", key=True),
        *map(_word, ("dataset_id", "kind", "subject")),
        sa.Column("measure", sa.Float),
        *map(_word, ("message", "hold_id", "accepted_at", "accepted_by")),
        _word("note", null=True),
    )
    op.create_index(
        *("accepted_finding_of", "accepted_finding"), ["dataset_id", "kind", "subject"], unique=True
    )
    op.create_table(
        "id_proposal",
        _word("id", key=True),
        *map(_word, ("dataset_id", "kind", "state")),
        _number("version"),
        _word("column", null=True),
        _text("proposed"),
        _word("made_at"),
        *(_word(name, null=True) for name in ("made_by", "decided_at", "decided_by", "note")),
    )
    op.create_index("id_proposal_newest", "id_proposal", ["dataset_id", "made_at", "id"])
    op.create_table(
        "build_attempt",
        _word("id", key=True),
        _word("dataset_id"),
        _number("version"),
        _word("source_blob"),
        _word("started_at"),
        _word("state"),
        _text("progress", null=True),
    )
    op.create_index("build_attempt_state", "build_attempt", ["state"])


def _subscriptions() -> None:
    op.create_table(
        "subscription",
        _word("id", key=True),
        _word("workspace_id"),
        _word("name"),
        _text("places"),
        _text("topics"),
        _text("datasets"),
        _word("created_at"),
    )
    op.create_index("subscription_of", "subscription", ["workspace_id", "created_at", "id"])
    op.create_table(
        "membership",
        _word("subscription_id", key=True),
        _word("dataset_id", key=True),
        _number("log"),
        sqlite_with_rowid=False,
    )
    op.create_index("membership_of", "membership", ["dataset_id", "log"])


def _logs() -> None:
    op.create_table(
        "feed_log",
        _number("log", key=True),
        _word("subscription_id"),
        _number("last_seq"),
        _number("first_seq"),
        _number("settled_seq"),
        _text("newest"),
        sa.UniqueConstraint("subscription_id"),
        postgresql_with={"fillfactor": 50},
    )
    op.create_table(
        "feed_body",
        _number("id", key=True),
        _word("at"),
        _word("type"),
        _word("dataset_id"),
        _number("linked_version", null=True),
        _text("data"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "feed_run",
        _number("log", key=True),
        _number("first_seq", key=True),
        _number("first_body"),
        _text("bodies"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "feed_news",
        _number("id", key=True),
        _word("dataset_id", null=True),
        _word("subscription_id", null=True),
    )


def _webhooks() -> None:
    op.create_table(
        "webhook",
        _word("id", key=True),
        *map(_word, ("workspace_id", "subscription_id", "member_id", "url")),
        _text("events", null=True),
        _text("secrets"),
        *map(_word, ("created_at", "state")),
        _word("off_reason", null=True),
        _word("off_at", null=True),
        *map(_number, ("cursor", "rounds", "replay_until")),
        _word("due_at", null=True),
        sa.Column("slow", sa.Boolean, nullable=False),
        *map(_number, ("failures", "given_up")),
        _word("failing_since", null=True),
        _word("last_success_at", null=True),
        _number("average_ms"),
        _word("paced_until", null=True),
        _word("paused_until", null=True),
        _word("lease_until", null=True),
        _number("lease_token"),
    )
    op.create_index("webhook_of", "webhook", ["workspace_id", "created_at", "id"])
    op.create_index("webhook_subscription", "webhook", ["subscription_id"])
    op.create_index(
        "webhook_due",
        "webhook",
        ["slow", "due_at"],
        sqlite_where=sa.text("due_at IS NOT NULL"),
        postgresql_where=sa.text("due_at IS NOT NULL"),
    )
    _deliveries()


def _deliveries() -> None:
    op.create_table(
        "delivery",
        _word("id", key=True),
        _word("webhook_id"),
        _number("seq", null=True),
        _word("dataset_id", null=True),
        *map(_word, ("kind", "state")),
        _number("attempts"),
        _word("next_at", null=True),
        _word("created_at"),
        _word("ended_at", null=True),
    )
    op.create_index("delivery_newest", "delivery", ["webhook_id", "created_at", "id"])
    op.create_index(
        "delivery_waiting",
        "delivery",
        ["webhook_id", "next_at"],
        sqlite_where=sa.text("state = 'waiting'"),
        postgresql_where=sa.text("state = 'waiting'"),
    )
    op.create_index("delivery_ended", "delivery", ["ended_at"])
    op.create_table(
        "delivery_attempt",
        _word("delivery_id", key=True),
        _number("number", key=True),
        *map(_word, ("webhook_id", "started_at")),
        _number("ms"),
        _word("url"),
        _word("address", null=True),
        _number("status", null=True),
        _word("error", null=True),
        _word("location", null=True),
        _text("response", null=True),
        sa.Column("delivered", sa.Boolean, nullable=False),
    )
    op.create_index("delivery_attempt_of", "delivery_attempt", ["webhook_id", "started_at"])
