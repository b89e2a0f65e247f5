"""Releases and holds straight in a transaction, for tests and benchmarks of the log."""

from tests.fakes.plans import ALL_OPEN

from ploti.errors import NotFound
from ploti.model.admin import HoldState
from ploti.model.event import HoldReason
from ploti.model.ids import DatasetId, HoldId
from ploti.model.schema import Schema
from ploti.model.version import Counts
from ploti.model.wire import Instant
from ploti.server.build.candidate import Candidate
from ploti.server.eventlog.drafts import Standing, Waiting, held
from ploti.server.ports.rows import AttemptId, HoldRow, StateRow, VersionRow
from ploti.server.ports.store import Transaction
from ploti.server.release.known import Role
from ploti.server.service.apply_dataset import apply_dataset
from ploti.server.service.release_version import end_hold, release_version, take_number

NOW = Instant.parse("2026-11-30T12:00:00Z")
CANDIDATE = Candidate(
    schema=Schema(columns=[], key_columns=[], geometry=None),
    schema_change=None,
    row_count=1,
    counts=Counts(added=1, changed=0, removed=0),
    state_digest="s",
    content_digest="d1:00",
    buckets=[],
    files=[],
    findings=[],
    key_fault=None,
)


def declare(tx: Transaction, dataset_id: DatasetId, *, place: str = "us") -> None:
    """Declare a dataset, or file it anew."""
    raw: dict[str, object] = {"id": dataset_id, "title": "T", "place": place, "topic": "roads"}
    apply_dataset(tx, dataset_id, raw, plans=ALL_OPEN, dry_run=False, now=NOW)


def release(tx: Transaction, dataset_id: DatasetId) -> int:
    """Release a next version, in place of one on hold if there is one."""
    version = _take(tx, dataset_id)
    release_version(tx, version, now=NOW)
    return version.version


def hold(tx: Transaction, dataset_id: DatasetId) -> None:
    """Hold a next version, in place of one on hold if there is one."""
    version = _take(tx, dataset_id)
    row = HoldRow(
        id=HoldId(f"hold_{dataset_id}_{version.version}"),
        dataset_id=dataset_id,
        version=version.version,
        reason=HoldReason.DATA_CHECK,
        state=HoldState.OPEN,
        since=NOW,
        findings=[],
        matched=True,
    )
    tx.holds.add(row)
    (standing,) = tx.datasets.lock_standing([dataset_id])
    assert standing == Standing(
        dataset_id=dataset_id,
        version=version.previous_version,
        schema_version=None if version.previous_version is None else "1.0",
        waiting=Waiting(reason=row.reason, since=NOW),
    )
    tx.log.append_to_members(held(standing), dataset_id=dataset_id, now=NOW)


def decide(tx: Transaction, dataset_id: DatasetId, end: HoldState) -> None:
    """End the dataset's hold, if one is open."""
    tx.datasets.lock(dataset_id)
    waiting = tx.holds.open_of(dataset_id)
    if waiting is not None:
        end_hold(tx, waiting, end, by=None, note=None, now=NOW)


def _take(tx: Transaction, dataset_id: DatasetId) -> VersionRow:
    dataset = tx.datasets.lock(dataset_id)
    if dataset is None:
        raise NotFound(dataset_id)
    decide(tx, dataset_id, HoldState.REPLACED)
    state = StateRow(
        role=Role.ON_HOLD,
        sha256=str(dataset.next_number),
        records="r",
        settings="s",
        dataset_id=dataset_id,
        attempt_id=AttemptId(f"att_{dataset_id}_{dataset.next_number}"),
        blob=None,
        name="a.csv",
        fetched_at=NOW,
    )
    return take_number(tx, dataset, CANDIDATE, base=None, state=state, files=[], now=NOW)
