"""A change of coverage or plan carried out: a workspace's subscriptions, one after another."""

from __future__ import annotations

from functools import partial

from ploti.model.ids import SubscriptionId, WorkspaceId
from ploti.model.wire import Instant
from ploti.server.membership.rights import PlanReading
from ploti.server.ports.outside import Clock, Plans
from ploti.server.ports.rows import JobKind, JobRow
from ploti.server.ports.store import Store, Transaction
from ploti.server.service.change_membership import ASK_AGAIN, bring_subscription
from ploti.server.service.read_plans import lock_membership, read_plans, with_plans


async def bring_workspace(store: Store, plans: Plans, clock: Clock, job: JobRow) -> None:
    """Do the job of the workspace that is its subject, in a transaction for each subscription.

    Broken off it is done again from the start: what was brought already is as it should be, and
    gets no event. While the plan cannot be read it is asked for again (R-070).
    """
    workspace_id = WorkspaceId(job.subject)

    async def bring_all(reading: PlanReading) -> None:
        for each in await store.read(lambda tx: tx.subscriptions.of(workspace_id)):
            now = clock.now()
            await store.write(partial(_bring, workspace_id, each, reading, now))
        readable = workspace_id in reading.plans
        await store.write(partial(_end, job, readable=readable, now=clock.now()))

    await with_plans(lambda: read_plans(store, plans, [workspace_id]), bring_all)


def _bring(
    workspace_id: WorkspaceId,
    subscription_id: SubscriptionId,
    reading: PlanReading,
    now: Instant,
    tx: Transaction,
) -> None:
    lock_membership(tx, reading, exclusive=False)
    found = tx.subscriptions.get(subscription_id, workspace=workspace_id)
    if found is not None:  # else deleted meanwhile
        bring_subscription(tx, found, plans=reading, now=now)


def _end(job: JobRow, tx: Transaction, *, readable: bool, now: Instant) -> None:
    """Forget the job, unless it was planned anew meanwhile or the plan is still to be read."""
    if not tx.jobs.renew(job, until=job.run_at):
        return
    if readable:
        tx.jobs.drop(JobKind.MEMBERSHIP, job.subject)
    else:
        tx.jobs.put(JobKind.MEMBERSHIP, job.subject, at=Instant.of(now + ASK_AGAIN))
