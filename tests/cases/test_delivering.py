"""The collected cases of webhooks: what is signed, what is dialled, and what comes of answers."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import webhooks as package
from tests.cases.cases import FOLDER, case
from tests.fakes.lanes import BASE, LOOPBACK, A, Lanes, play
from tests.fakes.names import Names
from tests.fakes.receiver import OK, Answer, receiving
from tests.fakes.releases import release

from ploti.errors import InvalidSignature
from ploti.model.event import SchemaChanged
from ploti.model.ids import SubscriptionId
from ploti.model.schema import AddedColumn, Level, SchemaChange
from ploti.model.signature import verify
from ploti.model.webhook import DeliveryState
from ploti.model.wire import encode
from ploti.server.adapters.poster import Limits, WebhookPoster
from ploti.server.deliver.answers import Answer as Told
from ploti.server.eventlog.render import Body, render
from ploti.server.ports.store import Transaction
from ploti.server.worker.deliveries import DeliveryWorker


class Standing(datetime):
    """The package's clock, standing."""

    seconds = 0.0

    @classmethod
    def now(cls, tz: object = None) -> datetime:
        return datetime.fromtimestamp(cls.seconds, UTC)


def is_signed(name: str, headers: dict[str, str], secret: str) -> str:
    """`valid`, or why the bytes are refused."""
    try:
        verify((FOLDER / name).read_bytes(), headers, secret)
    except InvalidSignature as error:
        words = error.detail.split(": ")[-1].removeprefix("Message timestamp ")
        return "valid" if "no message" in error.detail else words
    return "valid"


def test_e01_the_signature_is_over_the_exact_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    given, expected = case("E01")["given"], case("E01")["expect"]["verify"]
    monkeypatch.setattr(package, "datetime", Standing)
    monkeypatch.setattr(Standing, "seconds", given["now"])
    for name, verdict in expected.items():
        found = is_signed(name, given["headers"], given["secret"])
        assert (found == "valid") == (verdict == "valid")


def test_e02_300_seconds_of_skew_are_tolerated_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    given, verdicts = case("E02")["given"], case("E02")["expect"]["verdicts"]
    monkeypatch.setattr(package, "datetime", Standing)
    for each, verdict in zip(given["tries"], verdicts, strict=True):
        stamp = int(each["headers"]["webhook-timestamp"])
        monkeypatch.setattr(Standing, "seconds", stamp + each["offset_of_now"])
        assert is_signed(given["body_file"], each["headers"], given["secret"]) == verdict


class Refusing:
    """A poster whose receivers all answer 500, at once."""

    def __init__(self) -> None:
        self.sent = 0

    async def post(self, url: str, *, body: bytes, headers: Any) -> Told:
        self.sent += 1
        return Told(ms=1, status=500)

    async def refuse(self, url: str) -> str | None:
        return None


def test_e03_receivers_that_fail_together_are_tried_seven_times_and_spread(
    tmp_path: Path,
) -> None:
    count = 30  # of the case's 1,000: what chance does to each is the same

    async def story(lanes: Lanes) -> None:
        subscription = await lanes.subscribe(A)
        hooks = [await lanes.hook(f"https://r{n}.example", subscription) for n in range(count)]
        await lanes.release(A)
        await lanes.drain()
        for round_, step in enumerate((30, 300, 2700, 10800, 36000, 79200)):
            lanes.ids.share = 0.0
            due = [row.next_at for row in await lanes.rows() if row.next_at]
            assert len(due) == count
            waits = [(each - lanes.clock.moment).total_seconds() for each in due]
            spread = 30 if round_ == 0 else step / 10
            assert step <= min(waits)
            assert max(waits) <= step + spread
            assert max(waits) - min(waits) > spread / 2
            lanes.clock.moment = max(due)
            await lanes.drain()
        assert poster.sent == 7 * count
        for hook in hooks:
            (delivery,) = await lanes.deliveries(hook.id)
            assert (delivery.state, len(delivery.attempts)) == (DeliveryState.FAILED, 7)
            span = delivery.attempts[-1].started_at - delivery.attempts[0].started_at
            assert timedelta(hours=24) < span < timedelta(hours=48)
        extent = await lanes.store.read(
            lambda tx: tx.log.extent(subscription, workspace=lanes.subscriber.workspace_id)
        )
        assert extent is not None
        assert (extent.first, extent.last) == (1, 2)

    poster = Refusing()
    play(tmp_path, spread_by_chance(story), poster=poster)


