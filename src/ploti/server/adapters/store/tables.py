"""The tables as they are now; the migrations lead here, and a test compares the two."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    text,
)

from ploti.model.admin import BuildProgress, Finding, HoldState, ProposalKind, ProposalState
from ploti.model.event import EventType, HoldReason
from ploti.model.schema import Schema, SchemaChange
from ploti.model.version import BucketDigest, Counts, ResyncReason
from ploti.model.webhook import DeliveryKind, DeliveryState, OffReason, WebhookState
from ploti.server.adapters.store.columns import At, Json, Word
from ploti.server.build.candidate import FileRole, Proposed
from ploti.server.ports.alerts import AlertType
from ploti.server.ports.rows import JobKind, SealedSecret, VersionState
from ploti.server.release.known import Role
from ploti.server.sources.declaration import Declaration
from ploti.server.sources.validators import Validators

metadata = MetaData()

# Coverage and a plan's lists are null where they take in everything.
workspace = Table(
    "workspace",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("coverage", Json(list[str])),
    Column("plan_id", String, nullable=False),
    Column("public", Boolean, nullable=False),
    Column("created_at", At, nullable=False),
    Index("workspace_plan", "plan_id"),
)

plan = Table(
    "plan",
    metadata,
    Column("id", String, primary_key=True),
    Column("topics", Json(list[str])),
    Column("datasets", Json(list[str])),
    Column("created_at", At, nullable=False),
)

member = Table(
    "member",
    metadata,
    Column("id", String, primary_key=True),
    Column("workspace_id", String, nullable=False),
    Column("name", String, nullable=False),
    Column("created_at", At, nullable=False),
    Column("left_at", At),
    Index("member_of", "workspace_id", "created_at", "id"),
)

api_key = Table(
    "api_key",
    metadata,
    Column("id", String, primary_key=True),
    Column("workspace_id", String, nullable=False),
    Column("member_id", String, nullable=False),
    Column("name", String, nullable=False),
    Column("permissions", Json(list[str]), nullable=False),
    Column("prefix", String, nullable=False),
    Column("digest", String, nullable=False, unique=True),
    Column("created_at", At, nullable=False),
    Column("expires_at", At),
    Column("revoked_at", At),
    Column("last_used_at", At),
    Index("api_key_newest", "created_at", "id"),
)

audit_entry = Table(
    "audit_entry",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", At, nullable=False),
    Column("member_id", String, nullable=False),
    Column("key_id", String, nullable=False),
    Column("action", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("query", Json(dict[str, str]), nullable=False),
)

# What a POST with an Idempotency-Key was answered, sealed: some answers hold a secret.
kept_answer = Table(
    "kept_answer",
    metadata,
    Column("key_id", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("request", String, nullable=False),
    Column("answer", Text, nullable=False),
    Column("at", At, nullable=False),
    Index("kept_answer_at", "at"),
)

# One row, to be locked (delivery, 'Appending'); `revision` counts changes of coverage and plans.
catalogue = Table(
    "catalogue",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("revision", Integer, nullable=False),
)

dataset = Table(
    "dataset",
    metadata,
    Column("id", String, primary_key=True),
    Column("place", String, nullable=False),
    Column("topic", String, nullable=False),
    Column("declaration", Json(Declaration), nullable=False),
    Column("deliverable", Boolean, nullable=False),
    Column("next_number", Integer, nullable=False),
    Column("current_version", Integer),
    Column("last_checked_at", At),
    Column("due_since", At),
    Column("stale_for", At),
    Column("failing_since", At),
    Column("failures", Integer, nullable=False),
    Column("failure", String),
    Column("released_again", Integer),
    Column("looked_back", Integer, nullable=False),
    Index(
        "dataset_failing",
        "failing_since",
        "id",
        sqlite_where=text("failing_since IS NOT NULL"),
        postgresql_where=text("failing_since IS NOT NULL"),
    ),
)

# A lease is a `run_at` that lies ahead and a token that fences off who lost it.
job = Table(
    "job",
    metadata,
    Column("kind", Word(JobKind), primary_key=True),
    Column("subject", String, primary_key=True),
    Column("run_at", At, nullable=False),
    Column("token", String),
    Index("job_due", "run_at"),
    Index(
        "job_leased",
        "kind",
        sqlite_where=text("token IS NOT NULL"),
        postgresql_where=text("token IS NOT NULL"),
    ),
)

alert = Table(
    "alert",
    metadata,
    Column("id", String, primary_key=True),
    Column("type", Word(AlertType), nullable=False),
    Column("body", String, nullable=False),
    Column("raised_at", At, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("ended_at", At),
)

upkeep = Table(
    "upkeep",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("run_at", At, nullable=False),
    Column("pruned_to", At, nullable=False),
    Column("stopped", String),
)

version = Table(
    "version",
    metadata,
    Column("dataset_id", String, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("state", Word(VersionState), nullable=False),
    Column("attempt_id", String, nullable=False),
    Column("previous_version", Integer),
    Column("schema_version", String, nullable=False),
    Column("schema_change", Json(SchemaChange)),
    Column("row_count", BigInteger, nullable=False),
    Column("counts", Json(Counts)),
    Column("reason", Word(ResyncReason)),
    Column("content_digest", String),
    Column("built_at", At, nullable=False),
    Column("published_at", At),
    Column("source_fetched_at", At, nullable=False),
    Column("schema", Json(Schema), nullable=False),
    Column("buckets", Json(list[BucketDigest]), nullable=False),
)

version_file = Table(
    "version_file",
    metadata,
    Column("blob", String, primary_key=True),
    Column("dataset_id", String, nullable=False),
    Column("version", Integer, nullable=False),
    Column("role", Word(FileRole), nullable=False),
    Column("format", String, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("sha256", String, nullable=False),
    Index("version_file_of", "dataset_id", "version"),
)

source_state = Table(
    "source_state",
    metadata,
    Column("dataset_id", String, primary_key=True),
    Column("role", Word(Role), primary_key=True),
    Column("attempt_id", String, nullable=False),
    Column("sha256", String, nullable=False),
    Column("records", String, nullable=False),
    Column("settings", String, nullable=False),
    Column("blob", String),
    Column("name", String, nullable=False),
    Column("fetched_at", At, nullable=False),
    Column("validators", Json(Validators)),
    Column("whole_at", At),
)

hold = Table(
    "hold",
    metadata,
    Column("id", String, primary_key=True),
    Column("dataset_id", String, nullable=False),
    Column("version", Integer, nullable=False),
    Column("reason", Word(HoldReason), nullable=False),
    Column("state", Word(HoldState), nullable=False),
    Column("since", At, nullable=False),
    Column("findings", Json(list[Finding]), nullable=False),
    Column("matched", Boolean, nullable=False),
    Column("decided_at", At),
    Column("decided_by", String),
    Column("note", String),
    Index(
        "hold_open",
        "dataset_id",
        unique=True,
        sqlite_where=text("state = 'open'"),
        postgresql_where=text("state = 'open'"),
    ),
    Index("hold_newest", "since", "id"),
)

accepted_finding = Table(
    "accepted_finding",
    metadata,
    Column("id", String, primary_key=True),
    Column("dataset_id", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("measure", Float),
    Column("message", String, nullable=False),
    Column("hold_id", String, nullable=False),
    Column("accepted_at", At, nullable=False),
    Column("accepted_by", String, nullable=False),
    Column("note", String),
    Index("accepted_finding_of", "dataset_id", "kind", "subject", unique=True),
)

id_proposal = Table(
    "id_proposal",
    metadata,
    Column("id", String, primary_key=True),
    Column("dataset_id", String, nullable=False),
    Column("kind", Word(ProposalKind), nullable=False),
    Column("state", Word(ProposalState), nullable=False),
    Column("version", Integer, nullable=False),
    Column("column", String),
    Column("proposed", Json(Proposed), nullable=False),
    Column("made_at", At, nullable=False),
    Column("made_by", String),
    Column("decided_at", At),
    Column("decided_by", String),
    Column("note", String),
    Index("id_proposal_newest", "dataset_id", "made_at", "id"),
)

build_attempt = Table(
    "build_attempt",
    metadata,
    Column("id", String, primary_key=True),
    Column("dataset_id", String, nullable=False),
    Column("version", Integer, nullable=False),
    Column("source_blob", String, nullable=False),
    Column("started_at", At, nullable=False),
    Column("state", String, nullable=False),
    Column("progress", Json(BuildProgress)),
    Index("build_attempt_state", "state"),
)

subscription = Table(
    "subscription",
    metadata,
    Column("id", String, primary_key=True),
    Column("workspace_id", String, nullable=False),
    Column("name", String, nullable=False),
    Column("places", Json(list[str]), nullable=False),
    Column("topics", Json(list[str]), nullable=False),
    Column("datasets", Json(list[str]), nullable=False),
    Column("created_at", At, nullable=False),
    Index("subscription_of", "workspace_id", "created_at", "id"),
)

# With the number of the subscription's log: what goes to all that deliver a dataset goes to their
# logs in order, without a look at their ids.
membership = Table(
    "membership",
    metadata,
    Column("subscription_id", String, primary_key=True),
    Column("dataset_id", String, primary_key=True),
    Column("log", Integer, nullable=False),
    Index("membership_of", "dataset_id", "log"),
    sqlite_with_rowid=False,
)

# A log's newest events, those after `settled_seq`, stand in its row: the numbers of their bodies, a
# comma before each. So a release writes to few pages, however long the logs are. Half of each page
# is left free, so that PostgreSQL changes a row in place, without a word to the indexes.
feed_log = Table(
    "feed_log",
    metadata,
    Column("log", Integer, primary_key=True),
    Column("subscription_id", String, nullable=False, unique=True),
    Column("last_seq", Integer, nullable=False),
    Column("first_seq", Integer, nullable=False),
    Column("settled_seq", Integer, nullable=False),
    Column("newest", Text, nullable=False),
    postgresql_with={"fillfactor": 50},
)

feed_body = Table(
    "feed_body",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", At, nullable=False),
    Column("type", Word(EventType), nullable=False),
    Column("dataset_id", String, nullable=False),
    Column("linked_version", Integer),
    Column("data", Text, nullable=False),
    sqlite_autoincrement=True,  # a number that was given is never another body's
)

# Events of a log that follow one another, from `first_seq` on, listed as `newest` is.
feed_run = Table(
    "feed_run",
    metadata,
    Column("log", Integer, primary_key=True),
    Column("first_seq", Integer, primary_key=True),
    Column("first_body", Integer, nullable=False),
    Column("bodies", Text, nullable=False),
    sqlite_with_rowid=False,
)

# Where events were appended since lanes were told: to one log, or to all that deliver a dataset.
feed_news = Table(
    "feed_news",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("dataset_id", String),
    Column("subscription_id", String),
)

# A lane is due at `due_at`, or a while before; null where nothing is to be done until it is told.
webhook = Table(
    "webhook",
    metadata,
    Column("id", String, primary_key=True),
    Column("workspace_id", String, nullable=False),
    Column("subscription_id", String, nullable=False),
    Column("member_id", String, nullable=False),
    Column("url", String, nullable=False),
    Column("events", Json(list[EventType])),
    Column("secrets", Json(list[SealedSecret]), nullable=False),
    Column("created_at", At, nullable=False),
    Column("state", Word(WebhookState), nullable=False),
    Column("off_reason", Word(OffReason)),
    Column("off_at", At),
    Column("cursor", Integer, nullable=False),
    Column("rounds", Integer, nullable=False),
    Column("replay_until", Integer, nullable=False),
    Column("due_at", At),
    Column("slow", Boolean, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("given_up", Integer, nullable=False),
    Column("failing_since", At),
    Column("last_success_at", At),
    Column("average_ms", Integer, nullable=False),
    Column("paced_until", At),
    Column("paused_until", At),
    Column("lease_until", At),
    Column("lease_token", Integer, nullable=False),
    Index("webhook_of", "workspace_id", "created_at", "id"),
    Index("webhook_subscription", "subscription_id"),
    Index(
        "webhook_due",
        "slow",
        "due_at",
        sqlite_where=text("due_at IS NOT NULL"),
        postgresql_where=text("due_at IS NOT NULL"),
    ),
)

delivery = Table(
    "delivery",
    metadata,
    Column("id", String, primary_key=True),
    Column("webhook_id", String, nullable=False),
    Column("seq", Integer),
    Column("dataset_id", String),
    Column("kind", Word(DeliveryKind), nullable=False),
    Column("state", Word(DeliveryState), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_at", At),
    Column("created_at", At, nullable=False),
    Column("ended_at", At),
    Index("delivery_newest", "webhook_id", "created_at", "id"),
    Index(
        "delivery_waiting",
        "webhook_id",
        "next_at",
        sqlite_where=text("state = 'waiting'"),
        postgresql_where=text("state = 'waiting'"),
    ),
    Index("delivery_ended", "ended_at"),
)

delivery_attempt = Table(
    "delivery_attempt",
    metadata,
    Column("delivery_id", String, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("webhook_id", String, nullable=False),
    Column("started_at", At, nullable=False),
    Column("ms", Integer, nullable=False),
    Column("url", String, nullable=False),
    Column("address", String),
    Column("status", Integer),
    Column("error", String),
    Column("location", String),
    Column("response", Text),
    Column("delivered", Boolean, nullable=False),
    Index("delivery_attempt_of", "webhook_id", "started_at"),
)
