"""What is past retention removed: events, changes files, snapshots that no subscriber needs."""

from __future__ import annotations

from datetime import timedelta

from ploti.model.wire import Instant
from ploti.server.ports.rows import AttemptId, JobKind, UpkeepRow
from ploti.server.ports.store import Transaction
from ploti.server.service.raise_alert import alert_retention
from ploti.server.service.show_version import LINKS_LAST

KEPT = timedelta(days=90)
"""How long events and files are kept (R-125 to R-127)."""

ANSWERS_KEPT = timedelta(hours=24)
"""How long an answer is kept for its request to come again (contract, 'Every list')."""

EVERY = timedelta(days=1)
MOST = timedelta(days=2)
"""What one run takes at most, and how far a clock may go between two runs."""

_FILES_LATER = LINKS_LAST + timedelta(hours=1)


def plan_pruning(tx: Transaction, *, now: Instant) -> None:
    """Plan the daily run where there is none yet."""
    if not tx.jobs.is_planned(JobKind.PRUNE, ""):
        tx.jobs.put(JobKind.PRUNE, "", at=now)


def prune(tx: Transaction, *, now: Instant) -> str | None:
    """Remove what is past retention, two days' worth at most; plan the next run.

    Where the clock has jumped against the last run or the database, nothing is removed, and why is
    told, to the operator too: the run after it goes on from there, so that a wrong clock leaves a
    day to be set right. Files go an hour after the last link to them has expired.
    """
    tx.jobs.put(JobKind.PRUNE, "", at=Instant.of(now + EVERY))
    tx.answers.prune(before=Instant.of(now - ANSWERS_KEPT))
    last = tx.retention.last_run()
    stopped = _jump(last, tx.retention.newest_event(), now=now)
    edge = _edge(last, now=now)
    if stopped is None:
        tx.retention.drop_events(before=edge)
        for attempt in tx.retention.drop_files(before=edge):
            tx.jobs.put(JobKind.SWEEP, attempt, at=Instant.of(now + _FILES_LATER))
    else:
        edge = edge if last is None else last.pruned_to
        alert_retention(tx, stopped, now=now)
    tx.retention.keep_run(UpkeepRow(run_at=now, pruned_to=edge, stopped=stopped))
    return stopped


def end_pruned(tx: Transaction, attempt_id: AttemptId) -> None:
    """Have the files swept that a run of the retention took out of their version."""
    tx.builds.end(attempt_id)
    tx.jobs.drop(JobKind.SWEEP, attempt_id)


def _edge(last: UpkeepRow | None, *, now: Instant) -> Instant:
    edge = Instant.of(now - KEPT)
    return edge if last is None else min(edge, Instant.of(last.pruned_to + MOST))


def _jump(last: UpkeepRow | None, newest: Instant | None, *, now: Instant) -> str | None:
    if newest is not None and now < newest:
        return f"The clock says {now}, but an event was written at {newest}: is it set right?"
    if last is not None and now < last.run_at:
        return f"The clock went back from {last.run_at} to {now}: is it set right?"
    if last is not None and now > last.run_at + MOST:
        return f"The clock went on from {last.run_at} to {now} since the last run: is it set right?"
    return None
