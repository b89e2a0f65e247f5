"""Webhooks from release to receiver: real database, real sockets, a clock that the test moves."""

import asyncio
import sqlite3
from contextlib import closing
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from standardwebhooks import Webhook as Official
from tests.fakes.lanes import BASE, A, B, C, Lanes, play
from tests.fakes.receiver import Answer, Receiver, receiving

from ploti.errors import Conflict, Expired, InvalidInput
from ploti.model.event import EventType
from ploti.model.ids import event_number
from ploti.model.webhook import Delivery, DeliveryState, WebhookPatch
from ploti.model.wire import Instant
from ploti.server.adapters.clock import SystemClock
from ploti.server.service.change_subscription import delete_subscription
from ploti.server.service.change_webhook import (
    retry_delivery,
    rotate_secret,
    skip_delivery,
    update_webhook,
)
from ploti.server.service.read_events import read_events

FAILS = Answer(status=500)
DUE = [30, 330, 3030, 13830, 49830, 129030]
"""Seconds after the first attempt at which the retries come, without what chance adds."""


class Died(Exception):
    """Stands in for the end of the process."""


def seconds(delivery: Delivery) -> list[float]:
    """When the attempts were made, in seconds after the first."""
    first = delivery.attempts[0].started_at
    return [(each.started_at - first).total_seconds() for each in delivery.attempts]


def test_r148_the_body_is_the_event_byte_for_byte_as_the_log_has_it(tmp_path: Path) -> None:
    """R-004."""

    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            subscription = await lanes.subscribe(A)
            await lanes.hook(receiver.url, subscription)
            await lanes.release(A, A)
            await lanes.drain()
            page = await lanes.store.read(
                lambda tx: read_events(
                    *(tx, lanes.subscriber, subscription),
                    cursor="evt_000000000001",
                    limit=100,
                    types=frozenset(),
                    base=BASE,
                )
            )
        bodies = b",".join(post.body for post in receiver.posts)
        assert b'{"events":[' + bodies + b"]," in page.text

    play(tmp_path, story)


