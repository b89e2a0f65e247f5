"""One turn of a webhook's lane: what is due is sent, in order within each dataset, and recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

import msgspec
import structlog

from ploti.model.ids import DatasetId, WebhookId
from ploti.model.webhook import DeliveryKind, DeliveryState, OffReason, WebhookState
from ploti.model.wire import Instant, Value
from ploti.server.deliver.answers import Result, Verdict, judge
from ploti.server.deliver.health import after, is_failing
from ploti.server.deliver.lanes import choose
from ploti.server.deliver.naming import delivery_id
from ploti.server.eventlog.paging import next_position, reach
from ploti.server.eventlog.render import Body, render
from ploti.server.ports.measures import Meters
from ploti.server.ports.outside import Clock, Ids, Poster, Sealer
from ploti.server.ports.rows import Claim, DeliveryRow, TryRow, WebhookRow
from ploti.server.ports.store import Store, Transaction
from ploti.server.service.record_turns import Turn
from ploti.server.service.sign_webhook import make_headers, make_try

_LOG = structlog.get_logger()

TURN_EVENTS = 20
TURN_SECONDS = 5.0
"""A turn begins no more than so many attempts, and none after this; then others have theirs."""

LEASE = timedelta(minutes=1)
"""Well over a turn with its last POST, and over another one that had the slot before: then the lane
is another worker's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivering:
    """The ports that deliveries need; `base` is the address that links in events name."""

    store: Store
    poster: Poster
    sealer: Sealer
    clock: Clock
    ids: Ids
    meters: Meters
    base: str


class Job(Value, kw_only=True):
    """A delivery to attempt with its event; `fresh` where the lane has just come to the event."""

    delivery: DeliveryRow
    dataset_id: DatasetId
    body: bytes
    fresh: bool


class Lane(Value, kw_only=True):
    """What a turn works on: jobs in order, datasets of which something waits, and where it ends.

    `lost` are deliveries that waited until their events were pruned.
    """

    webhook: WebhookRow
    jobs: list[Job]
    lost: list[DeliveryRow]
    blocked: set[DatasetId]
    reached: int


async def claim_lanes(
    parts: Delivering, *, free: int, free_for_slow: int, busy: Collection[WebhookId]
) -> list[tuple[Claim, bool]]:
    """Claim up to `free` lanes with something due, and whether each is a slow one."""
    at = parts.clock.now()
    until = Instant.of(at + LEASE)

    def find(tx: Transaction) -> dict[WebhookId, bool]:
        ready = tx.webhooks.ready(at=at, limit=free + len(busy))
        return choose(
            [(lane.webhook_id, lane.slow) for lane in ready if lane.webhook_id not in busy],
            free=free,
            free_for_slow=free_for_slow,
        )

    def take(tx: Transaction) -> list[tuple[Claim, bool]]:
        tx.webhooks.tell_lanes(at=at)
        chosen = find(tx)
        claims = tx.webhooks.claim([*chosen], at=at, until=until)
        return [(claim, chosen[claim.webhook_id]) for claim in claims]

    is_any = await parts.store.read(lambda tx: tx.webhooks.has_news() or bool(find(tx)))
    return await parts.store.write(take) if is_any else []


async def load_lanes(parts: Delivering, claims: Sequence[Claim]) -> list[tuple[Claim, Lane]]:
    """What is due in claimed lanes, without those whose claims do not hold any more.

    They are read together; where that fails, each by itself, and those that fail are left out.
    """
    if not claims:
        return []
    at = parts.clock.now()

    async def load(some: Sequence[Claim]) -> list[tuple[Claim, Lane]]:
        def read(tx: Transaction) -> list[tuple[Claim, Lane | None]]:
            return [(claim, load_lane(tx, claim, base=parts.base, at=at)) for claim in some]

        return [(claim, lane) for claim, lane in await parts.store.read(read) if lane]

    try:
        return await load(claims)
    except Exception:  # noqa: BLE001  whose fault it is comes out when each is read alone
        _LOG.warning("lanes are read one by one", exc_info=True)
    found: list[tuple[Claim, Lane]] = []
    for claim in claims:
        try:
            found += await load([claim])
        except Exception:  # noqa: BLE001  of one lane: its lease ends, and it is claimed again
            _LOG.exception("a lane cannot be read", webhook=claim.webhook_id)
    return found


async def deliver_due(parts: Delivering, claim: Claim, lane: Lane) -> Turn:
    """Serve a claimed lane for one turn; what came of it is to be recorded, or not at all.

    Where the process dies first, the same deliveries are made again under the same ids.
    """
    sending = _Sending(parts, lane)
    await sending.run()
    return sending.ended(claim, at=parts.clock.now())


