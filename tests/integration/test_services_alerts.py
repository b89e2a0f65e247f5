"""Alerts to the operator: what causes one, that it is one a cause, and how it is delivered."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from standardwebhooks import Webhook
from tests.fakes.lanes import A, Lanes
from tests.fakes.lanes import play as play_lanes
from tests.fakes.receiver import Answer as ReceiverAnswer
from tests.fakes.receiver import receiving
from tests.fakes.world import PERMITS, World, many, play

from ploti.errors import PlotiError, Unavailable
from ploti.model.wire import Instant
from ploti.server.adapters.blobs import FolderBlobs
from ploti.server.deliver.answers import Answer
from ploti.server.deliver.schedule import STEPS
from ploti.server.ports.alerts import AlertId
from ploti.server.ports.rows import JobKind, JobRow
from ploti.server.service.check_source import Parts, check_source
from ploti.server.service.prune_old import prune
from ploti.server.service.run_jobs import run_job
from ploti.server.service.send_alert import Alerting
from ploti.server.service.watch_disk import read_disk

SECRET = "whsec_" + "QUFB" * 8
URL = "https://alerts.example/ploti"


class Posted:
    """A poster that notes what it is given, and answers as a test says."""

    def __init__(self) -> None:
        self.status: int | None = 204
        self.bodies: list[bytes] = []
        self.headers: list[Mapping[str, str]] = []

    async def post(self, url: str, *, body: bytes, headers: Mapping[str, str]) -> Answer:
        assert url == URL
        self.bodies.append(body)
        self.headers.append(headers)
        error = None if self.status else "connection: refused"
        return Answer(ms=1, status=self.status, error=error)

    async def refuse(self, url: str) -> str | None:
        raise AssertionError(f"{url} was to be judged")

    @property
    def told(self) -> list[dict[str, object]]:
        return [json.loads(body) for body in self.bodies]


class Room(FolderBlobs):
    """Blobs on a disk whose room a test sets."""

    left = 10

    async def free(self) -> int:
        return self.left


def alerting(world: World) -> tuple[Parts, Posted]:
    posted = Posted()
    return replace(world.parts, alerting=Alerting(poster=posted, url=URL, secret=SECRET)), posted


async def due(world: World) -> list[JobRow]:
    """The alerts that are due now, claimed."""
    now = world.clock.now()
    until = Instant.of(now + timedelta(seconds=60))
    claimed = await world.write(
        lambda tx: tx.jobs.claim(now=now, until=until, token="t", limit=100)
    )
    return [job for job in claimed if job.kind is JobKind.ALERT]


async def deliver(world: World, parts: Parts) -> None:
    for job in await due(world):
        await run_job(parts, job)


def test_a_hold_is_told_once_and_signed(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        parts, posted = alerting(world)
        await world.declare()
        await world.push(many(30))
        await world.push(many(3))
        (hold,) = await world.holds()
        await deliver(world, parts)
        await deliver(world, parts)
        (told,) = posted.told
        assert told["type"] == "hold.created"
        data = told["data"]
        assert isinstance(data, dict)
        assert (data["datasetId"], data["holdId"]) == (PERMITS, hold.id)
        assert (data["version"], data["reason"]) == (2, "data_check")
        headers = posted.headers[0]
        assert headers["webhook-id"] == told["id"]
        at = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)
        signed = Webhook(SECRET).sign(str(told["id"]), at, posted.bodies[0].decode())
        assert headers["webhook-signature"] == signed

    play(tmp_path, story)


def test_a_webhook_that_is_turned_off_is_told_once(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.answer = lambda _: ReceiverAnswer(status=410)
            made = await lanes.hook(receiver.url, await lanes.subscribe(A))
            await lanes.release(A)
            await lanes.play_out()
            await lanes.ping(made.id)
        now = lanes.clock.now()
        jobs = await lanes.store.write(
            lambda tx: tx.jobs.claim(now=now, until=now, token="t", limit=100)
        )
        (job,) = [job for job in jobs if job.kind is JobKind.ALERT]
        alert = await lanes.store.read(lambda tx: tx.alerts.get(AlertId(job.subject)))
        assert alert is not None
        told = json.loads(alert.body)
        assert told["type"] == "webhook.off"
        assert (told["data"]["webhookId"], told["data"]["reason"]) == (made.id, "gone")

    play_lanes(tmp_path, story)


def test_a_source_that_fails_is_told_once_for_all_its_failures_in_a_row(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        parts, posted = alerting(world)
        await world.declare(source={"kind": "http", "url": "https://a.org/a.csv"})
        world.source.bytes = None
        for _ in range(3):
            await check_source(parts, PERMITS)
            await deliver(world, parts)
        assert [each["type"] for each in posted.told] == ["source.failing"]
        assert "503" in str(posted.told[0]["data"])
        world.source.bytes = many(3).encode()
        await check_source(parts, PERMITS)
        world.source.bytes = None
        await check_source(parts, PERMITS)
        await deliver(world, parts)
        assert [each["type"] for each in posted.told] == ["source.failing"] * 2

    play(tmp_path, story)


def test_an_alert_that_fails_is_tried_again_with_growing_waits_and_then_given_up(
    tmp_path: Path,
) -> None:
    async def story(world: World) -> None:
        parts, posted = alerting(world)
        posted.status = None
        await world.declare()
        await world.push(many(30))
        await world.push(many(3))
        for step in STEPS:
            await deliver(world, parts)
            assert not await due(world)
            world.clock.moment = Instant.of(world.clock.moment + step * 1.1 + timedelta(minutes=1))
        (last,) = await due(world)
        with pytest.raises(PlotiError, match=r"hold\.created could not be delivered"):
            await run_job(parts, last)
        assert len(posted.bodies) == len(STEPS) + 1
        assert len({*posted.bodies}) == 1
        world.clock.moment = Instant.of(world.clock.moment + timedelta(days=3))
        assert not await due(world)

    play(tmp_path, story)


def test_where_nobody_wants_alerts_they_are_let_go(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        await world.declare()
        await world.push(many(30))
        await world.push(many(3))
        await deliver(world, world.parts)
        assert not await due(world)

    play(tmp_path, story)


def test_checks_wait_while_the_disk_is_low_and_that_is_told_once(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        parts, posted = alerting(world)
        room = Room(tmp_path / "blobs", signer=world.blobs._signer)
        parts = replace(parts, blobs=room, min_free=100)
        url = "https://a.org/a.csv"
        await world.declare(source={"kind": "http", "url": url}, check_every="24h")
        world.source.bytes = many(3).encode()
        check = JobRow(kind=JobKind.CHECK, subject=PERMITS, run_at=world.clock.now())
        for _ in range(3):
            await run_job(parts, check)
            await deliver(world, parts)
        with pytest.raises(Unavailable, match="PLOTI_MIN_FREE asks for 100"):
            await check_source(parts, PERMITS)
        assert not world.source.asked
        assert [each["type"] for each in posted.told] == ["disk.low"]
        assert posted.told[0]["data"] == {"freeBytes": 10, "neededBytes": 100}
        assert (await read_disk(room, needed=100)).checks_wait
        room.left = 100
        await run_job(parts, check)
        assert len(world.source.asked) == 1
        room.left = 10
        with pytest.raises(Unavailable):
            await check_source(parts, PERMITS)
        await deliver(world, parts)
        assert [each["type"] for each in posted.told] == ["disk.low"] * 2
        room.close()

    play(tmp_path, story)


def test_retention_that_stopped_for_a_clock_that_jumped_is_told(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        parts, posted = alerting(world)
        await world.write(lambda tx: prune(tx, now=world.clock.now()))
        await deliver(world, parts)
        assert posted.told == []
        world.clock.moment = Instant.of(world.clock.moment + timedelta(days=1000))
        await world.write(lambda tx: prune(tx, now=world.clock.now()))
        await deliver(world, parts)
        (told,) = posted.told
        assert told["type"] == "retention.stopped"
        assert "since the last run" in str(told["data"])

    play(tmp_path, story)