def spread_by_chance(story: Any) -> Any:
    """The story, with the real chance in place of a set one."""

    async def run(lanes: Lanes) -> Any:
        lanes.ids.chance = super(type(lanes.ids), lanes.ids).chance  # type: ignore[method-assign]
        return await story(lanes)

    return run


def test_e04_a_slow_receiver_holds_up_no_other(tmp_path: Path) -> None:
    quick, events = 10, 20
    patient = WebhookPoster(  # with the quick ones, however busy this machine is
        allow_networks=LOOPBACK, user_agent="ploti/0", limits=Limits(total=6)
    )

    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.answer = lambda post: Answer(after=40) if post.path == "/slow" else OK
            subscription = await lanes.subscribe(A)
            slow = await lanes.hook(f"{receiver.url}/slow", subscription)
            for number in range(quick):
                await lanes.hook(f"{receiver.url}/{number}", subscription)
            worker = DeliveryWorker(lanes.parts)
            lanes.store.on_log(worker.ring)
            task = asyncio.create_task(worker.run())
            await lanes.release(*[A] * events)
            async with asyncio.timeout(60):
                while any(len(receiver.to(f"/{n}")) < events for n in range(quick)):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            for number in range(quick):
                got = [post.event["data"]["version"] for post in receiver.to(f"/{number}")]
                assert got == [*range(1, events + 1)]
            async with asyncio.timeout(60):
                while not any(x.attempts for x in await lanes.deliveries(slow.id)):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            task.cancel()
            await worker.finish()
            await patient.close()
            (tried,) = [x for x in await lanes.deliveries(slow.id) if x.attempts]
            assert tried.attempts[0].error == "timeout: no answer within 6 seconds"
            assert tried.state is DeliveryState.WAITING

    play(tmp_path, story, poster=patient)


@pytest.mark.parametrize("answer", case("E05")["given"]["receivers"], ids=lambda each: each["name"])
def test_e05_a_redirect_is_a_failed_attempt_and_not_followed(
    tmp_path: Path, answer: dict[str, Any]
) -> None:
    (told,) = answer["sequence"]

    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.answer = lambda _: Answer(status=told["status"], headers=told["headers"])
            made = await lanes.hook(f"{receiver.url}/h", await lanes.subscribe(A))
            await lanes.release(A)
            await lanes.play_out()
            (delivery,) = await lanes.deliveries(made.id)
            assert [(each.status, each.location) for each in delivery.attempts] == [
                (told["status"], told["headers"]["Location"])
            ] * 7
            assert {post.path for post in receiver.posts} == {"/h"}

    play(tmp_path, story)


async def post(sender: WebhookPoster, url: str) -> Told:
    told = await sender.post(url, body=b"{}", headers={})
    await sender.close()
    return told