def load_lane(tx: Transaction, claim: Claim, *, base: str, at: Instant) -> Lane | None:
    """What is due in a lane: deliveries that waited, then events that it comes to.

    None where the claim does not hold any more.
    """
    webhook = tx.webhooks.claimed(claim)
    if webhook is None:
        return None
    blocked = tx.deliveries.waiting(webhook.id)
    due = tx.deliveries.due(webhook.id, at=at, limit=TURN_EVENTS) if blocked else []
    waited = [_waited(tx, webhook, row, base=base) for row in due]
    fresh, reached = _fresh(tx, webhook, base=base, at=at)
    return Lane(
        webhook=webhook,
        jobs=[*(job for job in waited if job), *fresh],
        lost=[row for row, job in zip(due, waited, strict=True) if not job],
        blocked=blocked,
        reached=reached,
    )


def _waited(tx: Transaction, webhook: WebhookRow, row: DeliveryRow, *, base: str) -> Job | None:
    """A waiting delivery with its event; None where that is pruned."""
    seq = row.seq or 0
    found = tx.log.page(
        webhook.subscription_id, after=seq - 1, up_to=seq, limit=1, types=frozenset()
    )
    jobs = [_job(webhook, row, body, base=base, fresh=False) for _, body in found]
    return jobs[0] if jobs else None


def _fresh(
    tx: Transaction, webhook: WebhookRow, *, base: str, at: Instant
) -> tuple[list[Job], int]:
    """The events after the lane's cursor that its filter keeps, and the last one looked at."""
    extent = tx.log.extent(webhook.subscription_id, workspace=webhook.workspace_id)
    if extent is None or not webhook.health.may_begin(at):
        return [], webhook.cursor
    start = max(webhook.cursor, extent.first - 1)
    reached = reach(start, extent)
    found = tx.log.page(
        webhook.subscription_id,
        after=start,
        up_to=reached,
        limit=TURN_EVENTS,
        types=frozenset(webhook.events or ()),
    )
    jobs = [
        _job(webhook, _first(webhook, seq, body, at=at), body, base=base, fresh=True)
        for seq, body in found
    ]
    return jobs, next_position(reached=reached, kept=found.numbers, limit=TURN_EVENTS)


def _first(webhook: WebhookRow, seq: int, body: Body, *, at: Instant) -> DeliveryRow:
    again = webhook.rounds if seq <= webhook.replay_until else 0
    return DeliveryRow(
        id=delivery_id(webhook.id, seq, again=again),
        webhook_id=webhook.id,
        seq=seq,
        dataset_id=body.dataset_id,
        kind=DeliveryKind.MANUAL if again else DeliveryKind.AUTO,
        state=DeliveryState.WAITING,
        attempts=0,
        next_at=None,
        created_at=at,
        ended_at=None,
    )


def _job(webhook: WebhookRow, row: DeliveryRow, body: Body, *, base: str, fresh: bool) -> Job:
    return Job(
        delivery=row,
        dataset_id=body.dataset_id,
        body=render(row.seq or 0, subscription_id=webhook.subscription_id, body=body, base=base),
        fresh=fresh,
    )