def test_a_webhook_begins_with_what_comes_after_it_was_made(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            subscription = await lanes.subscribe(A)
            await lanes.release(A)
            await lanes.hook(receiver.url, subscription)
            await lanes.drain()
            assert receiver.posts == []
            await lanes.release(A)
            await lanes.drain()
            assert [post.event["id"] for post in receiver.posts] == ["evt_000000000003"]

    play(tmp_path, story)


def test_r149_every_delivery_is_accepted_by_the_official_package(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            lanes.clock.moment = SystemClock().now()
            made = await lanes.hook(receiver.url, await lanes.subscribe(A, B))
            await lanes.release(A, B)
            await lanes.drain()
            assert len(receiver.verified(made.secret)) == 2

    play(tmp_path, story)


def test_r153_a_failed_delivery_is_retried_six_times_and_never_early(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.answer = lambda _: FAILS
            made = await lanes.hook(receiver.url, await lanes.subscribe(A))
            await lanes.release(A)
            await lanes.play_out()
            (delivery,) = await lanes.deliveries(made.id)
            assert seconds(delivery) == [0, *DUE]
            assert delivery.state is DeliveryState.FAILED
            assert len({post.id for post in receiver.posts}) == 1
            assert len({post.headers["webhook-timestamp"] for post in receiver.posts}) == 7
            assert len({post.headers["webhook-signature"] for post in receiver.posts}) == 7
            assert len({post.body for post in receiver.posts}) == 1

    play(tmp_path, story)


def test_chance_spreads_the_first_retry_over_30_seconds_and_the_others_over_a_tenth(
    tmp_path: Path,
) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.answer = lambda _: FAILS
            lanes.ids.share = 1.0
            made = await lanes.hook(receiver.url, await lanes.subscribe(A))
            await lanes.release(A)
            await lanes.play_out()
            (delivery,) = await lanes.deliveries(made.id)
            gaps = [after - before for before, after in pairwise(seconds(delivery))]
            assert gaps == pytest.approx([60, 330, 2970, 11880, 39600, 87120])

    play(tmp_path, story)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 400, 404, 500, 502, 504])
def test_r152_whatever_is_not_2xx_is_a_failed_attempt_that_is_retried(
    tmp_path: Path, status: int
) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            elsewhere = f"{receiver.url}/signin"
            receiver.script(Answer(status=status, headers={"Location": elsewhere}), Answer())
            made = await lanes.hook(f"{receiver.url}/h", await lanes.subscribe(A))
            await lanes.release(A)
            await lanes.play_out()
            (delivery,) = await lanes.deliveries(made.id)
            assert seconds(delivery) == [0, 30]
            assert delivery.attempts[0].status == status
            assert delivery.attempts[0].location == elsewhere
            assert {post.path for post in receiver.posts} == {"/h"}
            assert delivery.state is DeliveryState.DELIVERED

    play(tmp_path, story)


def test_r154_413_is_not_retried_and_the_next_event_of_the_dataset_follows(
    tmp_path: Path,
) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.script(Answer(status=413), Answer())
            made = await lanes.hook(f"{receiver.url}/h", await lanes.subscribe(A))
            await lanes.release(A, A)
            await lanes.play_out()
            first, second = await lanes.deliveries(made.id)
            assert (first.state, len(first.attempts)) == (DeliveryState.FAILED, 1)
            assert second.state is DeliveryState.DELIVERED
            assert (await lanes.show(made.id)).state == "on"

    play(tmp_path, story)


def test_r155_410_turns_the_webhook_off_and_cancels_what_waits(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.script(FAILS, Answer(status=410), Answer())
            made = await lanes.hook(f"{receiver.url}/h", await lanes.subscribe(A, B))
            await lanes.release(A, A, B)
            await lanes.play_out()
            shown = await lanes.show(made.id)
            assert (shown.state, shown.off_reason) == ("off", "gone")
            await lanes.release(A)
            await lanes.play_out()
            assert len(receiver.posts) == 2
            states = {delivery.state for delivery in await lanes.deliveries(made.id)}
            assert states == {DeliveryState.CANCELLED}

    play(tmp_path, story)


def test_s53_later_events_of_a_dataset_wait_behind_one_that_is_retried(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            failing = {"ds_a"}
            receiver.answer = lambda post: (
                FAILS if post.event["data"]["datasetId"] in failing else Answer()
            )
            made = await lanes.hook(receiver.url, await lanes.subscribe(A, B))
            await lanes.release(A, B, A, B)
            await lanes.drain()
            sent = [
                (x.event["data"]["datasetId"], x.event["data"]["version"]) for x in receiver.posts
            ]
            assert sent == [("ds_a", 1), ("ds_b", 1), ("ds_b", 2)]
            behind = [x for x in await lanes.deliveries(made.id) if not x.attempts]
            assert [x.next_attempt_at for x in behind] == [None]
            failing.clear()
            await lanes.play_out()
            sent = [
                (x.event["data"]["datasetId"], x.event["data"]["version"]) for x in receiver.posts
            ]
            assert sent[3:] == [("ds_a", 1), ("ds_a", 2)]

    play(tmp_path, story)


def test_after_the_last_try_the_next_event_has_a_schedule_of_its_own(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.answer = lambda _: FAILS
            made = await lanes.hook(receiver.url, await lanes.subscribe(A))
            await lanes.release(A, A)
            await lanes.play_out()
            first, second = await lanes.deliveries(made.id)
            assert seconds(first) == seconds(second) == [0, *DUE]
            assert second.attempts[0].started_at >= first.attempts[-1].started_at

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("asked", "waited"), [("3600", 3600), ("10", 30), ("99999999999999", 3600), ("soon", 30)]
)
def test_s52_retry_after_lengthens_the_wait_by_an_hour_at_most(
    tmp_path: Path, asked: str, waited: int
) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            slow_down = Answer(status=429, headers={"Retry-After": asked})
            receiver.script(slow_down, Answer(status=503), Answer())
            made = await lanes.hook(f"{receiver.url}/h", await lanes.subscribe(A))
            await lanes.release(A)
            await lanes.play_out()
            (delivery,) = await lanes.deliveries(made.id)
            assert seconds(delivery) == [0, waited, waited + 300]

    play(tmp_path, story)


def test_a_lane_pauses_as_long_as_its_receiver_asks(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.script(Answer(status=503, headers={"Retry-After": "600"}), Answer())
            await lanes.hook(f"{receiver.url}/h", await lanes.subscribe(A, B))
            await lanes.release(A, B)
            await lanes.drain()
            lanes.clock.forward(seconds=599)
            assert await lanes.turn() == 0
            lanes.clock.forward(seconds=1)
            await lanes.drain()
            assert len(receiver.posts) == 3

    play(tmp_path, story)


def test_failures_in_a_row_widen_the_pause_between_first_attempts(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.answer = lambda _: FAILS
            await lanes.hook(receiver.url, await lanes.subscribe(A, B, C))
            await lanes.release(A)
            await lanes.drain()
            await lanes.release(B, C)
            await lanes.drain()
            assert len(receiver.posts) == 2
            lanes.clock.forward(milliseconds=999)
            await lanes.drain()
            assert len(receiver.posts) == 2
            lanes.clock.forward(milliseconds=1)
            await lanes.drain()
            assert len(receiver.posts) == 3

    play(tmp_path, story)


def test_five_days_without_success_turn_a_webhook_off(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.answer = lambda _: FAILS
            made = await lanes.hook(receiver.url, await lanes.subscribe(A))
            await lanes.release(A, A, A, A, A, A)
            await lanes.play_out(days=4.9)
            assert (await lanes.show(made.id)).state == "on"
            await lanes.play_out()
            shown = await lanes.show(made.id)
            assert (shown.state, shown.off_reason) == ("off", "failing")
            failed = [x for x in await lanes.deliveries(made.id) if x.state == "failed"]
            assert len(failed) >= 3

    play(tmp_path, story)


def test_two_deliveries_given_up_turn_nothing_off_however_long_ago(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.answer = lambda _: FAILS
            made = await lanes.hook(receiver.url, await lanes.subscribe(A))
            await lanes.release(A, A)
            await lanes.play_out()
            lanes.clock.forward(days=10)
            await lanes.drain()
            assert (await lanes.show(made.id)).state == "on"

    play(tmp_path, story)


def test_r147_a_filter_only_moves_the_cursor_past_what_it_leaves_out(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            subscription = await lanes.subscribe(A)
            made = await lanes.hook(receiver.url, subscription, events=[EventType.REMOVED])
            await lanes.release(A, A)
            await lanes.drain()
            assert receiver.posts == []
            assert (await lanes.show(made.id)).events_behind == 0
            assert await lanes.deliveries(made.id) == []

    play(tmp_path, story)


def test_r157_a_crash_repeats_the_delivery_under_the_same_id(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            await lanes.hook(receiver.url, await lanes.subscribe(A))
            await lanes.release(A)
            record, lanes.store.write = lanes.store.write, fail  # type: ignore[method-assign]

            async def claim_only(work: object) -> object:
                lanes.store.write = fail  # type: ignore[method-assign]
                return await record(work)  # type: ignore[arg-type]

            lanes.store.write = claim_only  # type: ignore[method-assign, assignment]
            with pytest.raises(Died):
                await lanes.turn()
            lanes.store.write = record  # type: ignore[method-assign]
            assert await lanes.turn() == 0  # the lease is still held
            await lanes.store.write(lambda tx: tx.webhooks.end_leases())
            await lanes.drain()
            first, second = receiver.posts
            assert (first.id, first.body) == (second.id, second.body)

    play(tmp_path, story)


async def fail(work: object) -> None:
    raise Died


def test_a_lane_that_cannot_be_read_keeps_none_of_the_others_back(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            subscription = await lanes.subscribe(A)
            broken, *_ = [
                await lanes.hook(f"{receiver.url}/{number}", subscription) for number in range(3)
            ]
            with closing(sqlite3.connect(tmp_path / "ploti.db")) as database:
                database.execute("UPDATE webhook SET secrets = '?' WHERE id = ?", [broken.id])
                database.commit()
            await lanes.release(A)
            assert await lanes.turn() == 3
            assert {post.path for post in receiver.posts} == {"/1", "/2"}

    play(tmp_path, story)


def test_a_lease_that_ran_out_is_anothers_and_its_outcomes_are_not_recorded(
    tmp_path: Path,
) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            made = await lanes.hook(receiver.url, await lanes.subscribe(A))
            await lanes.release(A)
            receiver.answer = lambda post: Answer(after=0.3 if len(receiver.posts) == 1 else 0)
            late = asyncio.create_task(lanes.turn())
            await receiver.arrived.wait()
            lanes.clock.forward(minutes=2)
            await lanes.turn()
            await late
            (delivery,) = await lanes.deliveries(made.id)
            assert len(receiver.posts) == 2
            assert len(delivery.attempts) == 1

    play(tmp_path, story)


def test_r160_a_webhook_stops_when_its_subscription_is_deleted(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.answer = lambda _: FAILS
            subscription = await lanes.subscribe(A)
            made = await lanes.hook(receiver.url, subscription)
            await lanes.release(A)
            await lanes.drain()
            now = lanes.clock.now()
            await lanes.store.write(
                lambda tx: delete_subscription(tx, lanes.subscriber, subscription, now=now)
            )
            await lanes.play_out()
            shown = await lanes.show(made.id)
            assert (shown.state, shown.off_reason) == ("off", "subscription_deleted")
            assert len(receiver.posts) == 1
            with pytest.raises(Conflict, match="off for good"):
                await lanes.resume(made.id, "now")

    play(tmp_path, story)


def test_r159_a_webhook_stops_when_its_member_leaves(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            made = await lanes.hook(receiver.url, await lanes.subscribe(A))
            now, member = lanes.clock.now(), lanes.subscriber.member_id
            await lanes.store.write(
                lambda tx: tx.webhooks.turn_off("member_left", at=now, member=member)  # type: ignore[arg-type]
            )
            await lanes.release(A)
            await lanes.drain()
            assert receiver.posts == []
            assert (await lanes.show(made.id)).off_reason == "member_left"

    play(tmp_path, story)


def test_s49_a_ping_is_signed_tried_once_and_no_event(tmp_path: Path) -> None:
    """R-010, R-164, R-165: the four fields that every event has, and nothing of a subscription."""

    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            lanes.clock.moment = SystemClock().now()
            receiver.answer = lambda _: FAILS
            subscription = await lanes.subscribe(A)
            made = await lanes.hook(receiver.url, subscription, events=[EventType.REMOVED])
            pinged = await lanes.ping(made.id)
            await lanes.play_out()
            (post,) = receiver.posts
            assert list(post.event) == ["id", "type", "timestamp", "data"]
            assert (post.event["type"], post.event["data"]) == ("ping", {})
            assert post.event["timestamp"] == str(lanes.clock.now())
            assert len(receiver.verified(made.secret)) == 1
            assert not post.event["id"].startswith("evt_")
            assert (pinged.id, pinged.kind, pinged.state) == (post.id, "test", "failed")
            assert (await lanes.show(made.id)).events_behind == 0

    play(tmp_path, story)


def test_s49_a_410_to_a_ping_turns_the_webhook_off_and_a_ping_goes_out_where_it_is_off(
    tmp_path: Path,
) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.answer = lambda _: Answer(status=410)
            made = await lanes.hook(receiver.url, await lanes.subscribe(A))
            await lanes.ping(made.id)
            assert (await lanes.show(made.id)).off_reason == "gone"
            receiver.answer = lambda _: Answer()
            assert (await lanes.ping(made.id)).state == "delivered"
            assert (await lanes.show(made.id)).state == "off"

    play(tmp_path, story)


@pytest.mark.parametrize("what", ["url", "secret", "ping"])
def test_a_new_url_a_new_secret_and_a_good_ping_make_what_waits_due(
    tmp_path: Path, what: str
) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.script(FAILS, Answer())
            made = await lanes.hook(f"{receiver.url}/h", await lanes.subscribe(A))
            await lanes.release(A)
            await lanes.drain()
            now, who = lanes.clock.now(), lanes.subscriber
            if what == "url":
                patch = WebhookPatch(url=f"{receiver.url}/other")
                await lanes.store.write(lambda tx: update_webhook(tx, who, made.id, patch, now=now))
            elif what == "secret":
                await lanes.store.write(
                    lambda tx: rotate_secret(
                        tx, who, made.id, ids=lanes.ids, sealer=lanes.parts.sealer, now=now
                    )
                )
            else:
                await lanes.ping(made.id)
            await lanes.drain()
            (delivery,) = [x for x in await lanes.deliveries(made.id) if x.kind == "auto"]
            assert delivery.state is DeliveryState.DELIVERED
            assert seconds(delivery) == [0, 0]

    play(tmp_path, story)


def test_after_a_rotation_both_secrets_sign_for_24_hours(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            made = await lanes.hook(receiver.url, await lanes.subscribe(A))
            now = lanes.clock.now()
            fresh = await lanes.store.write(
                lambda tx: rotate_secret(
                    tx,
                    lanes.subscriber,
                    made.id,
                    ids=lanes.ids,
                    sealer=lanes.parts.sealer,
                    now=now,
                )
            )
            for hours in (23.9, 0.2):
                lanes.clock.forward(hours=hours)
                await lanes.release(A)
                await lanes.drain()
            signatures = [post.headers["webhook-signature"].split() for post in receiver.posts]
            assert [len(each) for each in signatures] == [2, 1]
            moment = lanes.clock.moment
            last = receiver.posts[-1]
            body = last.body.decode()
            assert Official(fresh.secret).sign(last.id, moment, body) == signatures[1][0]
            before = receiver.posts[0]
            earlier = moment - timedelta(hours=0.2)
            expected = Official(made.secret).sign(before.id, earlier, before.body.decode())
            assert signatures[0][1] == expected

    play(tmp_path, story)


def test_a_redelivery_by_hand_has_an_id_of_its_own(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            made = await lanes.hook(receiver.url, await lanes.subscribe(A))
            await lanes.release(A)
            await lanes.drain()
            (sent,) = await lanes.deliveries(made.id)
            now = lanes.clock.now()
            again = await lanes.store.write(
                lambda tx: retry_delivery(tx, lanes.subscriber, made.id, sent.id, now=now)
            )
            await lanes.drain()
            first, second = receiver.posts
            assert (first.id, second.id) == (sent.id, again.id)
            assert first.id != second.id
            assert first.body == second.body

    play(tmp_path, story)


def test_a_redelivery_by_hand_leaves_what_is_under_way_alone(tmp_path: Path) -> None:
    """The lane is busy: what it sends is recorded as ever, and what was asked for follows."""

    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            made = await lanes.hook(receiver.url, await lanes.subscribe(A))
            await lanes.release(A)
            await lanes.drain()
            (sent,) = await lanes.deliveries(made.id)
            await lanes.release(A)
            receiver.arrived.clear()
            receiver.answer = lambda post: Answer(after=0.1 if len(receiver.posts) == 2 else 0)
            busy = asyncio.create_task(lanes.turn())
            await receiver.arrived.wait()
            now = lanes.clock.now()
            await lanes.store.write(
                lambda tx: retry_delivery(tx, lanes.subscriber, made.id, sent.id, now=now)
            )
            await busy
            await lanes.drain()
            assert [event_number(post.event["id"]) for post in receiver.posts] == [2, 3, 2]
            assert len({post.id for post in receiver.posts}) == 3

    play(tmp_path, story)


def test_skip_gives_one_up_and_the_next_of_its_dataset_follows(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.script(FAILS, Answer())
            made = await lanes.hook(f"{receiver.url}/h", await lanes.subscribe(A))
            await lanes.release(A, A)
            await lanes.drain()
            first, _ = await lanes.deliveries(made.id)
            now = lanes.clock.now()
            skipped = await lanes.store.write(
                lambda tx: skip_delivery(tx, lanes.subscriber, made.id, first.id, now=now)
            )
            assert skipped.state is DeliveryState.CANCELLED
            await lanes.drain()
            assert [post.event["data"]["version"] for post in receiver.posts] == [1, 2]
            with pytest.raises(Conflict, match="does not wait"):
                await lanes.store.write(
                    lambda tx: skip_delivery(tx, lanes.subscriber, made.id, first.id, now=now)
                )

    play(tmp_path, story)


async def _three_sent(lanes: Lanes, receiver: Receiver) -> str:
    made = await lanes.hook(receiver.url, await lanes.subscribe(A))
    await lanes.release(A, A, A)
    await lanes.drain()
    assert len(receiver.posts) == 3
    return made.id


def test_resume_from_a_cursor_sends_again_what_follows_it_under_new_ids(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            webhook = await _three_sent(lanes, receiver)
            await lanes.resume(webhook, "evt_000000000002")  # type: ignore[arg-type]
            await lanes.release(A)
            await lanes.drain()
            numbers = [event_number(post.event["id"]) for post in receiver.posts]
            assert numbers == [2, 3, 4, 3, 4, 5]
            assert len({post.id for post in receiver.posts}) == 6
            assert receiver.posts[-1].id.endswith("_000000000005")

    play(tmp_path, story)


def test_an_event_that_is_kept_no_more_is_not_sent_again(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            webhook = await _three_sent(lanes, receiver)
            sent = (await lanes.deliveries(webhook))[0].id
            await lanes.store.write(lambda tx: tx.recovery.raise_logs(10))
            now = lanes.clock.now()
            with pytest.raises(Expired, match="kept no more"):
                await lanes.store.write(
                    lambda tx: retry_delivery(tx, lanes.subscriber, webhook, sent, now=now)
                )
            await lanes.drain()
            assert len(receiver.posts) == 3

    play(tmp_path, story)


def test_resume_turns_a_webhook_on_from_now_or_from_a_cursor_that_the_log_keeps(
    tmp_path: Path,
) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.script(Answer(status=410), Answer())
            made = await lanes.hook(f"{receiver.url}/h", await lanes.subscribe(A))
            await lanes.release(A)
            await lanes.drain()
            await lanes.release(A)
            assert (await lanes.resume(made.id, "now")).state == "on"
            await lanes.release(A)
            await lanes.drain()
            assert [post.event["data"]["version"] for post in receiver.posts] == [1, 3]
            with pytest.raises(InvalidInput, match="from must be"):
                await lanes.resume(made.id, "evt_000000000099")

    play(tmp_path, story)


def test_the_last_day_is_told_of_a_webhook(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.script(FAILS, Answer())
            made = await lanes.hook(f"{receiver.url}/h", await lanes.subscribe(A))
            await lanes.release(A)
            await lanes.play_out()
            shown = await lanes.show(made.id)
            assert shown.last_day
            assert (shown.last_day.attempts, shown.last_day.success_rate) == (2, 0.5)
            assert shown.failing_since is None
            assert shown.last_success_at == lanes.clock.moment
            lanes.clock.forward(hours=25)
            assert (await lanes.show(made.id)).last_day.attempts == 0  # type: ignore[union-attr]

    play(tmp_path, story)


def test_a_delivery_whose_event_is_pruned_is_given_up(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.answer = lambda _: FAILS
            made = await lanes.hook(receiver.url, await lanes.subscribe(A))
            await lanes.release(A, A)
            await lanes.drain()
            with sqlite3.connect(tmp_path / "ploti.db", timeout=10) as database:
                database.execute("UPDATE feed_log SET first_seq = 3")
            database.close()
            receiver.answer = lambda _: Answer()
            await lanes.play_out()
            first, second = await lanes.deliveries(made.id)
            assert (first.state, len(first.attempts)) == (DeliveryState.FAILED, 1)
            assert second.state is DeliveryState.DELIVERED

    play(tmp_path, story)


def test_deliveries_are_forgotten_a_while_after_their_end_and_not_while_they_wait(
    tmp_path: Path,
) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.script(Answer(), FAILS)
            made = await lanes.hook(f"{receiver.url}/h", await lanes.subscribe(A))
            await lanes.release(A, A)
            await lanes.drain()
            assert len(await lanes.deliveries(made.id)) == 2
            later = Instant.of(lanes.clock.moment + timedelta(days=1))
            await lanes.store.write(lambda tx: tx.deliveries.prune(before=later))
            (left,) = await lanes.deliveries(made.id)
            assert left.state is DeliveryState.WAITING
            assert len(left.attempts) == 1

    play(tmp_path, story)