@pytest.mark.parametrize("given", case("E06")["given"]["urls"], ids=lambda each: each["url"])
def test_e06_addresses_that_are_refused_when_a_webhook_is_made_and_at_each_connection(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    dialled: list[str] = []

    async def connect(_: Any, _sock: Any, where: Any) -> None:
        dialled.append(where[0])
        raise OSError(111, "refused")

    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", connect)
    names = Names(given["resolves"]) if "resolves" in given else None
    literal = Names([given["url"].partition("//")[2].rpartition("/")[0].strip("[]")])
    if names is None and given["why"] == "not https":
        literal = Names(["9.9.9.9"])
    sender = WebhookPoster(allow_networks=[], user_agent="ploti/0", resolver=names or literal)
    refused = asyncio.run(sender.refuse(given["url"]))
    asyncio.run(post(sender, given["url"]))
    assert (refused is None) == (given["verdict"] == "allow")
    assert (dialled != []) == (given["verdict"] == "allow")


def test_e07_the_address_that_is_used_is_the_one_that_is_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (given,) = case("E07")["given"]["resolver"]
    dialled: list[str] = []

    async def connect(_: Any, _sock: Any, where: Any) -> None:
        dialled.append(where[0])

    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", connect)
    names = Names(*given["answers"])
    sender = WebhookPoster(allow_networks=[], user_agent="ploti/0", resolver=names)
    url = f"https://{given['name']}/h"
    assert asyncio.run(sender.refuse(url)) is None
    for _ in range(2):  # the event, and its retry
        told = asyncio.run(post(sender, url))
        assert told.error == "blocked_address: 127.0.0.1 may not be dialled"
    assert names.asked == 3
    assert dialled == []


def test_e08_one_bad_event_turns_nothing_off(tmp_path: Path) -> None:
    given = case("E08")["given"]
    refused = given["receivers"][0]["rule"][0]["when_body_has"].encode()
    first, last = given["events"]["from_version"], given["events"]["to_version"]

    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.answer = lambda post: Answer(status=400) if refused in post.body else OK
            subscription = await lanes.subscribe(A)

            def up_to(number: int) -> Any:
                def work(tx: Transaction) -> None:
                    while release(tx, A) < number:
                        pass

                return work

            await lanes.store.write(up_to(first - 1))
            made = await lanes.hook(receiver.url, subscription)
            await lanes.store.write(up_to(last))
            await lanes.play_out()
            found = await lanes.deliveries(made.id)
            states = [each.state for each in found]
            assert states.count(DeliveryState.DELIVERED) == last - first
            (bad,) = [each for each in found if each.state is DeliveryState.FAILED]
            assert len(bad.attempts) == 7
            shown = await lanes.show(made.id)
            assert (shown.state, shown.failing_since) == ("on", None)

    play(tmp_path, story)


def test_e10_413_is_given_up_at_once_and_the_next_event_is_sent(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.script(Answer(status=413), OK)
            made = await lanes.hook(f"{receiver.url}/h", await lanes.subscribe(A))
            await lanes.release(A, A)
            await lanes.play_out()
            first, second = await lanes.deliveries(made.id)
            assert (first.state, [each.status for each in first.attempts]) == ("failed", [413])
            assert second.state is DeliveryState.DELIVERED
            assert (await lanes.show(made.id)).state == "on"

    play(tmp_path, story)


def test_e10_an_event_stays_small_even_where_500_columns_change() -> None:
    columns = [AddedColumn(name=f"a_rather_long_column_name_{n}", type="text") for n in range(500)]
    change = SchemaChange(
        from_="1.0",
        to="1.1",
        level=Level.MINOR,
        added=columns,
        removed=[],
        nullable=[],
        described=[],
        retyped=[],
        key_columns=None,
        geometry=None,
    )
    told = SchemaChanged(dataset_id=A, version=2, schema_version="1.1", schema_change=change)
    body = Body(told.type, "2026-11-30T12:00:00.000Z", A, 2, encode(told).decode())
    assert len(render(1, subscription_id=SubscriptionId("sub_1"), body=body, base=BASE)) < 64 << 10


def test_e53_retry_after_is_waited_for_and_the_wait_after_it_is_the_plain_step(
    tmp_path: Path,
) -> None:
    (given,) = case("E53")["given"]["receivers"]
    answers = [
        Answer(status=each["status"], headers=each.get("headers", {})) for each in given["sequence"]
    ]

    async def story(lanes: Lanes) -> None:
        async with receiving() as receiver:
            receiver.script(*answers)
            lanes.ids.share = 0.5
            made = await lanes.hook(f"{receiver.url}/h", await lanes.subscribe(A))
            await lanes.release(A)
            await lanes.play_out()
            (delivery,) = await lanes.deliveries(made.id)
            first, second, third = (each.started_at for each in delivery.attempts)
            assert second - first == timedelta(seconds=3600 + 15)
            assert third - second == timedelta(seconds=300 + 15)
            assert delivery.state is DeliveryState.DELIVERED

    play(tmp_path, story)


def test_d15_an_event_is_never_seen_before_one_with_a_lower_number(tmp_path: Path) -> None:
    async def story(lanes: Lanes) -> None:
        subscription = await lanes.subscribe(A)
        began, go_on = threading.Event(), threading.Event()

        def last() -> Any:
            return lanes.store.read(lambda tx: tx.log.last_numbers([subscription])[subscription])

        def slow(tx: Transaction) -> None:
            release(tx, A)
            began.set()
            go_on.wait()

        def broken(tx: Transaction) -> None:
            release(tx, A)
            raise ValueError("rolled back")

        before = await last()
        writers = [asyncio.ensure_future(lanes.store.write(slow))]
        await asyncio.to_thread(began.wait)
        writers += [asyncio.ensure_future(lanes.store.write(each)) for each in (broken, slow)]
        assert await last() == before
        go_on.set()
        ends = await asyncio.gather(*writers, return_exceptions=True)
        assert [type(end) for end in ends] == [type(None), ValueError, type(None)]
        numbers = [
            seq
            for seq, _ in await lanes.store.read(
                lambda tx: tx.log.page(
                    subscription, after=before, up_to=99, limit=99, types=frozenset()
                )
            )
        ]
        assert numbers == [before + 1, before + 2]

    play(tmp_path, story)