class _Sending:
    """One turn under way; what it found out is kept in memory until it is recorded."""

    def __init__(self, parts: Delivering, lane: Lane) -> None:
        self._parts = parts
        self._lane = lane
        self._webhook = lane.webhook
        self._blocked = set(lane.blocked)
        self._failed: set[DatasetId] = set()
        self._in_flight: dict[DatasetId, asyncio.Task[Instant]] = {}
        self._new: dict[str, DeliveryRow] = {}
        self._changed: dict[str, DeliveryRow] = {}
        self._tries: list[TryRow] = []
        self._cursor = lane.webhook.cursor
        self._begun = 0
        self._at: Instant | None = None

    async def run(self) -> None:
        """Attempt the jobs in order, a few of different datasets at once, while there is time."""
        until = asyncio.get_running_loop().time() + TURN_SECONDS
        async with asyncio.TaskGroup() as group:
            for job, following in pairwise([*self._lane.jobs, None]):
                if job and not await self._begin(job, following, group, until=until):
                    break
            else:
                self._cursor = self._lane.reached

    def ended(self, claim: Claim, *, at: Instant) -> Turn:
        """What came of the turn."""
        lost = [_given_up(row, at=at) for row in self._lane.lost]
        return Turn(
            claim=claim,
            webhook=msgspec.structs.replace(self._webhook, cursor=self._cursor),
            new=[*self._new.values()],
            changed=[*self._changed.values(), *lost],
            tries=self._tries,
            blocked=self._blocked,
            at=at,
        )

    async def _begin(
        self, job: Job, following: Job | None, group: asyncio.TaskGroup, *, until: float
    ) -> bool:
        """Begin an attempt, or let the event wait behind an earlier one; False ends the turn."""
        await self._room(job.dataset_id)
        if job.fresh and job.dataset_id in self._blocked:
            self._new[job.delivery.id] = job.delivery
        elif job.dataset_id in self._failed:
            return True  # an earlier one of this dataset has just failed: this one waits on
        elif self._may_begin(job, at := self._now(), until=until):
            self._begun += 1
            attempt = self._attempt(job, began=at)
            if following is None or following.dataset_id == job.dataset_id:
                self._at = await attempt  # nothing else could begin beside it
            else:
                self._in_flight[job.dataset_id] = group.create_task(attempt)
        else:
            return False
        if job.fresh:
            self._cursor = job.delivery.seq or 0
        return True

    def _may_begin(self, job: Job, at: Instant, *, until: float) -> bool:
        health = self._webhook.health
        return (
            self._webhook.state is WebhookState.ON
            and self._begun < TURN_EVENTS
            and asyncio.get_running_loop().time() < until
            and (health.may_begin(at) if job.fresh else health.may_send(at))
        )

    async def _room(self, dataset_id: DatasetId) -> None:
        """Wait until the lane takes one more, and nothing of the dataset is under way."""
        while self._in_flight and (
            dataset_id in self._in_flight or len(self._in_flight) >= self._webhook.health.in_flight
        ):
            self._at, under_way = None, self._in_flight.values()
            done, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            self._in_flight = {
                dataset: task for dataset, task in self._in_flight.items() if task not in done
            }

    def _now(self) -> Instant:
        """This moment: the end of the last attempt, where nothing was waited for since."""
        at, self._at = self._at or self._parts.clock.now(), None
        return at

    async def _attempt(self, job: Job, *, began: Instant) -> Instant:
        """Send a job's body, and note what came of it; gives the moment of the end."""
        parts, webhook = self._parts, self._webhook
        headers = make_headers(parts.sealer, webhook, job.delivery.id, job.body, at=began)
        answer = await parts.poster.post(webhook.url, body=job.body, headers=headers)
        at, attempts = parts.clock.now(), job.delivery.attempts + 1
        verdict = judge(answer, attempts=attempts, at=at, chance=parts.ids.chance())
        parts.meters.attempted(verdict.result, ms=answer.ms)
        self._tries.append(
            make_try(job.delivery, answer, number=attempts, began=began, url=webhook.url)
        )
        row = _ended(job.delivery, verdict, attempts=attempts, at=at)
        (self._new if job.fresh else self._changed)[row.id] = row
        if row.state is DeliveryState.WAITING:
            self._blocked.add(job.dataset_id)
            self._failed.add(job.dataset_id)
        self._webhook = _judged(self._webhook, verdict, ms=answer.ms, at=at)
        return at


_STATES = {
    Result.DELIVERED: DeliveryState.DELIVERED,
    Result.AGAIN: DeliveryState.WAITING,
    Result.FAILED: DeliveryState.FAILED,
    Result.GONE: DeliveryState.CANCELLED,
}


def _ended(row: DeliveryRow, verdict: Verdict, *, attempts: int, at: Instant) -> DeliveryRow:
    """A delivery after an attempt."""
    return msgspec.structs.replace(
        row,
        state=_STATES[verdict.result],
        attempts=attempts,
        next_at=verdict.next_at,
        ended_at=None if verdict.next_at else at,
    )


def _given_up(row: DeliveryRow, *, at: Instant) -> DeliveryRow:
    """A delivery whose event is kept no more."""
    return msgspec.structs.replace(row, state=DeliveryState.FAILED, next_at=None, ended_at=at)


def _judged(webhook: WebhookRow, verdict: Verdict, *, ms: int, at: Instant) -> WebhookRow:
    """A webhook after an attempt: off where its receiver is gone, or failed for too long."""
    health = after(webhook.health, verdict, ms=ms, at=at)
    webhook = msgspec.structs.replace(webhook, health=health)
    if verdict.result is Result.GONE:
        return switched_off(webhook, OffReason.GONE, at=at)
    if is_failing(health, at=at):
        return switched_off(webhook, OffReason.FAILING, at=at)
    return webhook


def switched_off(webhook: WebhookRow, reason: OffReason, *, at: Instant) -> WebhookRow:
    """The webhook, off."""
    return msgspec.structs.replace(webhook, state=WebhookState.OFF, off_reason=reason, off_at=at)
