"""The transaction that ends a check: a release, a hold, or nothing new."""

from __future__ import annotations

from msgspec.structs import replace

from ploti.model.admin import HoldState, Outcome
from ploti.model.ids import HoldId
from ploti.model.wire import Instant, Value
from ploti.server.build.candidate import Candidate
from ploti.server.eventlog.drafts import Standing, Waiting, held
from ploti.server.ports.outside import Fetched
from ploti.server.ports.rows import DatasetRow, FileRow, HoldRow, StateRow
from ploti.server.ports.store import Transaction
from ploti.server.release.known import Role, records_key
from ploti.server.service.plan_check import Failed, Job, Plan, Same, Take
from ploti.server.service.plan_jobs import plan_jobs
from ploti.server.service.raise_alert import alert_hold
from ploti.server.service.release_version import end_hold, release_version, take_number
from ploti.server.service.tell_outcome import outcome


class Arrival(Value, kw_only=True):
    """What a check brought, when, and the files built of it.

    `fetched` is None where the source said that the state with this `sha256` still stands.
    """

    fetched: Fetched | None
    sha256: str
    fetched_at: Instant
    files: list[FileRow] = []


def settle(
    tx: Transaction, job: Job, planned: Plan, arrival: Arrival, *, hold_id: HoldId, now: Instant
) -> Outcome | None:
    """Carry out a plan with its events; None, and nothing done, where what it rests on moved."""
    dataset = tx.datasets.lock(job.dataset.id)
    if dataset is None or _moved(tx, job, dataset):
        return None
    if isinstance(planned, Failed):
        return outcome(job, planned)
    if not job.always:
        dataset = _checked(tx, dataset, arrival.fetched_at)
    if isinstance(planned, Same):
        if job.hold is not None and planned.role is Role.CURRENT:
            _discard(tx, job.hold, now)
        _see_again(tx, job, planned.role, arrival)
        return outcome(job, planned)
    _take(tx, job, dataset, planned, arrival, hold_id=hold_id, now=now)
    return outcome(job, planned, hold_id=hold_id)


def _checked(tx: Transaction, dataset: DatasetRow, at: Instant) -> DatasetRow:
    checked = replace(dataset, last_checked_at=at, failing_since=None, failures=0, failure=None)
    tx.datasets.save(checked)
    plan_jobs(tx, checked)
    return checked


def _moved(tx: Transaction, job: Job, dataset: DatasetRow) -> bool:
    """Whether a review or a new declaration came between: then the build is done again."""
    if dataset.next_number != job.attempt.version or _stands(dataset) != _stands(job.dataset):
        return True
    return tx.holds.open_of(dataset.id) != job.hold


def _stands(dataset: DatasetRow) -> tuple[object, ...]:
    return (
        *(dataset.declaration, dataset.deliverable, dataset.next_number),
        *(dataset.current_version, dataset.released_again),
    )


def _see_again(tx: Transaction, job: Job, role: Role, arrival: Arrival) -> None:
    """Keep what was said of a state that was read whole again.

    Other bytes with the current version's records take the place of those that it was built from,
    and so do the same bytes read under another declaration.
    """
    state = tx.states.of(job.dataset.id).get(role)
    if state is None or arrival.fetched is None:
        return
    said = {"validators": arrival.fetched.validators, "whole_at": arrival.fetched_at}
    if (state.sha256, state.settings) == (arrival.sha256, job.settings):
        tx.states.put(replace(state, **said))
    elif role is Role.CURRENT:
        tx.builds.end(state.attempt_id)
        blob, name = arrival.fetched.blob, arrival.fetched.name
        again = replace(state, attempt_id=job.attempt.id, sha256=blob.sha256, settings=job.settings)
        tx.states.put(replace(again, blob=blob.name, name=name, **said))


def _discard(tx: Transaction, hold: HoldRow, now: Instant) -> None:
    note = "The source is again as in the version that is current."
    end_hold(tx, hold, HoldState.DISCARDED, by=None, note=note, now=now)


def _take(
    tx: Transaction,
    job: Job,
    dataset: DatasetRow,
    taken: Take,
    arrival: Arrival,
    *,
    hold_id: HoldId,
    now: Instant,
) -> None:
    if job.hold is not None:
        note = f"Version {dataset.next_number} took its place."
        end_hold(tx, job.hold, HoldState.REPLACED, by=None, note=note, now=now)
    version = take_number(
        tx,
        dataset,
        taken.candidate,
        base=job.base,
        state=_state(job, taken.candidate, arrival.fetched, at=arrival.fetched_at),
        files=arrival.files,
        now=now,
    )
    if taken.verdict.reason is None:
        release_version(tx, version, now=now)
        return
    hold = HoldRow(
        id=hold_id,
        dataset_id=dataset.id,
        version=version.version,
        reason=taken.verdict.reason,
        state=HoldState.OPEN,
        since=now,
        findings=taken.verdict.findings,
        matched=taken.verdict.matched,
    )
    tx.holds.add(hold)
    alert_hold(tx, hold, now=now)
    standing = Standing(
        dataset_id=dataset.id,
        version=dataset.current_version,
        schema_version=None if job.base is None else job.base.schema_version,
        waiting=Waiting(reason=hold.reason, since=hold.since),
    )
    tx.log.append_to_members(held(standing), dataset_id=dataset.id, now=now)


def _state(job: Job, candidate: Candidate, fetched: Fetched | None, *, at: Instant) -> StateRow:
    if fetched is None:
        raise RuntimeError(f"{job.attempt.id} built what was not brought")
    return StateRow(
        role=Role.ON_HOLD,
        sha256=fetched.blob.sha256,
        records=records_key(candidate),
        settings=job.settings,
        dataset_id=job.dataset.id,
        attempt_id=job.attempt.id,
        blob=fetched.blob.name,
        name=fetched.name,
        fetched_at=at,
        validators=fetched.validators,
        whole_at=at,
    )
