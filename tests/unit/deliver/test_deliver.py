"""When deliveries are tried, what answers mean, and how lanes fare: the stage without IO."""

from datetime import timedelta

import pytest

from ploti.model.ids import WebhookId
from ploti.model.wire import Instant
from ploti.server.deliver.answers import Answer, Result, Verdict, judge
from ploti.server.deliver.endpoint import check_url
from ploti.server.deliver.health import Health, after, is_failing
from ploti.server.deliver.lanes import choose
from ploti.server.deliver.naming import delivery_id
from ploti.server.deliver.schedule import STEPS, next_try_after

AT = Instant.parse("2026-11-30T12:00:00Z")
HOOK = WebhookId("wh_1")


def test_r153_six_waits_of_a_day_and_a_half_that_grow() -> None:
    waits = [next_try_after(attempts, 0.0) for attempts in range(1, 8)]
    assert waits == [*STEPS, None]
    assert sum(STEPS, timedelta()) == timedelta(hours=35, minutes=50, seconds=30)
    assert sorted(STEPS) == [*STEPS]


@pytest.mark.parametrize("attempts", range(1, 7))
def test_chance_only_adds_to_a_wait(attempts: int) -> None:
    step, most = STEPS[attempts - 1], next_try_after(attempts, 1.0)
    assert next_try_after(attempts, 0.0) == step
    assert most == step + (timedelta(seconds=30) if attempts == 1 else step / 10)


@pytest.mark.parametrize(
    ("status", "result"),
    [
        *((status, Result.DELIVERED) for status in (200, 201, 202, 204, 299)),
        *((status, Result.AGAIN) for status in (100, 199, 300, 301, 304, 400, 401, 404, 500, 599)),
        (None, Result.AGAIN),
        (413, Result.FAILED),
        (410, Result.GONE),
    ],
)
def test_r152_r154_r155_what_a_status_means(status: int | None, result: Result) -> None:
    assert judge(Answer(ms=1, status=status), attempts=1, at=AT, chance=0).result is result


def test_the_seventh_failure_is_the_last() -> None:
    failed = Answer(ms=1, status=500)
    assert judge(failed, attempts=6, at=AT, chance=0).result is Result.AGAIN
    assert judge(failed, attempts=7, at=AT, chance=0).result is Result.FAILED


@pytest.mark.parametrize(
    ("status", "asked", "wait"),
    [
        (429, 100.0, 100),
        (503, 100.0, 100),
        (503, 5.0, 30),
        (429, 1e12, 3600),
        (429, -5.0, 30),
        (500, 100.0, 30),
        (429, None, 30),
    ],
)
def test_s52_retry_after_counts_on_429_and_503_an_hour_at_most(
    status: int, asked: float | None, wait: int
) -> None:
    answer = Answer(ms=1, status=status, retry_after=asked)
    verdict = judge(answer, attempts=1, at=AT, chance=0)
    assert verdict.next_at == AT + timedelta(seconds=wait)
    asks = status != 500 and asked is not None and asked > 0
    assert (verdict.paused_until is not None) == asks


def fail(health: Health, *, times: int = 1, result: Result = Result.AGAIN) -> Health:
    for _ in range(times):
        health = after(health, Verdict(result=result), ms=10, at=AT)
    return health


def test_failures_in_a_row_pace_first_attempts_0_1_2_4_to_30_seconds() -> None:
    paces = []
    for times in range(1, 9):
        paced = fail(Health(), times=times).paced_until
        assert paced is not None
        paces.append((paced - AT).total_seconds())
    assert paces == [0, 1, 2, 4, 8, 16, 30, 30]


def test_a_success_ends_all_that_failures_began() -> None:
    failing = fail(Health(), times=5, result=Result.FAILED)
    good = after(failing, Verdict(result=Result.DELIVERED), ms=10, at=AT)
    assert (good.failures, good.given_up, good.failing_since, good.paced_until) == (
        0,
        0,
        None,
        None,
    )
    assert good.last_success_at == AT
    assert good.in_flight == 4


def test_a_pause_that_a_receiver_asked_for_is_not_cut_short_by_another() -> None:
    long = Verdict(result=Result.AGAIN, paused_until=Instant.of(AT + timedelta(hours=1)))
    short = Verdict(result=Result.AGAIN, paused_until=Instant.of(AT + timedelta(minutes=1)))
    health = after(after(Health(), long, ms=1, at=AT), short, ms=1, at=AT)
    assert health.paused_until == long.paused_until
    assert not health.may_send(AT)


def test_one_at_a_time_while_it_fails_or_is_slow() -> None:
    assert Health().in_flight == 4
    assert fail(Health()).in_flight == 1
    slow = after(Health(), Verdict(result=Result.DELIVERED), ms=9_000, at=AT)
    assert slow.in_flight == 1


def test_off_after_five_days_without_success_and_three_given_up() -> None:
    given_up = fail(Health(), times=3, result=Result.FAILED)
    days = timedelta(days=5)
    assert is_failing(given_up, at=Instant.of(AT + days))
    assert not is_failing(given_up, at=Instant.of(AT + days - timedelta(milliseconds=1)))
    assert not is_failing(fail(Health(), times=2, result=Result.FAILED), at=Instant.of(AT + days))
    assert not is_failing(fail(Health(), times=9), at=Instant.of(AT + days))


def test_r157_an_id_follows_from_webhook_and_event_and_holds_no_full_stop() -> None:
    assert delivery_id(HOOK, 43) == "msg_1_000000000043"
    assert delivery_id(HOOK, 43, again=2) == "msg_1_000000000043_r2"


def test_slow_lanes_share_their_half_and_leave_the_rest_to_the_others() -> None:
    ready = [(WebhookId(f"s{n}"), True) for n in range(5)]
    ready += [(WebhookId(f"g{n}"), False) for n in range(5)]
    assert [*choose(ready, free=4, free_for_slow=2)] == ["s0", "s1", "g0", "g1"]
    assert [*choose(ready, free=4, free_for_slow=0)] == ["g0", "g1", "g2", "g3"]
    assert [*choose(ready, free=0, free_for_slow=2)] == []


@pytest.mark.parametrize(
    "url",
    [
        *("", "example.org", "ftp://example.org/h", "https://", "https:///h", "//example.org"),
        *("https://u:p@example.org/h", "https://u@example.org/", "https://example.org/#x"),
        *("https://example.org/a b", "https://example.org:99999/", "https://example.org:0/"),
        *("https://[::1/h", "https://example.org/\n", "https://example.org/" + "x" * 2048),
    ],
)
def test_r145_an_address_that_cannot_be_a_webhooks(url: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        check_url(url)


def test_an_address_says_host_port_and_scheme() -> None:
    assert check_url("https://Example.org/h?x=1") == ("example.org", 443, "https")
    assert check_url("http://[::1]:8080") == ("::1", 8080, "http")
